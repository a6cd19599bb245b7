"""Plain text as windows of characters."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from neurise.datasets.formats.open import open_text
from neurise.space import MAX_STATES


def read_windows(path: Path, window: int, stride: int | None = None, *, join_spaces: bool = False) -> np.ndarray:
    """Cut a text into windows of so many characters, (N, window) letters; one begins every ``stride`` characters.

    Without a stride windows lie side by side; what is left at the end is dropped. Ends of lines are characters like any
    other, and all are read as ``\\n``. ``join_spaces`` makes one blank of all blanks, tabs and ends of lines that stand
    together. Windows that overlap share their memory, so that they can only be read.
    """
    stride = window if stride is None else stride
    for name, value in (("window", window), ("stride", stride)):
        if isinstance(value, bool) or value != int(value) or value < 1:
            raise ValueError(f"{name} must be a positive whole number, got {value!r}")
    with open_text(path, longest_line=None) as file:
        text = file.read()
    _check(path, text)
    if join_spaces:
        text = re.sub(r"\s+", " ", text).strip()
    if len(text) < window:
        raise ValueError(f"{path} has {len(text)} characters, and a window has {window}")
    letters = np.frombuffer(text.encode("utf-32-le"), dtype="<U1")
    return np.lib.stride_tricks.sliding_window_view(letters, window)[::stride]


def _check(path: Path, text: str) -> None:
    found = set(text)
    if "\0" in found:
        raise ValueError(f"{path}, {_place(text, text.index(chr(0)))}: a zero byte, which is no character of a text")
    if len(found) > MAX_STATES:
        seen = set[str]()
        for place, letter in enumerate(text):
            seen.add(letter)
            if len(seen) > MAX_STATES:
                raise ValueError(
                    f"{path} has {len(found)} different characters, and at most {MAX_STATES} are supported; the first "
                    f"too many is {letter!r} in {_place(text, place)}"
                )


def _place(text: str, place: int) -> str:
    line = text.count("\n", 0, place) + 1
    return f"line {line}, column {place - text.rfind(chr(10), 0, place)}"
