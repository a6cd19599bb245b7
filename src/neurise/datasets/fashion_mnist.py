"""Fashion-MNIST: pieces of clothing in black and white."""

from __future__ import annotations

from pathlib import Path

from neurise.dataset import Dataset
from neurise.datasets._idx import STANDARD, standard_set

MIRRORS = (
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
)
PACKED_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
"""Of the files as they are published; none are published of the unpacked ones."""

CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def fashion_mnist(threshold: float = 127, folder: str | Path | None = None) -> Dataset:
    """Pieces of clothing, 60,000 for training and 10,000 for testing, 28×28 pixels: 1 where above the threshold.

    Labels are 0 … 9, named in ``info["classes"]``. The four files are taken from ``folder``; or from the
    subfolder ``fashion_mnist`` of ``NEURISE_DATA``; or downloaded once into the cache, with a checksum.

    >>> import neurise
    >>> neurise.datasets.fashion_mnist().train.shape
    (60000, 784)
    """
    return standard_set(
        "fashion_mnist",
        folder,
        threshold,
        mirrors=MIRRORS,
        packed_md5=PACKED_MD5,
        unpacked_md5=[None] * len(STANDARD),
        info={
            "source": "H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST, arXiv:1708.07747",
            "licence": "MIT",
            "classes": CLASSES,
        },
    )
