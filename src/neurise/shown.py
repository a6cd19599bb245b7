"""Values in one line: what an object's repr shows, without pages of numbers."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

MANY = 10
"""Entries of an array or a list that are written out, at most."""
LONG = 80
"""Letters of any other value."""


def value(entry: Any) -> str:
    """Write a value as Python does where that is short; of a long one the beginning, or the shape and type."""
    if isinstance(entry, list | tuple | range) and len(entry) > MANY:
        return f"[{', '.join(value(part) for part in entry[:3])}, … {len(entry):,} in all]"
    if _is_array(entry) and (math.prod(entry.shape) > MANY or len(repr(entry)) > LONG):
        shape = " × ".join(f"{length:,}" for length in entry.shape)
        return f"<{type(entry).__name__} of {shape} {str(entry.dtype).removeprefix('torch.')}>"
    line = " ".join(repr(entry).split())
    return line if len(line) <= LONG else f"{line[:LONG]}…"


def record(thing: Any) -> str:
    """Write the fields of a dataclass or a named tuple in one line; those that hold nothing are left out."""
    names = (
        [field.name for field in dataclasses.fields(thing) if field.repr]
        if dataclasses.is_dataclass(thing)
        else thing._fields
    )
    filled = [(name, getattr(thing, name)) for name in names]
    return (
        f"{type(thing).__name__}({', '.join(f'{name}={value(entry)}' for name, entry in filled if entry is not None)})"
    )


def _is_array(entry: Any) -> bool:
    """Whether it is an array of numpy's or torch's, which need not be imported to know."""
    found = [(sys.modules.get("numpy"), "ndarray"), (sys.modules.get("torch"), "Tensor")]
    return any(module is not None and isinstance(entry, getattr(module, name)) for module, name in found)
