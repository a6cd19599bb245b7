"""The GHZ law against the dense contraction tr(ρ M⊗…⊗M), and its samples against the law."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats

from neurise.datasets.ghz import ghz
from neurise.space import Space

NAMES = ["tetrahedral", "pauli4"]


def elements(name: str) -> np.ndarray:
    """The measurements written out from their Bloch vectors and kets, apart from the library's."""
    x, y, z = np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]]), np.diag([1, -1])
    if name == "pauli4":
        ups = np.stack([(np.eye(2) + axis) / 6 for axis in (z, x, y)])
        return np.concatenate([ups, [np.eye(2) - ups.sum(axis=0)]])
    height, angles = -1 / 3, 2 * np.pi * np.arange(3) / 3
    radius = np.sqrt(1 - height**2)
    sides = [radius * np.cos(a) * x + radius * np.sin(a) * y + height * z for a in angles]
    return np.stack([(np.eye(2) + axis) / 4 for axis in (z, *sides)])


def dense_law(name: str, qubits: int, visibility: float) -> np.ndarray:
    """tr(ρ M_a1 ⊗ … ⊗ M_aq) for every row of outcomes: ρ as a full matrix, one qubit contracted after the other."""
    ket = np.zeros(2**qubits)
    ket[[0, -1]] = 0.5**0.5
    rho = visibility * np.outer(ket, ket) + (1 - visibility) * np.eye(2**qubits) / 2**qubits
    tensor = rho.astype(complex).reshape(1, 2**qubits, 2**qubits)
    for left in range(qubits - 1, -1, -1):
        parts = tensor.reshape(-1, 2, 2**left, 2, 2**left)  # (outcomes so far, row bit, rows, column bit, columns)
        tensor = np.einsum("nirjs,aji->nars", parts, elements(name)).reshape(-1, 2**left, 2**left)
    assert abs(tensor.imag).max() < 1e-15
    return tensor.real.ravel()


@pytest.mark.parametrize("visibility", [1.0, 0.8])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("qubits", [2, 3, 6])
def test_law_is_the_dense_contraction(qubits: int, name: str, visibility: float) -> None:
    data = ghz(qubits, name, visibility)
    exact = dense_law(name, qubits, visibility)
    every = Space(qubits, 4).configurations().numpy()
    # Sums of at most 64 products of numbers below 1: roundings stay below 64 · 6 · 1e-16 = 4e-14.
    np.testing.assert_allclose(data.pmf, exact, atol=1e-12, rtol=0)
    np.testing.assert_allclose(np.exp(data.log_weight(every)), exact, atol=1e-12, rtol=0)
    assert data.pmf.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_fewer_than_all_qubits_see_a_classical_mixture(name: str) -> None:
    """Σ over the last site of P is the mixture of the two branches; and one site alone sees noise."""
    M = elements(name)
    up, down = M[:, 0, 0].real, M[:, 1, 1].real
    marginal = ghz(4, name).pmf.reshape(4, 4, 4, 4).sum(axis=3)
    mixture = 0.5 * (np.einsum("a,b,c->abc", up, up, up) + np.einsum("a,b,c->abc", down, down, down))
    np.testing.assert_allclose(marginal, mixture, atol=1e-15)
    np.testing.assert_allclose(marginal.sum(axis=(1, 2)), (up + down) / 2, atol=1e-15)


@pytest.mark.parametrize("visibility", [1.0, 0.7])
@pytest.mark.parametrize("name", NAMES)
def test_twenty_qubits_are_normalised_over_the_last_site(name: str, visibility: float) -> None:
    data, M = ghz(20, name, visibility), elements(name)
    prefix = np.random.default_rng(0).integers(4, size=(50, 19))
    rows = np.concatenate([np.column_stack([prefix, np.full(50, a)]) for a in range(4)])
    total = np.exp(data.log_weight(rows)).reshape(4, 50).sum(axis=0)
    up, down = (M[prefix, bit, bit].real.prod(axis=1) for bit in (0, 1))
    noise = (np.trace(M, axis1=1, axis2=2).real / 2)[prefix].prod(axis=1)
    # Twenty products and twenty logarithms near 30: at most about 20 · 2e-16 · 30 = 1e-13 in relative terms.
    np.testing.assert_allclose(total, visibility * (up + down) / 2 + (1 - visibility) * noise, rtol=1e-12)


