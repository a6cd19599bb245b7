"""IDX files, the format of MNIST: reading them, and making black and white pictures of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._sources import locate
from neurise.datasets.formats.open import read_bytes
from neurise.space import Space

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The third byte of an IDX file says what its numbers are; they are big-endian."""

MOST_DIMENSIONS = 32

STANDARD = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
"""The four files of MNIST and of all sets that follow it."""


def read_idx(path: str | Path, md5: str | None = None) -> np.ndarray:
    """Read the array of an IDX file, packed by gzip or not; ``md5`` is that of the unpacked file."""
    data = read_bytes(Path(path))
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES or data[3] == 0:
        raise ValueError(
            f"{path} is no IDX file: it begins with the bytes {data[:4].hex(' ') or '(none)'}, and two zeros, a known "
            "type and the number of dimensions were expected"
        )
    kind, start = np.dtype(TYPES[data[2]]), 4 + 4 * data[3]
    if len(data) < start:
        raise ValueError(f"{path} is cut short: its header should have {start} bytes, and the file has {len(data)}")
    shape = tuple(int.from_bytes(data[place : place + 4], "big") for place in range(4, start, 4))
    if 0 in shape or len(shape) > MOST_DIMENSIONS:  # beside a zero the other numbers could be anything
        raise ValueError(f"{path} holds numbers of shape {str(shape)[:80]}, of which there are none")
    size = start + math.prod(shape) * kind.itemsize
    if len(data) != size:
        what = "is cut short" if len(data) < size else "goes on after its end"
        raise ValueError(f"{path} {what}: {shape} numbers of type {kind} make {size:,} bytes, and it has {len(data):,}")
    if md5 is not None and (found := hashlib.md5(data, usedforsecurity=False).hexdigest()) != md5:
        raise ValueError(
            f"{path} is not the file it should be: unpacked it has the MD5 {found}, and {md5} was expected"
        )
    return np.frombuffer(data, kind, offset=start).reshape(shape)


def pictures(
    name: str,
    images: Sequence[tuple[str, np.ndarray]],
    labels: Sequence[tuple[str, np.ndarray] | None],
    threshold: float,
    info: Mapping[str, Any] | None = None,
) -> Dataset:
    """Make a data set of images and labels, for training and perhaps for testing; each with the name of its file."""
    rows, numbers = [], []
    (first, train), kind = images[0], images[0][1].dtype
    if not math.isfinite(threshold) or (kind == np.uint8 and not 0 <= threshold < 255):
        raise ValueError(
            f"threshold must leave pixels on both sides, from 0 to 254 where they are bytes, got {threshold}"
        )
    for (path, array), given in zip(images, labels, strict=True):
        if array.ndim < 2 or 0 in array.shape:
            raise ValueError(f"{path} holds numbers of shape {array.shape}, and images were expected")
        if array.shape[1:] != train.shape[1:]:
            raise ValueError(f"{path} has images of {array.shape[1:]} pixels, and {first} of {train.shape[1:]}")
        rows.append((array > threshold).astype(np.uint8).reshape(len(array), -1))
        if given is not None and (given[1].shape != (len(array),) or given[1].dtype.kind not in "iu"):
            raise ValueError(
                f"{given[0]} holds {given[1].dtype} of shape {given[1].shape}, and a whole number for each of the "
                f"{len(array)} images in {path} was expected"
            )
        numbers.append(None if given is None else given[1].astype(np.int64))
    return Dataset(
        name,
        Space(rows[0].shape[1], 2),
        np.array([0, 1], dtype=np.uint8),
        train=rows[0],
        labels=numbers[0],
        test=rows[1] if len(rows) > 1 else None,
        test_labels=numbers[1] if len(numbers) > 1 else None,
        shape=train.shape[1:],
        info={**(info or {}), "threshold": threshold},
    )


def standard_set(
    name: str,
    folder: str | Path | None,
    threshold: float,
    *,
    mirrors: Sequence[str],
    packed_md5: Sequence[str],
    unpacked_md5: Sequence[str | None],
    info: Mapping[str, Any],
) -> Dataset:
    """Find or download the four files of a set like MNIST, check them, and make a data set of them."""
    arrays = []
    for stem, packed, whole in zip(STANDARD, packed_md5, unpacked_md5, strict=True):
        path = locate(
            # Some programs unpack them with a dot before the "idx".
            (f"{stem}.gz", stem, stem.replace("-idx", ".idx")),
            within=name,
            folder=folder,
            urls=[f"{mirror}/{stem}.gz" for mirror in mirrors],
            checksum=f"md5:{packed}",
        )
        arrays.append((str(path), read_idx(path, whole)))
    return pictures(name, arrays[::2], arrays[1::2], threshold, info)
