"""Silhouettes of the objects of Caltech-101."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._bits import check_bits
from neurise.datasets._sources import locate
from neurise.datasets.formats.unpacking import check_unpacked
from neurise.extras import need
from neurise.space import Space

MIRROR = "https://people.cs.umass.edu/~marlin/data"
CHECKSUM = "sha256:862d0a4b828256d54ad5de7c5066c18c72f355cac5b7cde4c1c3be7c000d180b"
SIDE = 28


def caltech101_silhouettes(split: bool = False, folder: str | Path | None = None) -> Dataset:
    """8,671 silhouettes of 28×28 pixels in 101 classes: 0 is the object and 1 what is around it.

    Labels are 1 … 101, named in ``info["classes"]``. With ``split`` the rows come as their author divided them: 4,100 for
    training, 2,264 for validation, 2,307 for testing; that is another file. ``caltech101_silhouettes_28.mat``, or
    ``caltech101_silhouettes_28_split1.mat``, is taken from ``folder`` or ``NEURISE_DATA``, or downloaded once into the cache.

    >>> import neurise
    >>> neurise.datasets.caltech101_silhouettes().train.shape
    (8671, 784)
    """
    name = "caltech101_silhouettes_28_split1.mat" if split else "caltech101_silhouettes_28.mat"
    path = locate(
        (name,),
        within="",
        folder=folder,
        urls=[f"{MIRROR}/{name}"],
        checksum=None if split else CHECKSUM,
        check=_read,
    )
    arrays = _read(path)
    parts: dict[str, np.ndarray] = {}
    for field, prefix, keys in (
        ("train", "", ("X", "Y")),
        ("train", "", ("train_data", "train_labels")),
        ("validation", "validation_", ("val_data", "val_labels")),
        ("test", "test_", ("test_data", "test_labels")),
    ):
        if keys[0] in arrays:
            parts[field], parts[f"{prefix}labels"] = _part(path, arrays, *keys)
    return Dataset(
        name.removesuffix(".mat"),
        Space(SIDE * SIDE, 2),
        np.array([0, 1], dtype=np.uint8),
        **parts,  # type: ignore[arg-type]
        shape=(SIDE, SIDE),
        info={
            "source": "B. Marlin, K. Swersky, B. Chen, N. de Freitas, AISTATS 2010; people.cs.umass.edu/~marlin/data.shtml",
            "licence": "public research data",
            "classes": tuple(str(np.ravel(entry)[0]) for entry in np.ravel(arrays.get("classnames", ()))),
        },
    )


def _read(path: Path) -> dict[str, Any]:
    """Read a MATLAB file and see that it holds silhouettes."""
    io = need("scipy.io", "metrics")
    try:
        with path.open("rb") as file:
            sizes = [math.prod(shape) for _, shape, _ in io.whosmat(file)]
            check_unpacked(path, 8 * sum(sizes))  # MATLAB's numbers have eight bytes, and may be packed
            file.seek(0)
            arrays: dict[str, Any] = io.loadmat(file)
    except Exception as error:  # loadmat has no error of its own: a damaged file shows as any of a dozen
        raise ValueError(f"{path} is damaged or no MATLAB file ({error})") from error
    if not ({"X", "Y"} <= arrays.keys() or {"train_data", "train_labels"} <= arrays.keys()):
        found = [key for key in arrays if not key.startswith("__")]
        raise ValueError(f"{path} has the arrays {found}, and X and Y, or train_data and train_labels, were expected")
    return arrays


def _part(path: Path, arrays: dict[str, Any], data: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    rows = check_bits(arrays[data], f"{path}: {data}", SIDE * SIDE)
    numbers = np.ravel(arrays[labels]).astype(np.int64)
    if len(numbers) != len(rows):
        raise ValueError(f"{path}: {labels} has {len(numbers)} entries, and {data} has {len(rows)} rows")
    # MATLAB counts pixels down the columns; turned, they go along the lines like those of any other picture.
    upright = rows.reshape(-1, SIDE, SIDE).swapaxes(1, 2).reshape(len(rows), -1)
    return np.ascontiguousarray(upright), numbers
