"""The measurements against their definition by kets, and estimates against dense matrices."""

import functools
import itertools

import numpy as np
import pytest

from neurise import counts, povm
from neurise.datasets.ghz import ghz

ZERO, ONE = np.array([1, 0], dtype=complex), np.array([0, 1], dtype=complex)
PLUS, MINUS = (ZERO + ONE) / 2**0.5, (ZERO - ONE) / 2**0.5
LEFT, RIGHT = (ZERO + 1j * ONE) / 2**0.5, (ZERO - 1j * ONE) / 2**0.5

NAMES = ["tetrahedral", "pauli4"]


def projector(ket: np.ndarray) -> np.ndarray:
    return np.outer(ket, ket.conj())


def kron(matrices: list[np.ndarray]) -> np.ndarray:
    return functools.reduce(np.kron, matrices)


def ghz_state(qubits: int) -> np.ndarray:
    ket = np.zeros(2**qubits, dtype=complex)
    ket[[0, -1]] = 2**-0.5
    return ket


@pytest.mark.parametrize("name", NAMES)
def test_elements_are_positive_and_sum_to_the_identity(name: str) -> None:
    elements = povm.find(name).elements
    np.testing.assert_allclose(elements.sum(axis=0), np.eye(2), atol=1e-15)  # a few roundings of numbers below 1
    np.testing.assert_allclose(elements, elements.conj().swapaxes(1, 2), atol=0)
    assert np.linalg.eigvalsh(elements).min() > -1e-15


def test_pauli4_is_three_ups_and_one_down() -> None:
    elements = povm.find("pauli4").elements
    ups = [projector(ZERO) / 3, projector(PLUS) / 3, projector(LEFT) / 3]
    down = (projector(ONE) + projector(MINUS) + projector(RIGHT)) / 3
    np.testing.assert_allclose(elements, [*ups, down], atol=1e-15)


def test_tetrahedral_is_symmetric() -> None:
    """tr(M_a M_b) = 1/4 on the diagonal and 1/12 off it, which only the corners of a regular tetrahedron give."""
    np.testing.assert_allclose(povm.find("tetrahedral").overlap, np.full((4, 4), 1 / 12) + np.eye(4) / 6, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_dual_frame_restores_any_state(name: str) -> None:
    frame, rng = povm.find(name), np.random.default_rng(0)
    root = rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2))
    rho = root @ root.conj().T / np.trace(root @ root.conj().T)
    law = np.einsum("aij,ji->a", frame.elements, rho)
    # The overlap of pauli4 has condition 13, so that a handful of roundings become at most about 1e-14.
    np.testing.assert_allclose(np.einsum("a,aij->ij", law, frame.dual), rho, atol=1e-14)


def dense_law(name: str, qubits: int, visibility: float) -> tuple[list[tuple[int, ...]], np.ndarray]:
    rho = visibility * projector(ghz_state(qubits)) + (1 - visibility) * np.eye(2**qubits) / 2**qubits
    outcomes = list(itertools.product(range(4), repeat=qubits))
    elements = povm.find(name).elements
    return outcomes, np.array([np.trace(rho @ kron([elements[a] for a in row])).real for row in outcomes])


def dense_values(name: str, outcomes: list[tuple[int, ...]], operator: np.ndarray) -> np.ndarray:
    """What one row contributes to the estimate: tr(D_a1 ⊗ … ⊗ D_aq O)."""
    dual = povm.find(name).dual
    return np.array([np.trace(kron([dual[a] for a in row]) @ operator).real for row in outcomes])


