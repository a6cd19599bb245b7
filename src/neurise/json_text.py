"""JSON from files: whatever is wrong with it is one error that says where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def parse(text: str | bytes, where: str) -> Any:
    """Parse JSON. Not every fault is a JSONDecodeError: text can be in another encoding, too deep, or a number too long."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{where} is no JSON that can be read: it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{where} is damaged, cut short or no JSON: {error}") from error


def read(path: Path) -> Any:
    """Parse a JSON file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return parse(path.read_bytes(), str(path))
