"""Values out of a JSON file, none of which is believed: every error names the field.

``Field(value, "schema")["order"]`` is the field ``schema.order``; what it must be is asked for by type.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

LARGEST = 2**53
"""Whole numbers up to here are exact in every JSON reader."""
SHOWN = 60
"""Letters of a wrong value that an error shows."""


class Field:
    """A value, and its name in the file."""

    def __init__(self, value: Any, name: str = "") -> None:
        self.value, self.name = value, name

    def wrong(self, wanted: str) -> ValueError:
        """Make the error that says what the field must be, and what it is."""
        found = repr(self.value)
        found = found if len(found) <= SHOWN else f"{found[:SHOWN]}…"
        return ValueError(f"{self.name} must be {wanted}, got {found}")

    def __getitem__(self, key: str) -> Field:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        name = f"{self.name}.{key}" if self.name else key
        if key not in self.value:
            raise ValueError(f"{name} is missing")
        return Field(self.value[key], name)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def __iter__(self) -> Iterator[Field]:
        """Yield the entries of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return (Field(entry, f"{self.name}[{place}]") for place, entry in enumerate(self.value))

    def entries(self) -> Iterator[Field]:
        """Yield the entries of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return (self[key] for key in self.value)

    def whole(self, low: int = 0, high: int = LARGEST) -> int:
        """Return a whole number within limits, both included."""
        if type(self.value) is int and low <= self.value <= high:
            return self.value
        raise self.wrong(f"a whole number from {low} to {high}")

    def number(self, low: float = -math.inf, high: float = math.inf, *, finite: bool = True) -> float:
        """Return a number within limits, both included. A whole number may be too large to be a float."""
        if type(self.value) is float or (type(self.value) is int and abs(self.value) <= sys.float_info.max):
            value = float(self.value)
            if low <= value <= high and (not finite or math.isfinite(value)):
                return value
        limits = "" if (low, high) == (-math.inf, math.inf) else f" from {low:g} to {high:g}"
        raise self.wrong(f"a {'finite ' if finite else ''}number{limits}")

    def text(self) -> str:
        """Return a text."""
        if isinstance(self.value, str):
            return self.value
        raise self.wrong("text")

    def flag(self) -> bool:
        """Return True or False."""
        if isinstance(self.value, bool):
            return self.value
        raise self.wrong("true or false")

    def wholes(self, length: int, low: int, high: int) -> list[int]:
        """Return a list of so many whole numbers within limits."""
        if not isinstance(self.value, list) or len(self.value) != length:
            raise self.wrong(f"a list of {length} numbers")
        return [entry.whole(low, high) for entry in self]
