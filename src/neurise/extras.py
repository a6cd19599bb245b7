"""Import packages that only some features need."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str = "") -> Any:
    """Import a package of an extra, or of no extra; where it is missing, raise an ImportError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        wanted = f"'neurise[{extra}]'" if extra else module.partition(".")[0]
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); install it with: pip install {wanted}"
        ) from error
