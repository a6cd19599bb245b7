"""Any images in IDX files, as black and white."""

from __future__ import annotations

from pathlib import Path

from neurise.dataset import Dataset
from neurise.datasets._idx import pictures, read_idx


def idx(
    images: str | Path,
    labels: str | Path | None = None,
    threshold: float = 127,
    *,
    test_images: str | Path | None = None,
    test_labels: str | Path | None = None,
) -> Dataset:
    """Images from an IDX file, packed by gzip or not: 1 where a pixel is above the threshold, 0 elsewhere.

    ``labels`` is an IDX file with one whole number per image. A second pair of files may hold the test images.

    >>> import neurise
    >>> import pathlib, struct, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'images'
    >>> _ = path.write_bytes(struct.pack('>4B3I', 0, 0, 8, 3, 1, 2, 2) + bytes([0, 255, 200, 9]))     # one picture
    >>> neurise.datasets.idx(path).train.tolist()
    [[0, 1, 1, 0]]
    """
    if test_labels is not None and test_images is None:
        raise ValueError(f"test_labels is {str(test_labels)!r}, and there are no test_images")
    pairs = [(images, labels)] if test_images is None else [(images, labels), (test_images, test_labels)]
    return pictures(
        f"idx({Path(images).name})",
        [(str(path), read_idx(path)) for path, _ in pairs],
        [None if path is None else (str(path), read_idx(path)) for _, path in pairs],
        threshold,
    )
