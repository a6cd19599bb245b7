"""How methods are written: ``neurise``, ``ggm(cycles=5)``, ``mine.py:Model(width=32)``, several of them with commas."""

from __future__ import annotations

import ast
import json
from typing import Any, NamedTuple

OPENING, CLOSING = "([{", ")]}"
FILE = ".py:"
"""Stands between a file and the name of a class in it."""


class MethodName(NamedTuple):
    """A method as it was written: which model, and settings of it that differ."""

    base: str
    settings: dict[str, Any]


def split(text: str) -> list[str]:
    """Split a list of methods, or of settings, at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def read(text: str) -> MethodName:
    """Take a method apart."""
    base, bracket, rest = text.partition("(")
    if not bracket:
        return MethodName(text, {})
    if not rest.endswith(")"):
        raise ValueError(f"method {text!r}: settings are written NAME(parameter=value, …), with both brackets")
    settings = {}
    for part in split(rest[:-1]):
        name, equals, value = part.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise ValueError(f"method {text!r}: settings are written parameter=value; got {part!r}")
        if name in settings:
            raise ValueError(f"method {text!r}: {name} was given twice")
        settings[name] = _value(value.strip())
    return MethodName(base.strip(), settings)


def _value(text: str) -> Any:
    """Read a value as JSON or Python writes it; anything else is text."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text
