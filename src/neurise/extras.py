"""Packages that only some data sets need."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str) -> Any:
    """Import a package of an extra; where it is missing, say what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); install it with: pip install 'neurise[{extra}]'"
        ) from error
