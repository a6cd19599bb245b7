"""What the fields of a results row must be. Rows are files, and files come from anywhere."""

from __future__ import annotations

import base64
import binascii
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

MOST_SEED = 2**63
MOST_BITS = 2**26
"""Pixels that the small pictures of a row may have together: what a page can show."""
SHOWN = 60
"""Letters of a wrong value that are shown."""

Check = Callable[[Any], str | None]
"""Returns what is wrong with a value; None where nothing is."""


def complaint(row: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a row: the first field that is missing or of the wrong kind; None where all is right."""
    missing = [name for name in NEEDED if name not in row]
    if missing:
        return f"it has no {missing[0]}"
    for name, check in {**NEEDED, **OPTIONAL}.items():
        wrong = check(row[name]) if name in row else None
        if wrong:
            return f"{name}{wrong}"
    return None


def _wants(what: str, fits: Callable[[Any], bool]) -> Check:
    def check(value: Any) -> str | None:
        return None if fits(value) else f" must be {what}, got {_short(value)}"

    return check


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _is_text(value: Any) -> bool:
    """Whether a value is text that can be written to a file: half of a surrogate pair cannot."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Whether a value is a truth value or a number that a float can hold; NaN fails the comparison."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _is_picture(value: Any) -> bool:
    """Whether a value is what :func:`neurise.experiments.store.pack` makes."""
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("shape"), list)
        or not isinstance(value.get("bits"), str)
    ):
        return False
    shape = value["shape"]
    if len(shape) > 8 or not all(_is_whole(size) and 0 < size <= MOST_BITS for size in shape):
        return False
    pixels = math.prod(shape)
    try:
        return pixels <= MOST_BITS and len(base64.b64decode(value["bits"], validate=True)) == (pixels + 7) // 8
    except (binascii.Error, ValueError):
        return False


def _entries(check: Check, *needed: str) -> Check:
    """Check all entries of an object whose names are text."""

    def entries(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" must be an object, got {_short(value)}"
        for name in needed:
            if name not in value:
                return f" has no {name}"
        for name, entry in value.items():
            if not _is_text(name):
                return f" has a name that is no text, {_short(name)}"
            wrong = check(entry)
            if wrong:
                return f", {_short(name)}{wrong}"
        return None

    return entries


text = _wants("text", _is_text)
text_or_none = _wants("text or null", lambda value: value is None or _is_text(value))
number_or_none = _wants("a finite number or null", lambda value: value is None or _is_number(value))
scalar = _wants("text, a finite number or null", lambda value: value is None or _is_text(value) or _is_number(value))
picture = _wants("a packed array: its shape, and as many bits", _is_picture)

NEEDED: Mapping[str, Check] = {
    "status": _wants('"done" or "failed"', lambda value: value in ("done", "failed")),
    "experiment": text,
    "scale": text,
    "key": text,
    "unit": text,
    "parameters": _entries(scalar),
    "seed": _wants("a whole number from 0 on", lambda value: _is_whole(value) and 0 <= value < MOST_SEED),
    "metrics": _entries(number_or_none),
    "times": _entries(number_or_none),
    "code": _entries(text, "digest", "neurise"),
}
OPTIONAL: Mapping[str, Check] = {
    "cells": _wants("a whole number from 1 on", lambda value: _is_whole(value) and 0 < value < MOST_SEED),
    "arrays": _entries(picture),
    "budget": _entries(scalar),
    "beside": _wants("a whole number from 0 on", lambda value: _is_whole(value) and 0 <= value < MOST_SEED),
    "error": text_or_none,
    "traceback": text_or_none,
    "warnings": _wants("a list of texts", lambda value: isinstance(value, list) and all(map(_is_text, value))),
    "machine": _entries(scalar),
    "started": text_or_none,
    "seconds": number_or_none,
    "command": text_or_none,
}
