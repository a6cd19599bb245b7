"""Grids of samples, as pictures of one bit per pixel."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from neurise.experiments import Experiment, SampleGrid, store

if TYPE_CHECKING:
    import numpy as np

GAP = 2
"""Pixels between two samples."""
ENLARGED = 2


def grids(experiment: Experiment, grid: SampleGrid, rows: Sequence[store.Row], anchor: str) -> str:
    """Write a grid of samples for each series, of its first seed."""
    first: dict[object, store.Row] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        if len(row.get("arrays", {}).get(grid.array, {}).get("shape", ())) == 4:
            first.setdefault(store.value(row, grid.series), row)
    if not first:
        return ""
    shown = []
    for name, row in first.items():
        label = experiment.label(name)
        array = store.unpack(row["arrays"][grid.array])
        image = base64.b64encode(png(_tiled(array))).decode()
        words = f"{grid.title}: {label}, {array.shape[0]} by {array.shape[1]} samples"
        shown.append(
            f'<figure class="samples"><img alt="{escape(words)}" src="data:image/png;base64,{image}">'
            f"<figcaption>{escape(label)}</figcaption></figure>"
        )
    caption = f"<p>{escape(grid.caption)}</p>" if grid.caption else ""
    return (
        f'<section class="grid" id="{anchor}-{grid.name}"><h3>{escape(grid.title)}</h3>'
        f'<div class="samples">{"".join(shown)}</div>{caption}</section>'
    )


def _tiled(array: np.ndarray) -> np.ndarray:
    """Put pictures (rows, columns, height, width) of 0 and 1 beside and below each other, with gaps, ones in black."""
    import numpy as np

    rows, columns, height, width = array.shape
    framed = np.zeros((rows, columns, height + GAP, width + GAP), dtype=np.uint8)
    framed[:, :, :height, :width] = array
    flat = framed.transpose(0, 2, 1, 3).reshape(rows * (height + GAP), columns * (width + GAP))[:-GAP, :-GAP]
    return np.kron(1 - flat, np.ones((ENLARGED, ENLARGED), dtype=np.uint8))


def png(bits: np.ndarray) -> bytes:
    """Write a matrix of 0 (black) and 1 (white) as a PNG file of one bit per pixel."""
    import numpy as np

    height, width = bits.shape
    lines = np.packbits(bits.astype(np.uint8), axis=1)
    raw = b"".join(b"\0" + line.tobytes() for line in lines)  # each line begins with its filter: none
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )
