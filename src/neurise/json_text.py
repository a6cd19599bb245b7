"""JSON from files: whatever is wrong with it is one error that says where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEEPEST = 100
"""Levels of lists and mappings inside each other: whoever walks through a value of more runs out of stack."""


def parse(text: str | bytes, where: str) -> Any:
    """Parse JSON. Not every fault is a JSONDecodeError: text can be in another encoding, too deep, or a number too long."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"{where} is nested more than {DEEPEST} levels deep") from None
    except ValueError as error:
        raise ValueError(f"{where} is damaged, cut short or no JSON: {error}") from error
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]
        if not level:
            return value
    raise ValueError(f"{where} is nested more than {DEEPEST} levels deep")


def _inside(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


def read(path: Path) -> Any:
    """Parse a JSON file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return parse(path.read_bytes(), str(path))