@pytest.mark.parametrize("visibility", [1.0, 0.8])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("observable", ["fidelity", "XYY", "ZIZ"])
def test_predicted_error_is_that_of_the_enumerated_law(observable: str, name: str, visibility: float) -> None:
    pauli = {"I": np.eye(2), "X": povm.PAULI["X"], "Y": povm.PAULI["Y"], "Z": povm.PAULI["Z"]}
    fidelity = observable == "fidelity"
    operator = projector(ghz_state(3)) if fidelity else kron([pauli[letter] for letter in observable])
    outcomes, law = dense_law(name, 3, visibility)
    values = dense_values(name, outcomes, operator)
    mean = law @ values
    # XYY is −1 in the GHZ state and ZIZ is +1; noise takes part of either, and leaves 1/8 of the fidelity.
    ideal = {"fidelity": visibility + (1 - visibility) / 8, "XYY": -visibility, "ZIZ": visibility}[observable]
    assert mean == pytest.approx(ideal, abs=1e-12)
    exact = np.sqrt((law @ values**2 - mean**2) / 1000)
    assert povm.predicted_error(observable, 3, 1000, name, visibility=visibility) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_means_over_the_rows(name: str) -> None:
    """Every outcome of three qubits once: the estimate is then the plain mean of the dense values."""
    outcomes, _ = dense_law(name, 3, 1.0)
    rows = np.array(outcomes, dtype=np.uint8)
    for operator, estimate in (
        (projector(ghz_state(3)), povm.ghz_fidelity(rows, name, max_error=9)),
        (kron([povm.PAULI["X"]] * 3), povm.expectation(rows, "XXX", name, max_error=9)),
        (kron([np.eye(2), povm.PAULI["Y"], povm.PAULI["Z"]]), povm.expectation(rows, {1: "Y", 2: "Z"}, name)),
        (kron([np.eye(2), np.eye(2), projector(PLUS)]), povm.expectation(rows, {2: projector(PLUS)}, name)),
    ):
        values = dense_values(name, outcomes, operator)
        assert estimate.value == pytest.approx(values.mean(), abs=1e-12)
        assert estimate.standard_error == pytest.approx(values.std(ddof=1) / 8, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_pair_expectations_are_the_expectations_of_pairs(name: str) -> None:
    rows = ghz(5, name).sample(2000, seed=3)
    value, error = povm.pair_expectations(rows, "Z", name)
    for i, j in itertools.combinations(range(5), 2):
        one = povm.expectation(rows, {i: "Z", j: "Z"}, name)
        # A product may round its two triangles differently.
        assert (value[i, j], value[j, i]) == pytest.approx((one.value, one.value), rel=1e-9)
        both = (one.standard_error, one.standard_error)
        assert (error[i, j], error[j, i]) == pytest.approx(both, rel=1e-6)  # from a difference of squares
    np.testing.assert_allclose(np.diag(value), 1, atol=1e-12)
    # √(1 − 1) from roundings of 1e-15 or so
    np.testing.assert_allclose(np.diag(error), 0, atol=1e-7)


def test_six_qubits_give_back_the_state() -> None:
    """From 10⁵ rows: fidelity, ⟨ZZ⟩ and ⟨X…X⟩ are 1 within four standard errors (one seed in 16,000 would fail)."""
    rows = ghz(6).sample(100_000, seed=0)
    fidelity = povm.ghz_fidelity(rows)
    assert abs(fidelity.value - 1) < 4 * fidelity.standard_error
    assert povm.predicted_error("fidelity", 6, 100_000) == pytest.approx(0.0162, abs=0.0001)
    # By enumeration the kurtosis of the estimator is 12.3, so that its standard deviation has a relative error of
    # √((12.3 − 1)/4n) = 0.53 %; five times that is allowed.
    assert fidelity.standard_error == pytest.approx(0.0162, rel=0.027)
    flips = povm.expectation(rows, "XXXXXX")
    assert abs(flips.value - 1) < 4 * flips.standard_error
    value, error = povm.pair_expectations(rows)
    pairs = np.triu_indices(6, 1)
    # Fifteen pairs: 4.5 standard errors for all of them together are as rare as four for one.
    assert (abs(value - 1)[pairs] < 4.5 * error[pairs]).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_density_matrix_of_a_law_is_the_state(name: str) -> None:
    """A random mixed state of three qubits, which no permutation of the qubits leaves as it is."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8)) + 1j * rng.normal(size=(8, 8))
    state = root @ root.conj().T / np.trace(root @ root.conj().T)
    elements = povm.find(name).elements
    law = np.array(
        [np.trace(state @ kron([elements[a] for a in row])).real for row in itertools.product(range(4), repeat=3)]
    )
    np.testing.assert_allclose(povm.density_matrix(law, name), state, atol=1e-12)


def test_rows_and_counts_are_taken_for_their_frequencies() -> None:
    rows = np.array([[0, 3], [0, 3], [2, 1], [1, 1]])
    law = np.zeros(16)
    law[[3, 9, 5]] = 0.5, 0.25, 0.25
    counted = counts({"03": 2, "21": 1, "11": 1}, states=4)
    for outcomes in (rows, counted):
        np.testing.assert_allclose(povm.density_matrix(outcomes), povm.density_matrix(law), atol=1e-12)
    assert povm.expectation(counted, "ZI", max_error=9) == povm.expectation(rows, "ZI", max_error=9)


def test_noise_lowers_the_fidelity() -> None:
    fidelity = povm.ghz_fidelity(ghz(4, visibility=0.6).sample(100_000, seed=1))
    assert abs(fidelity.value - (0.6 + 0.4 / 16)) < 4 * fidelity.standard_error
    assert fidelity.standard_error < 0.01


def test_twenty_qubits_are_refused_with_the_figure() -> None:
    rows = ghz(20).sample(1000, seed=0)
    assert povm.predicted_error("fidelity", 20, 100_000) == pytest.approx(1.98, abs=0.01)
    with pytest.raises(
        ValueError, match=r"20 qubits from 1,000 samples has a standard error of 20 .*classical_fidelity"
    ):
        povm.ghz_fidelity(rows)
    with pytest.raises(ValueError, match=r"standard error of 2\.3e\+04 .*max_error=1"):
        povm.expectation(rows, "X" * 20)
    assert povm.ghz_fidelity(rows, max_error=100).standard_error > 0
    assert (
        abs(povm.expectation(rows, {0: "Z", 19: "Z"}).value - 1)
        < 4 * povm.expectation(rows, {0: "Z", 19: "Z"}).standard_error
    )
    assert povm.predicted_error("fidelity", 4000, 100_000) == np.inf


def test_classical_fidelity() -> None:
    data = ghz(5, "pauli4")
    rows = data.sample(20_000, seed=2)
    own = data.log_weight(rows)
    assert povm.classical_fidelity(own, own) == (1.0, 0.0)
    uniform = np.full(len(rows), -5 * np.log(4))
    exact = np.sqrt(data.pmf / 4**5).sum()
    found = povm.classical_fidelity(own, uniform)
    # E[Q/P] ≤ 1, so that the standard error of the mean is at most √((1 − F²)/n); four of them.
    bound = np.sqrt((1 - exact**2) / len(rows))
    assert found.standard_error < 1.1 * bound
    assert abs(found.value - exact) < 4 * bound
    # A law that gives half of the rows nothing has half the fidelity, up to the same error.
    half = np.where(np.arange(len(rows)) % 2, own, -np.inf)
    assert povm.classical_fidelity(own, half).value == 0.5


def test_a_classical_fidelity_above_one_warns() -> None:
    """The law of the training rows themselves has a mean √(Q/P) above 1 on them, and below 1 on fresh rows."""
    data = ghz(5, "pauli4")
    rows, fresh = data.sample(2_000, seed=2), data.sample(2_000, seed=3)
    places = 4 ** np.arange(5)
    seen = np.bincount(rows @ places, minlength=4**5)
    learnt = np.log((seen + 0.1) / (seen + 0.1).sum())
    with pytest.warns(UserWarning, match=r"classical fidelity is 1\.\d+ ± 0\.\d+.*training rows\? draw fresh ones"):
        found = povm.classical_fidelity(data.log_weight(rows), learnt[rows @ places])
    assert found.value > 1
    assert povm.classical_fidelity(data.log_weight(fresh), learnt[fresh @ places]).value < 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: povm.find("tetra"), "unknown measurement 'tetra'; there are: tetrahedral, pauli4"),
        (lambda: povm.expectation(np.zeros((4, 3), int), "XX"), "'XX' has 2 letters, and there are 3 qubits"),
        (lambda: povm.expectation(np.zeros((4, 3), int), "XQX"), "unknown operator 'Q'"),
        (lambda: povm.expectation(np.zeros((4, 3), int), {3: "X"}), "acts on qubit 3; they are numbered 0 … 2"),
        (lambda: povm.expectation(np.zeros((4, 3), int), {0: np.eye(3)}), "Hermitian 2×2 matrix"),
        (lambda: povm.ghz_fidelity(np.array([[0, 1], [0, 4]])), "outcome 4 in row 1, qubit 1; outcomes are 0 … 3"),
        (lambda: povm.ghz_fidelity(np.zeros((4, 3))), "their type is float64"),
        (lambda: povm.ghz_fidelity(np.zeros(4, int)), r"the shape is \(4,\)"),
        (lambda: povm.density_matrix(np.ones(8) / 8), "a law of 8 outcomes is not one of 1 to 10 qubits"),
        (lambda: povm.density_matrix(np.zeros((2, 11), int)), "11 qubits have a state of"),
        (lambda: povm.classical_fidelity(np.zeros(3), np.zeros(4)), r"\(3,\) and \(4,\)"),
        (lambda: povm.classical_fidelity(np.array([0, -np.inf]), np.zeros(2)), "log_p is -inf at row 1"),
        (lambda: povm.classical_fidelity(np.zeros(2), np.array([np.nan, 0])), "log_q is nan at row 0"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