def test_hundreds_of_qubits_keep_their_digits() -> None:
    """Against exact fractions: pauli4 is rational, and these probabilities are far below what float64 can hold."""
    up = [Fraction(1, 3), Fraction(1, 6), Fraction(1, 6), Fraction(1, 3)]
    down = [Fraction(0), Fraction(1, 6), Fraction(1, 6), Fraction(2, 3)]
    cross = [(0, 0), (Fraction(1, 6), 0), (0, Fraction(-1, 6)), (Fraction(-1, 6), Fraction(1, 6))]
    rows = np.random.default_rng(1).choice(4, p=[0, 0.2, 0.2, 0.6], size=(3, 1400))
    rows[1, :1200] = 0  # the ratio of the branches alone is then 2^1200
    rows[2] = rows[2].clip(1, 2)
    exact = []
    for row in rows.tolist():
        a, b, re, im = Fraction(1), Fraction(1), Fraction(1), Fraction(0)
        for outcome in row:
            a, b = a * up[outcome], b * down[outcome]
            x, y = cross[outcome]
            re, im = re * x - im * y, re * y + im * x
        value = (a + b + 2 * re) / 2
        exact.append(math.log(value.numerator) - math.log(value.denominator))  # of whole numbers of any length
    found = ghz(1400, "pauli4").log_weight(rows)
    assert max(exact) < -745  # the probabilities themselves would be zero in float64
    # 1400 additions of numbers near 1 to a sum near 1000: at most 1400 · 1e-13 / 1000 = 1.4e-13.
    np.testing.assert_allclose(found, exact, rtol=1e-12)


def test_what_cannot_occur_has_no_weight_and_is_never_drawn() -> None:
    """Two (+i) among nothing but (+): ½[1 + 1 + 2 Re (−i)²] = 0, exactly."""
    data = ghz(3, "pauli4")
    zeros = [[1, 2, 2], [2, 1, 2], [2, 2, 1]]
    assert (data.log_weight(np.array(zeros)) == -np.inf).all()
    impossible = Space(3, 4).index(torch.tensor(zeros)).numpy()
    assert set(np.flatnonzero(data.pmf == 0)) == set(impossible)
    rows = data.sample(50_000, seed=0)
    assert not np.isin(Space(3, 4).index(torch.from_numpy(rows)).numpy(), impossible).any()
    assert np.isfinite(data.log_weight(rows)).all()


@pytest.mark.parametrize("visibility", [1.0, 0.8])
@pytest.mark.parametrize("name", NAMES)
def test_samples_follow_the_law(name: str, visibility: float) -> None:
    """χ² over all 256 outcomes; a right sampler exceeds the threshold once in a million seeds."""
    data, n = ghz(4, name, visibility), 100_000
    rows = data.sample(n, seed=5)
    assert rows.dtype == np.uint8
    counts = np.bincount(Space(4, 4).index(torch.from_numpy(rows)).numpy(), minlength=256)
    possible = data.pmf > 0
    expected = n * data.pmf[possible]
    assert expected.min() > 5  # or the statistic would not be χ²
    statistic = ((counts[possible] - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.isf(1e-6, possible.sum() - 1)
    assert counts[~possible].sum() == 0


def test_mean_log_probability_of_twenty_qubits_is_minus_their_entropy() -> None:
    """E[log P] is computable: for visibility 0 each outcome is independent, and H = −q Σ w log w."""
    data = ghz(20, "pauli4", 0.0)
    values = data.log_weight(data.sample(20_000, seed=0))
    w = np.array([1, 1, 1, 3]) / 6
    assert abs(values.mean() - 20 * (w * np.log(w)).sum()) < 4 * values.std() / 20_000**0.5


def test_the_default_is_the_papers() -> None:
    data = ghz()
    assert (data.space.sites, data.space.states) == (20, 4)
    assert data.pmf is None
    assert data.symbols.tolist() == [0, 1, 2, 3]
    assert "tetrahedral" in data.name
    np.testing.assert_array_equal(data.sample(100, seed=7), data.sample(100, seed=7))
    assert (data.sample(100, seed=7) != data.sample(100, seed=8)).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"qubits": 1}, "at least 2, got 1"),
        ({"qubits": 2.5}, r"whole number, at least 2, got 2\.5"),
        ({"povm": "sic"}, "unknown measurement 'sic'; there are: tetrahedral, pauli4"),
        ({"visibility": 1.2}, r"between 0 and 1, got 1\.2"),
        ({"visibility": float("nan")}, "between 0 and 1, got nan"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ghz(**arguments)  # type: ignore[arg-type]


def test_bad_rows_are_named() -> None:
    data = ghz(3)
    with pytest.raises(ValueError, match=r"rows of 3 outcomes are needed; the shape is \(2, 4\)"):
        data.log_weight(np.zeros((2, 4), dtype=int))
    with pytest.raises(ValueError, match="outcome -1 in row 1, qubit 2; outcomes are 0 … 3"):
        data.log_weight(np.array([[0, 0, 0], [0, 0, -1]]))
