"""The density-estimation benchmarks: binary data with training, validation and test rows of their own."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._bits import check_bits, read_bits
from neurise.datasets._debd_checksums import CHECKSUMS
from neurise.datasets._sources import locate
from neurise.datasets.formats.arrays import load_arrays
from neurise.space import Space

SITES = {
    "nltcs": 16,
    "msnbc": 17,
    "kdd": 64,
    "plants": 69,
    "baudio": 100,
    "bnetflix": 100,
    "jester": 100,
    "accidents": 111,
    "mushrooms": 112,
    "adult": 123,
    "connect4": 126,
    "ocr_letters": 128,
    "tretail": 135,
    "rcv1": 150,
    "pumsb_star": 163,
    "dna": 180,
    "kosarek": 190,
    "msweb": 294,
    "book": 500,
    "nips": 500,
    "tmovie": 500,
    "cwebkb": 839,
    "cr52": 889,
    "c20ng": 910,
    "moviereview": 1001,
    "bbc": 1058,
    "voting": 1359,
    "ad": 1556,
}
"""Every set of the collection, and how many binary variables it has."""

MIRRORS = (
    # A fixed state of the collection, so that the same files come for ever; then whatever it is today.
    "https://raw.githubusercontent.com/arranger1044/DEBD/d5e0c95fef9e418a39feccddae5d7a7526c1e8de/datasets",
    "https://raw.githubusercontent.com/arranger1044/DEBD/master/datasets",
)


def debd(name: str = "nltcs", folder: str | Path | None = None) -> Dataset:
    """One set of the density-estimation benchmarks, symbols 0 and 1, with its own train, validation and test rows.

    It is taken from ``folder``, or from the subfolder ``debd`` of ``NEURISE_DATA``, either as ``NAME.npz`` with arrays
    ``train``, ``valid`` and ``test`` or as the original ``NAME.train.data``, ``NAME.valid.data`` and ``NAME.test.data``; or
    downloaded once into the cache; a download is compared with the file that git names in the collection.

    >>> import neurise
    >>> data = neurise.datasets.debd('nltcs')
    >>> data.train.shape, data.test.shape
    ((16181, 16), (3236, 16))
    """
    if name not in SITES:
        close = difflib.get_close_matches(str(name), SITES, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(SITES)}"
        raise ValueError(f"unknown benchmark {name!r}; {hint}")
    splits = _splits(name, folder)
    return Dataset(
        f"debd({name!r})",
        Space(SITES[name], 2),
        np.array([0, 1], dtype=np.uint8),
        train=splits["train"],
        validation=splits["valid"],
        test=splits["test"],
        info={"source": "github.com/arranger1044/DEBD", "licence": "cite the original papers listed there"},
    )


def _splits(name: str, folder: str | Path | None) -> dict[str, np.ndarray]:
    splits = {}
    for split, checksum in zip(("train", "valid", "test"), CHECKSUMS[name], strict=True):
        file = f"{name}.{split}.data"
        path = locate(
            (f"{name}.npz", file, f"{file}.gz"),
            within="debd",
            folder=folder,
            urls=[f"{mirror}/{name}/{file}" for mirror in MIRRORS],
            checksum=f"git:{checksum}",
        )
        if path.suffix == ".npz":
            arrays = load_arrays(path, ("train", "valid", "test"))
            return {key: check_bits(rows, f"{path}: {key}", SITES[name]) for key, rows in arrays.items()}
        splits[split] = check_bits(read_bits(path), str(path), SITES[name])
    return splits
