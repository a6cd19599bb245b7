"""MNIST: handwritten digits in black and white."""

from __future__ import annotations

from pathlib import Path

from neurise.dataset import Dataset
from neurise.datasets._idx import standard_set

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
PACKED_MD5 = (
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "d53e105ee54ea40749a09fcbcd1e9432",
    "9fb629c4189551a2d022fa330f9573f3",
    "ec29112dd5afa0611ce80d1b7f02629c",
)
UNPACKED_MD5 = (
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)
"""Of the files as such: a copy may have been packed again."""


def mnist(threshold: float = 127, folder: str | Path | None = None) -> Dataset:
    """Handwritten digits, 60,000 for training and 10,000 for testing, 28×28 pixels: 1 where above the threshold.

    Labels are the digits. The four original files are taken from ``folder``; or from the subfolder ``mnist`` of
    ``NEURISE_DATA``; or downloaded once into the cache. They are checked in every case.

    >>> import neurise
    >>> neurise.datasets.mnist().train.shape
    (60000, 784)
    """
    return standard_set(
        "mnist",
        folder,
        threshold,
        mirrors=MIRRORS,
        packed_md5=PACKED_MD5,
        unpacked_md5=UNPACKED_MD5,
        info={
            "source": "Y. LeCun, C. Cortes, C. Burges: the MNIST database of handwritten digits",
            "licence": "CC BY-SA 3.0",
        },
    )
