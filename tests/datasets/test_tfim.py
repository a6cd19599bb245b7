"""The transverse-field Ising chain: the law in the files against the ground state computed here."""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from real_data import real_file
from scipy import stats

from neurise.datasets.tfim import tfim
from neurise.space import Space


def ground_state(sites: int) -> np.ndarray:
    """Lowest eigenvector of −Σ σᶻσᶻ − Σ σˣ on an open chain, as a full matrix."""
    x, z = np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])

    def on(operators: dict[int, np.ndarray]) -> np.ndarray:
        return functools.reduce(np.kron, [operators.get(site, np.eye(2)) for site in range(sites)])

    energy = -sum(on({site: z, site + 1: z}) for site in range(sites - 1)) - sum(on({site: x}) for site in range(sites))
    return np.linalg.eigh(energy)[1][:, 0]


def write_chain(folder: Path, psi: np.ndarray, rows: np.ndarray) -> None:
    (folder / "tfim1d_data.txt").write_text("".join(" ".join(map(str, row)) + " \n" for row in rows.tolist()))
    (folder / "tfim1d_psi.txt").write_text("".join(f"{v.real:.10f} {v.imag:.10f}\n" for v in psi) + "\n")


@pytest.mark.slow
def test_the_real_files_hold_the_ground_state() -> None:
    real_file("quantum/tfim1d_data.txt.gz")
    data = tfim()
    assert data.train.shape == (10_000, 10)
    # Amplitudes are below 0.3 and given to 5e-11, so that their squares are right within 3e-11.
    np.testing.assert_allclose(data.pmf, ground_state(10) ** 2, atol=4e-11)


def test_the_real_outcomes_follow_the_law() -> None:
    """χ² over the outcomes expected five times or more and the rest in one; wrong once in a million for the right law."""
    real_file("quantum/tfim1d_data.txt.gz")
    data = tfim()
    counts = np.bincount(Space(10, 2).index(torch.from_numpy(data.train)).numpy(), minlength=1024)
    expected = len(data.train) * data.pmf
    often = expected >= 5
    found, wanted = np.append(counts[often], counts[~often].sum()), np.append(expected[often], expected[~often].sum())
    assert ((found - wanted) ** 2 / wanted).sum() < stats.chi2.isf(1e-6, len(found) - 1)


def test_the_first_column_is_the_most_significant(tmp_path: Path) -> None:
    psi = np.sqrt(np.arange(1, 9) / 36) * np.exp(1j * np.arange(8))
    write_chain(tmp_path, psi, np.array([[0, 0, 1], [1, 0, 0], [1, 1, 0]]))
    data = tfim(folder=tmp_path)
    assert data.train.tolist() == [[0, 0, 1], [1, 0, 0], [1, 1, 0]]
    # Ten digits of amplitudes below 1: 2 · 5e-11, and as much again from their sum.
    np.testing.assert_allclose(data.pmf, np.arange(1, 9) / 36, atol=1e-9)
    np.testing.assert_allclose(np.exp(data.log_weight(data.train)), np.array([2, 5, 7]) / 36, atol=1e-9)
    rows = data.sample(20_000, seed=0)
    counts = np.bincount(rows @ np.array([4, 2, 1]), minlength=8)
    expected = 20_000 * data.pmf
    assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-6, 7)


@pytest.mark.parametrize(
    ("psi", "message"),
    [
        ("0.6 0\n0.8\n", r"tfim1d_psi\.txt: line 2 is '0\.8', and two numbers were expected"),
        ("0.6 0\n0.8 0\n0 0\n", r"tfim1d_psi\.txt has 3 amplitudes, and 1 sites have 2"),
        ("0.6 0\n0.7 0\n", r"the squares of the amplitudes sum to 0\.85, not to 1"),
        ("nan 0\n0.7 0\n", r"sum to nan, not to 1"),
    ],
)
def test_broken_amplitudes_are_named(tmp_path: Path, psi: str, message: str) -> None:
    (tmp_path / "tfim1d_data.txt").write_text("0\n1\n")
    (tmp_path / "tfim1d_psi.txt").write_text(psi)
    with pytest.raises(ValueError, match=message):
        tfim(folder=tmp_path)


def test_rows_outside_the_law_are_named(tmp_path: Path) -> None:
    write_chain(tmp_path, np.array([0.6, 0.8]), np.array([[0], [1]]))
    with pytest.raises(ValueError, match="rows of 1 symbols 0 and 1 are needed"):
        tfim(folder=tmp_path).log_weight(np.array([[2]]))
