r"""Four-outcome measurements of single qubits, and the way back from outcomes to physics.

A measurement is four positive matrices :math:`M_a` with :math:`\sum_a M_a = I`; outcome a of a qubit in state ρ has the
probability :math:`\mathrm{tr}(\rho M_a)`. Both measurements here are informationally complete: the overlap matrix
:math:`T_{ab} = \mathrm{tr}(M_a M_b)` is invertible, and with the dual frame :math:`D_a = \sum_b T^{-1}_{ab} M_b` the state
is :math:`\rho = \sum_a P(a)\, D_a`. On many qubits, with one outcome each,

.. math:: \langle O_1 \otimes \dots \otimes O_q \rangle = \mathbb{E}_{a \sim P} \prod_i c_i(a_i),
   \qquad c_i(a) = \mathrm{tr}(D_a O_i),

so that a mean over samples estimates it. The factors exceed 1, and the variance grows exponentially with the number of
sites on which O acts: local observables can be had at any size, global ones up to about eight qubits.

>>> import neurise
>>> rows = neurise.datasets.ghz(3).sample(4000, seed=0)
>>> found = neurise.povm.ghz_fidelity(rows)
>>> bool(abs(found.value - 1) < 5 * found.standard_error)
True
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from neurise import holdings, shown

PAULI: Mapping[str, np.ndarray] = {
    "I": np.eye(2, dtype=complex),
    "X": np.array([[0, 1], [1, 0]], dtype=complex),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.array([[1, 0], [0, -1]], dtype=complex),
}

UNITS = np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]], dtype=complex)
r"""The four products of :math:`2|GHZ\rangle\langle GHZ| = \sum_k U_k^{\otimes q}`: |0⟩⟨0|, |1⟩⟨1|, |0⟩⟨1|, |1⟩⟨0|."""

USEFUL = 1.0
"""A standard error beyond this says nothing about a quantity between −1 and 1."""

ABOVE = 3.0
"""Standard errors above 1 at which a fidelity deserves a warning: of honest ones about one in 700 gets there, or fewer."""

ROUNDING = 1e-6
"""By how much two single-precision logarithms of the same law may lift a fidelity above 1."""

MOST_RESTORED = 10
"""Qubits of which the whole state is given back: its matrix takes 16 MB."""

Operator: TypeAlias = "str | np.ndarray"
"""A letter I, X, Y, Z, or a Hermitian 2×2 matrix."""

Observable: TypeAlias = "str | Mapping[int, Operator]"
"""A tensor product: one letter per qubit, as ``"XXX"``; or operators by site, I elsewhere, as ``{0: "Z", 4: "Z"}``."""


class Estimate(NamedTuple):
    """A mean over samples, and its standard error.

    >>> import neurise
    >>> rows = neurise.datasets.ghz(3).sample(4000, seed=0)
    >>> found = neurise.povm.expectation(rows, 'ZZI')
    >>> bool(abs(found.value - 1) < 5 * found.standard_error)
    True
    """

    value: np.ndarray | float
    standard_error: np.ndarray | float


@dataclass(frozen=True, eq=False)
class Povm:
    r"""A measurement given by its weights and Bloch vectors: :math:`M_a = w_a (I + r_a \cdot \sigma)`.

    >>> import neurise, numpy as np
    >>> np.allclose(neurise.povm.find('tetrahedral').elements.sum(axis=0), np.eye(2))     # Σ M_a = 1
    True
    """

    name: str
    weights: np.ndarray  # (4,), tr(M_a) / 2
    bloch: np.ndarray  # (4, 3), of length at most 1, or M_a would not be positive

    def __repr__(self) -> str:
        return shown.record(self)

    @cached_property
    def elements(self) -> np.ndarray:
        """The matrices M_a, (4, 2, 2) complex."""
        sigma = np.stack([PAULI[letter] for letter in "XYZ"])
        return np.asarray(self.weights[:, None, None] * (PAULI["I"] + np.einsum("ak,kij->aij", self.bloch, sigma)))

    @cached_property
    def overlap(self) -> np.ndarray:
        r"""The overlaps :math:`T_{ab} = \mathrm{tr}(M_a M_b)`, (4, 4)."""
        return np.asarray(np.einsum("aij,bji->ab", self.elements, self.elements).real)

    @cached_property
    def dual(self) -> np.ndarray:
        r"""The dual frame :math:`D_a = \sum_b T^{-1}_{ab} M_b`: :math:`\mathrm{tr}(D_a M_b) = \delta_{ab}`; (4, 2, 2)."""
        return np.asarray(np.einsum("ab,bij->aij", np.linalg.inv(self.overlap), self.elements))

    def coefficients(self, operator: Operator) -> np.ndarray:
        r"""The values :math:`c(a) = \mathrm{tr}(D_a O)` whose mean over outcomes is ⟨O⟩, (4,)."""
        return np.asarray(np.einsum("aij,ji->a", self.dual, _matrix(operator)).real)


_LEAN, _SIDE = np.sqrt(2) / 3, np.sqrt(2 / 3)

TETRAHEDRAL = Povm(
    "tetrahedral",
    np.full(4, 1 / 4),
    np.array([[0, 0, 1], [2 * _LEAN, 0, -1 / 3], [-_LEAN, _SIDE, -1 / 3], [-_LEAN, -_SIDE, -1 / 3]]),
)
r"""The symmetric measurement, :math:`M_a = \tfrac14 (I + s_a \cdot \sigma)`, with the :math:`s_a` at the corners of a
regular tetrahedron, the first of them up."""

PAULI4 = Povm(
    "pauli4",
    np.array([1 / 6, 1 / 6, 1 / 6, 1 / 2]),
    np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [-1 / 3, -1 / 3, -1 / 3]]),
)
r"""Measure along Z, X or Y, each in a third of the cases; keep the three "up" outcomes apart but not the "down" ones:
:math:`M_0 = \tfrac13 |0\rangle\langle 0|`, :math:`M_1 = \tfrac13 |{+}\rangle\langle{+}|`,
:math:`M_2 = \tfrac13 |{+i}\rangle\langle{+i}|` and
:math:`M_3 = \tfrac13 (|1\rangle\langle 1| + |{-}\rangle\langle{-}| + |{-i}\rangle\langle{-i}|)`."""

POVMS = {povm.name: povm for povm in (TETRAHEDRAL, PAULI4)}


def find(name: str | Povm) -> Povm:
    """Return the measurement of a name.

    >>> import neurise
    >>> neurise.povm.find('pauli4').name
    'pauli4'
    """
    if isinstance(name, Povm):
        return name
    if name not in POVMS:
        raise ValueError(f"unknown measurement {name!r}; there are: {', '.join(POVMS)}")
    return POVMS[name]


def expectation(
    samples: np.ndarray, observable: Observable, povm: str | Povm = "tetrahedral", *, max_error: float = USEFUL
) -> Estimate:
    """Expectation of a tensor product of single-qubit operators, from outcomes (N, qubits), by the dual frame.

    Refused where the standard error would exceed ``max_error``, as :func:`predicted_error` foretells it.

    >>> import neurise
    >>> rows = neurise.datasets.ghz(3).sample(4000, seed=0)
    >>> found = neurise.povm.expectation(rows, 'ZZI')               # 1 in a GHZ state
    >>> bool(abs(found.value - 1) < 5 * found.standard_error)
    True
    """
    frame, x = find(povm), _outcomes(samples)
    operators = _operators(observable, x.shape[1])
    _require_useful(predicted_error(observable, x.shape[1], len(x), frame), max_error, "this expectation", x.shape)
    product = np.ones(len(x))
    for site, operator in operators.items():
        product *= frame.coefficients(operator)[x[:, site]]
    return _mean(product)


def pair_expectations(samples: np.ndarray, operator: Operator = "Z", povm: str | Povm = "tetrahedral") -> Estimate:
    r"""All :math:`\langle O_i O_j \rangle`, (qubits, qubits), from outcomes (N, qubits) of any number of qubits.

    The diagonal is :math:`\langle O_i^2 \rangle`: 1 without error for a Pauli matrix.

    >>> import neurise
    >>> rows = neurise.datasets.ghz(3).sample(4000, seed=0)
    >>> neurise.povm.pair_expectations(rows).value.shape
    (3, 3)
    """
    frame, x = find(povm), _outcomes(samples)
    factors = frame.coefficients(operator)[x]
    value, square = factors.T @ factors / len(x), (factors**2).T @ factors**2 / len(x)
    own = frame.coefficients(_matrix(operator) @ _matrix(operator))[x]
    np.fill_diagonal(value, own.mean(axis=0))
    np.fill_diagonal(square, (own**2).mean(axis=0))
    return Estimate(value, np.sqrt((square - value**2).clip(min=0) / (len(x) - 1)))


def ghz_fidelity(samples: np.ndarray, povm: str | Povm = "tetrahedral", *, max_error: float = USEFUL) -> Estimate:
    r"""Fidelity :math:`\langle GHZ|\rho|GHZ\rangle` with the state :math:`(|0\dots0\rangle + |1\dots1\rangle)/\sqrt2`.

    .. math:: F = \mathbb{E}\,\tfrac12\Bigl[\prod_i \langle 0|D_{a_i}|0\rangle + \prod_i \langle 1|D_{a_i}|1\rangle
       + 2\,\mathrm{Re}\prod_i \langle 0|D_{a_i}|1\rangle\Bigr]

    Refused where the standard error would exceed ``max_error``, as :func:`predicted_error` foretells it; the
    :func:`classical_fidelity` has no such limit.

    >>> import neurise
    >>> rows = neurise.datasets.ghz(3).sample(4000, seed=0)
    >>> found = neurise.povm.ghz_fidelity(rows)
    >>> bool(abs(found.value - 1) < 5 * found.standard_error)
    True
    """
    frame, x = find(povm), _outcomes(samples)
    _require_useful(predicted_error("fidelity", x.shape[1], len(x), frame), max_error, "the fidelity", x.shape)
    dual, products = _traces(frame.dual), np.ones((len(UNITS), len(x)), dtype=complex)
    for site in range(x.shape[1]):
        products *= dual[:, x[:, site]]
    return _mean(0.5 * products.sum(axis=0).real)


def density_matrix(outcomes: Any, povm: str | Povm = "tetrahedral") -> np.ndarray:
    r"""Give back the state by linear inversion, :math:`\rho = \sum_a P(a)\, D_{a_1} \otimes \dots \otimes D_{a_q}`.

    ``outcomes`` are rows, (N, qubits), or counts of them, whose frequencies are taken for P; or P itself, a vector of all
    4^q probabilities, first qubit most significant, as :func:`neurise.exact.law` gives it for a model. The result is
    Hermitian, (2^q, 2^q), with trace 1. Noise in P may give it eigenvalues below zero.

    >>> import neurise
    >>> neurise.povm.density_matrix(neurise.datasets.ghz(2).pmf).real.round(2) + 0
    array([[0.5, 0. , 0. , 0.5],
           [0. , 0. , 0. , 0. ],
           [0. , 0. , 0. , 0. ],
           [0.5, 0. , 0. , 0.5]])
    """
    law = outcomes if np.ndim(outcomes) == 1 and np.asarray(outcomes).dtype.kind == "f" else _frequencies(outcomes)
    qubits = round(np.log(len(law)) / np.log(4))
    if len(law) != 4**qubits or not 1 <= qubits <= MOST_RESTORED:
        raise ValueError(
            f"a law of {len(law):,} outcomes is not one of 1 to {MOST_RESTORED} qubits with four outcomes each; fidelities "
            "and expectations need no matrix"
        )
    state = np.asarray(law, dtype=complex).reshape((4,) * qubits)
    for _ in range(qubits):  # the first axis of outcomes becomes the last two, a row and a column
        state = np.tensordot(state, find(povm).dual, axes=(0, 0))
    return state.transpose(*range(0, 2 * qubits, 2), *range(1, 2 * qubits, 2)).reshape(2**qubits, 2**qubits)


def _frequencies(outcomes: Any) -> np.ndarray:
    """Count rows of outcomes, and give all 4^q frequencies."""
    x = _outcomes(outcomes)
    if x.shape[1] > MOST_RESTORED:
        raise ValueError(
            f"{x.shape[1]} qubits have a state of 4^{x.shape[1]} numbers; at most {MOST_RESTORED} are restored"
        )
    codes = x.astype(np.int64) @ 4 ** np.arange(x.shape[1] - 1, -1, -1)
    return np.bincount(codes, minlength=4 ** x.shape[1]) / len(x)


def predicted_error(
    observable: Observable, qubits: int, samples: int, povm: str | Povm = "tetrahedral", *, visibility: float = 1.0
) -> float:
    r"""Exact standard error of an estimate from so many GHZ outcomes; ``"fidelity"`` stands for :func:`ghz_fidelity`.

    Law, estimator and its square are sums of products over the qubits, and so are the estimator's first two moments:
    :math:`\mathbb{E} \prod_i v_i(a_i) = \tfrac12 \sum_k \prod_i \sum_a v_i(a) \mathrm{tr}(U_k M_a)` in the pure state.

    >>> import neurise
    >>> few, many = (neurise.povm.predicted_error('ZZI', qubits=3, samples=n) for n in (1000, 4000))
    >>> round(few / many, 6)
    2.0
    """
    frame = find(povm)
    if isinstance(observable, str) and observable == "fidelity":
        dual = _traces(frame.dual)
        terms, scale = np.repeat(dual[:, None], qubits, axis=1), 0.5
    else:
        terms, scale = np.ones((1, qubits, 4), dtype=complex), 1.0
        for site, operator in _operators(observable, qubits).items():
            terms[0, site] = frame.coefficients(operator)
    squares = (terms[:, None] * terms[None]).reshape(-1, qubits, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = scale * _moment(terms, frame, visibility), scale**2 * _moment(squares, frame, visibility)
    # Beyond several hundred qubits the second moment overflows, and infinity is the honest answer.
    return float(np.sqrt(max(second - first**2, 0.0) / samples)) if np.isfinite(second) else np.inf


def classical_fidelity(log_p: np.ndarray, log_q: np.ndarray) -> Estimate:
    r"""Classical fidelity :math:`\sum_x \sqrt{P(x) Q(x)} = \mathbb{E}_{x \sim P} \sqrt{Q(x)/P(x)}` of two laws.

    Both arguments are natural logarithms at the same exact samples x of P, as in
    ``classical_fidelity(data.log_weight(x), model.log_prob(x))``. Since :math:`\mathbb{E}_P[Q/P] \le 1`, the standard
    error is at most :math:`\sqrt{(1 - F^2)/N}`, whatever the number of qubits.

    The samples must be independent of Q: fresh ones, as ``data.sample(n, seed)`` draws them, never the rows that the model
    was trained on. Those have a higher Q than their like, and the mean comes out too large. A warning says so where it
    exceeds 1 by more than three standard errors.

    >>> import neurise, numpy as np
    >>> p = np.log([0.5, 0.5])
    >>> float(neurise.povm.classical_fidelity(p, p).value)
    1.0
    """
    found = overlap(log_p, log_q)
    warn_above_one(found)
    return found


def overlap(log_p: np.ndarray, log_q: np.ndarray) -> Estimate:
    """Mean of √(Q/P) over rows, and its standard error: the fidelity, if the rows are what they should be.

    >>> import neurise, numpy as np
    >>> float(neurise.povm.overlap(np.log([0.5, 0.5]), np.log([0.5, 0.125])).value)
    0.75
    """
    p, q = np.asarray(log_p, dtype=float), np.asarray(log_q, dtype=float)
    if p.ndim != 1 or p.shape != q.shape or len(p) < 2:
        raise ValueError(
            f"two vectors of the same length, at least 2, are needed; the shapes are {p.shape} and {q.shape}"
        )
    for what, values, wrong in (("log_p", p, ~np.isfinite(p)), ("log_q", q, np.isnan(q) | (q == np.inf))):
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"{what} is {values[place]} at row {place}; the rows must be samples of P, where log_p is finite, and "
                "log_q the logarithm of a probability"
            )
    return _mean(np.exp(0.5 * (q - p)))


def warn_above_one(fidelity: Estimate) -> None:
    """Warn of a fidelity that is above 1 by more than its error explains.

    >>> import neurise
    >>> neurise.povm.warn_above_one(neurise.povm.Estimate(0.99, 0.01))      # nothing to warn of
    """
    value, error = fidelity
    if value > 1 + ABOVE * error + ROUNDING:
        warnings.warn(
            f"the classical fidelity is {value:.6g} ± {error:.2g}, and none is above 1: the rows are not independent samples "
            "of the law (were they the training rows? draw fresh ones), or a law is not normalised",
            stacklevel=3,
        )


def _moment(terms: np.ndarray, povm: Povm, visibility: float) -> float:
    """Expectation of a sum of products, (terms, qubits, 4), under the GHZ state mixed with noise."""
    pure = np.einsum("nia,ka->nki", terms, _traces(povm.elements)).prod(axis=-1).sum() / 2
    mixed = (terms @ povm.weights).prod(axis=-1).sum()
    return float((visibility * pure + (1 - visibility) * mixed).real)


def _traces(matrices: np.ndarray) -> np.ndarray:
    """The traces tr(U_k A_a) with the four products of a GHZ state, (4, outcomes)."""
    return np.asarray(np.einsum("aij,kji->ka", matrices, UNITS))


def _mean(values: np.ndarray) -> Estimate:
    return Estimate(float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5))


def _require_useful(error: float, limit: float, what: str, shape: tuple[int, ...]) -> None:
    if error > limit:
        raise ValueError(
            f"{what} on {shape[1]} qubits from {shape[0]:,} samples has a standard error of {error:.2g} in the GHZ state, "
            f"above max_error={limit:g}: it grows exponentially with the number of qubits acted on. Use "
            "classical_fidelity or local observables, or raise max_error"
        )


def _matrix(operator: Operator) -> np.ndarray:
    if isinstance(operator, str):
        if operator not in PAULI:
            raise ValueError(f"unknown operator {operator!r}; there are: {', '.join(PAULI)}, or a Hermitian 2×2 matrix")
        return PAULI[operator]
    matrix = np.asarray(operator, dtype=complex)
    if matrix.shape != (2, 2) or not np.allclose(matrix, matrix.conj().T):
        raise ValueError(f"an operator on a qubit is a Hermitian 2×2 matrix, got {np.asarray(operator).tolist()}")
    return matrix


def _operators(observable: Observable, qubits: int) -> dict[int, np.ndarray]:
    if isinstance(observable, str):
        if len(observable) != qubits:
            raise ValueError(
                f"the observable {observable!r} has {len(observable)} letters, and there are {qubits} qubits"
            )
        observable = {site: letter for site, letter in enumerate(observable) if letter != "I"}
    for site in observable:
        if not 0 <= site < qubits:
            raise ValueError(f"the observable acts on qubit {site}; they are numbered 0 … {qubits - 1}")
    return {site: _matrix(operator) for site, operator in observable.items()}


def _outcomes(samples: Any) -> np.ndarray:
    x = np.asarray(holdings.repeated(samples, "outcomes"))
    if x.ndim != 2 or len(x) < 2 or x.shape[1] < 1:
        raise ValueError(f"outcomes are (N, qubits) with at least two rows; the shape is {x.shape}")
    if x.dtype.kind not in "iu":
        raise ValueError(f"outcomes are whole numbers 0 … 3; their type is {x.dtype}")
    wrong = (x < 0) | (x > 3)
    if wrong.any():
        row, site = np.argwhere(wrong)[0].tolist()
        raise ValueError(f"outcome {x[row, site]} in row {row}, qubit {site}; outcomes are 0 … 3")
    return x
