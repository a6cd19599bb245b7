"""The Rydberg chain: real outcomes where they are at hand, and small ones written here."""

from pathlib import Path

import numpy as np
import pytest
from real_data import real_file

from neurise.datasets.rydberg import DETUNINGS, rydberg


def write_chain(folder: Path, **changes: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    arrays = {f"delta_{value:.2f}": rng.integers(2, size=(6, 5), dtype=np.uint8) for value in DETUNINGS}
    np.savez(folder / "rydberg_q20.npz", **(arrays | changes))


def test_the_real_outcomes_show_the_blockade() -> None:
    real_file("quantum/rydberg_q20.npz")
    data = rydberg()
    assert data.train.shape == (70_000, 20)
    values, counts = np.unique(data.labels, return_counts=True)
    assert values.tolist() == list(DETUNINGS)
    assert (counts == 10_000).all()
    # Two excited neighbours are rare, two in the ground state are not: 0 and 1 are not the other way round.
    both = (data.train[:, 1:] & data.train[:, :-1]).mean()
    neither = ((1 - data.train[:, 1:]) & (1 - data.train[:, :-1])).mean()
    assert both < 0.05 < neither


def test_one_detuning_or_all_of_them(tmp_path: Path) -> None:
    write_chain(tmp_path)
    every = rydberg(folder=tmp_path)
    assert every.train.shape == (42, 5)
    for value in DETUNINGS:
        one = rydberg(value, folder=tmp_path)
        np.testing.assert_array_equal(one.train, every.train[every.labels == value])
        assert one.labels is None
        assert f"{value:.2f}" in one.name


def test_what_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"detuning must be one of 1\.00, 1\.04, .*, got 1\.01"):
        rydberg(1.01)
    write_chain(tmp_path, **{"delta_1.08": np.full((2, 5), 7)})
    with pytest.raises(ValueError, match=r"delta_1\.08 has 7 in row 0, column 0"):
        rydberg(folder=tmp_path)
    write_chain(tmp_path, **{"delta_1.08": np.zeros((2, 4))})
    with pytest.raises(ValueError, match=r"delta_1\.08 has 4 columns, and 5 were expected"):
        rydberg(folder=tmp_path)
    monkeypatch.delenv("NEURISE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"no public address .* quantum/rydberg_q20\.npz"):
        rydberg()
