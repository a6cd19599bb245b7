"""Outcomes of a measurement on a chain of Rydberg atoms, at several detunings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._bits import check_bits
from neurise.datasets._sources import locate
from neurise.datasets.formats.arrays import load_arrays
from neurise.space import Space

DETUNINGS = (1.00, 1.04, 1.08, 1.12, 1.16, 1.20, 1.28)


def rydberg(detuning: float | None = None, folder: str | Path | None = None) -> Dataset:
    """Outcomes on 20 atoms, 0 for the ground and 1 for the excited state, 10,000 at each of seven detunings.

    ``detuning`` is one of 1.00, 1.04, 1.08, 1.12, 1.16, 1.20, 1.28; without it all rows are there, with the detuning as
    label. The file ``rydberg_q20.npz`` is taken from ``folder`` or from the subfolder ``quantum`` of ``NEURISE_DATA``: there is
    no public address to download it from.

    >>> import neurise
    >>> neurise.datasets.rydberg().train.shape
    (70000, 20)
    """
    if detuning is not None and detuning not in DETUNINGS:
        raise ValueError(f"detuning must be one of {', '.join(f'{value:.2f}' for value in DETUNINGS)}, got {detuning}")
    chosen = DETUNINGS if detuning is None else (detuning,)
    path = locate(("rydberg_q20.npz",), within="quantum", folder=folder)
    arrays = load_arrays(path, [f"delta_{value:.2f}" for value in chosen])
    sites = np.atleast_1d(next(iter(arrays.values()))).shape[-1]
    rows = [check_bits(array, f"{path}: {name}", sites) for name, array in arrays.items()]
    return Dataset(
        "rydberg" if detuning is None else f"rydberg(detuning={detuning:.2f})",
        Space(sites, 2),
        np.array([0, 1], dtype=np.uint8),
        train=np.concatenate(rows),
        labels=np.repeat(chosen, [len(part) for part in rows]) if detuning is None else None,
        info={"detunings": chosen, "licence": "Apache-2.0"},
    )
