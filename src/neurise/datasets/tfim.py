"""Outcomes of a measurement on the ground state of a transverse-field Ising chain, with the exact amplitudes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._bits import read_bits
from neurise.datasets._sources import locate
from neurise.datasets.formats.open import read_bytes
from neurise.enumeration import draw_from_law
from neurise.space import Space

MIRROR = "https://raw.githubusercontent.com/PIQuIL/QuCumber/master/examples/Tutorial1_TrainPosRealWaveFunction"
CHECKSUMS = {
    "tfim1d_data.txt": "sha256:1a27d2c5516772d33abb2882e426fa9c336532262315fec023b4c763e11a076c",
    "tfim1d_psi.txt": "sha256:7fc13543ab5f6bff51d0b2a1a7c9e7b9da52e886130f0aa0e9fd49d53e002ddc",
}


def tfim(folder: str | Path | None = None) -> Dataset:
    r"""10,000 outcomes of σᶻ on ten sites of a critical chain, and their exact law :math:`|\psi(x)|^2`.

    The state is the ground state of :math:`H = -\sum_i \sigma^z_i\sigma^z_{i+1} - \sum_i \sigma^x_i` on an open chain. The
    files ``tfim1d_data.txt`` and ``tfim1d_psi.txt`` (or ``….txt.gz``) are taken from ``folder``; or from the subfolder
    ``quantum`` of ``NEURISE_DATA``; or downloaded once into the cache. A line of the second holds real and imaginary part of
    an amplitude, the first site being the most significant digit of its place.

    >>> import neurise
    >>> neurise.datasets.tfim().train.shape
    (10000, 10)
    """
    outcomes, amplitudes = (
        locate(
            (f"{name}.gz", name),
            within="quantum",
            folder=folder,
            urls=[f"{MIRROR}/{name}"],
            checksum=checksum,
        )
        for name, checksum in CHECKSUMS.items()
    )
    rows = read_bits(outcomes)
    space = Space(rows.shape[1], 2)
    pmf = _law(amplitudes, space)
    return Dataset(
        "tfim",
        space,
        np.array([0, 1], dtype=np.uint8),
        train=rows,
        law=lambda: pmf,
        draw=partial(_draw, space, pmf),
        log_weight=partial(_log_prob, space, pmf),
        info={"source": "github.com/PIQuIL/QuCumber", "licence": "Apache-2.0"},
    )


def _law(path: Path, space: Space) -> np.ndarray:
    lines = read_bytes(path).decode(errors="replace").split("\n")
    values = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            real, imaginary = map(float, line.split())
        except ValueError as error:
            raise ValueError(f"{path}: line {number} is {line[:60]!r}, and two numbers were expected") from error
        values.append(real * real + imaginary * imaginary)
    if len(values) != space.size:
        raise ValueError(f"{path} has {len(values)} amplitudes, and {space.sites} sites have {space.size}")
    law = np.array(values)
    # The file has ten digits of each amplitude, so that the squares sum to 1 within 1e-7 or so.
    if not abs(law.sum() - 1) < 1e-6:
        raise ValueError(f"{path}: the squares of the amplitudes sum to {law.sum():.8g}, not to 1")
    return np.asarray(law / law.sum())


def _index(space: Space, X: np.ndarray) -> np.ndarray:
    x = np.asarray(X)
    if x.ndim != 2 or x.shape[1] != space.sites or not np.isin(x, (0, 1)).all():
        raise ValueError(f"rows of {space.sites} symbols 0 and 1 are needed; the shape is {x.shape}")
    return np.asarray(x.astype(np.int64) @ (1 << np.arange(space.sites)[::-1]))


def _log_prob(space: Space, pmf: np.ndarray, X: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(pmf[_index(space, X)]))


def _draw(space: Space, pmf: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    index = draw_from_law(pmf, n, rng)
    return np.asarray(index[:, None] >> np.arange(space.sites)[::-1] & 1).astype(np.uint8)
