"""A small picture of some rows, made of characters."""

from __future__ import annotations

import numpy as np

from neurise.alphabet import Alphabet
from neurise.cli._table import terminal_width
from neurise.dataset import Dataset

HALVES = " ▀▄█"
"""Two cells, one above the other: neither, the upper, the lower, both."""
SHADES = " ░▒▓█"
PICTURES, ROWS, LETTER_ROWS = 8, 16, 8
TALLEST = 64


def picture(dataset: Dataset, width: int | None = None) -> str:
    """Draw the first rows: sequences as letters, lattices and images as such, others as lines of cells."""
    if dataset.train is None:
        return ""
    width = width or terminal_width()
    rows = dataset.train
    if dataset.symbols.dtype.kind in "US":
        return _letters(rows[:LETTER_ROWS].astype("U1"), width)
    shape = dataset.shape
    if shape is not None and len(shape) == 2 and shape[0] <= TALLEST and shape[1] <= width:
        number = max(1, min(PICTURES, len(rows), (width + 2) // (shape[1] + 2)))
        images = _tokens(dataset, rows[:number]).reshape(number, *shape)
        gap = np.full((shape[0], 2), -1)
        parts = [part for image in images for part in (image.astype(int), gap)][:-1]
        title = f"the first {number} rows, as {shape[0]} × {shape[1]} lattices:"
        return "\n".join([title, *_cells(np.hstack(parts), dataset.space.states)])
    shown = _tokens(dataset, rows[:ROWS]).astype(int)[:, :width]
    more = ", as far as they fit" if dataset.space.sites > width else ""
    return "\n".join([f"the first {len(shown)} rows{more}:", *_cells(shown, dataset.space.states)])


def _tokens(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    alphabet = Alphabet.of(dataset.symbols[:, None], dataset.symbols.tolist())
    return np.asarray(alphabet.encode(rows).numpy())


def _cells(tokens: np.ndarray, states: int) -> list[str]:
    """Draw a matrix of tokens, with −1 for nothing: two lines in one where there are two states."""
    if states <= 2:
        filled = tokens > 0
        if len(filled) % 2:
            filled = np.vstack([filled, np.zeros_like(filled[:1])])
        glyphs = filled[::2] + 2 * filled[1::2]
        return ["".join(HALVES[glyph] for glyph in line).rstrip() for line in glyphs.tolist()]
    if states <= 10:
        return ["".join(str(cell) if cell >= 0 else " " for cell in line).rstrip() for line in tokens.tolist()]
    scale = (len(SHADES) - 1) / (states - 1)
    return ["".join(SHADES[round(max(cell, 0) * scale)] for cell in line).rstrip() for line in tokens.tolist()]


def _letters(rows: np.ndarray, width: int) -> str:
    lines = []
    for row in rows.tolist():
        text = "".join(letter if letter.isprintable() else "·" for letter in row)
        lines.append(text if len(text) <= width else f"{text[: width - 1]}…")
    return "\n".join([f"the first {len(lines)} rows:", *lines])
