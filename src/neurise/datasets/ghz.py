"""Outcomes of four-outcome measurements on the qubits of a GHZ state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from neurise import checks
from neurise.dataset import Dataset
from neurise.povm import Povm, find
from neurise.space import Space

MOST_QUBITS = 2**20
"""A row of so many outcomes is a megabyte."""
ENUMERABLE = 2**24
"""The largest law that is written out: 128 MB."""

RESCALE_EVERY = 64
"""Sites between two scalings of the running products: a site changes the larger of them by at most a factor 2."""


def ghz(qubits: int = 20, povm: str = "tetrahedral", visibility: float = 1.0) -> Dataset:
    r"""Outcomes 0 … 3 of a measurement on each qubit of :math:`\rho = v\,|GHZ\rangle\langle GHZ| + (1-v)\, I/2^q`.

    :math:`|GHZ\rangle = (|0\dots0\rangle + |1\dots1\rangle)/\sqrt2`, and ``povm`` is ``"tetrahedral"`` or ``"pauli4"`` (see
    :mod:`neurise.povm`). With v the ``visibility``,

    .. math:: P(a) = \tfrac v2 \Bigl[\prod_i \langle 0|M_{a_i}|0\rangle + \prod_i \langle 1|M_{a_i}|1\rangle
       + 2\,\mathrm{Re} \prod_i \langle 0|M_{a_i}|1\rangle\Bigr] + (1-v) \prod_i \tfrac12 \mathrm{tr} M_{a_i}.

    Samples are exact at any number of qubits; ``log_weight`` is normalised: it is log P in nats; the pmf is there up to
    12 qubits. Fewer than all qubits never see the coherence between the two branches, so that pair correlations cannot
    tell the state from a classical mixture: look at :func:`neurise.povm.ghz_fidelity` or ``classical_fidelity`` as well.

    >>> import neurise
    >>> neurise.datasets.ghz(3).sample(5, seed=0).shape
    (5, 3)
    """
    if isinstance(qubits, bool) or qubits != int(qubits) or qubits < 2:
        raise ValueError(f"qubits must be a whole number, at least 2, got {qubits}")
    checks.count("qubits", qubits, MOST_QUBITS)
    if not 0 <= visibility <= 1:
        raise ValueError(f"visibility must be between 0 and 1, got {visibility}")
    law = _Law(int(qubits), find(povm), float(visibility))
    space = Space(law.qubits, 4)
    return Dataset(
        f"ghz(qubits={law.qubits}, povm={law.povm.name!r}, visibility={law.visibility:g})",
        space,
        np.arange(4, dtype=np.uint8),
        law=law.pmf if space.size <= ENUMERABLE else None,
        draw=law.draw,
        log_weight=law.log_prob,
        info={"povm": law.povm.name, "visibility": law.visibility, "log_weight": "log P, normalised"},
    )


@dataclass(frozen=True, eq=False)
class _Law:
    r"""The law above with :math:`w_a = \tfrac12 \mathrm{tr} M_a` taken out of every factor.

    With :math:`M_a = w_a(I + r_a \cdot \sigma)` what is left of the factors is :math:`1 + r_z` and :math:`1 - r_z` for the
    two branches, 1 for the noise, and :math:`r_x - i r_y` for the coherence. They are exact numbers wherever the terms
    cancel, so that outcomes which cannot occur have probability zero and not 1e-17.
    """

    qubits: int
    povm: Povm
    visibility: float

    @cached_property
    def branch(self) -> np.ndarray:
        """Factors of the two branches and of the noise, (3, outcomes)."""
        z = self.povm.bloch[:, 2]
        return np.stack([1 + z, 1 - z, np.ones(4)])

    @cached_property
    def coherence(self) -> np.ndarray:
        """Factors of the coherence, (outcomes,) complex."""
        return np.asarray(self.povm.bloch[:, 0] - 1j * self.povm.bloch[:, 1])

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n rows, one site after the other, carrying the products of what is drawn so far.

        The chance of the next outcome is the law summed over all later sites. That sum takes away the coherence, because
        ΣM = I: it enters at the last site only.
        """
        x = np.empty((n, self.qubits), dtype=np.uint8)
        run = _Products(self, n)
        for site in range(self.qubits):
            # Not by @: for so thin a matrix, waking the threads of BLAS takes longer than the product.
            terms = np.einsum("ka,kn->an", self.branch, run.branches)  # (outcomes, n)
            if site == self.qubits - 1:
                terms += np.multiply.outer(self.coherence, run.coherence).real
            terms *= self.povm.weights[:, None]
            np.cumsum(terms.clip(min=0, out=terms), axis=0, out=terms)
            # The last threshold is the total, and a uniform is below 1: an outcome without weight is never drawn.
            x[:, site] = (rng.random(n) * terms[3] >= terms[:3]).sum(axis=0)
            run.multiply(x[:, site])
        return x

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        """Return log P of each row, (N,), in nats; −∞ for what cannot occur."""
        x = np.asarray(X)
        if x.ndim != 2 or x.shape[1] != self.qubits:
            raise ValueError(f"rows of {self.qubits} outcomes are needed; the shape is {x.shape}")
        wrong = ~np.isin(x, (0, 1, 2, 3))
        if wrong.any():
            row, site = np.argwhere(wrong)[0].tolist()
            raise ValueError(f"outcome {x[row, site]} in row {row}, qubit {site}; outcomes are 0 … 3")
        x, run = x.astype(np.uint8), _Products(self, len(x))
        log_weight = np.zeros(len(x))
        for site in range(self.qubits):
            run.multiply(x[:, site])
            log_weight += np.log(self.povm.weights)[x[:, site]]
        with np.errstate(divide="ignore"):
            return np.asarray(log_weight + np.log(run.total().clip(min=0)) + np.log(2) * run.exponent)

    def pmf(self) -> np.ndarray:
        """All 4^q probabilities: the products over two halves of the qubits, put together by one matrix product."""
        first, second = (self._half(n) for n in (self.qubits // 2, self.qubits - self.qubits // 2))
        v = self.visibility
        left = np.column_stack([v / 2 * first[0], v / 2 * first[1], (1 - v) * first[2], v * first[3], -v * first[4]])
        law = np.asarray(left @ np.stack(second[:5]))
        np.maximum(law, 0, out=law)
        law *= first[5][:, None]
        law *= second[5]
        return law.ravel()

    def _half(self, sites: int) -> list[np.ndarray]:
        """Products over all outcomes of some sites: branches, noise, coherence (re, im), weights; each (4^sites,)."""
        powers = [
            reduce(np.multiply.outer, [factor] * sites).ravel()
            for factor in (*self.branch, self.coherence, self.povm.weights)
        ]
        return [*powers[:3], powers[3].real, powers[3].imag, powers[4]]


class _Products:
    """The running products of n rows, with their shares in the law; true values are these times 2^exponent."""

    def __init__(self, law: _Law, n: int) -> None:
        v = law.visibility
        self.law, self.sites = law, 0
        self.branches = np.repeat([[v / 2], [v / 2], [1 - v]], n, axis=1)  # (3, n)
        self.coherence = np.full(n, v, dtype=complex)
        self.exponent = np.zeros(n)

    def multiply(self, outcome: np.ndarray) -> None:
        """Take in the outcome of one more site, (n,)."""
        self.branches *= self.law.branch[:, outcome]
        self.coherence *= self.law.coherence[outcome]
        self.sites += 1
        if self.sites % RESCALE_EVERY == 0:
            _, exponent = np.frexp(self.branches.max(axis=0))
            # By a power of two, which changes no digit, so that what cancels exactly still does.
            self.branches = np.ldexp(self.branches, -exponent)
            self.coherence = np.ldexp(self.coherence.real, -exponent) + 1j * np.ldexp(self.coherence.imag, -exponent)
            self.exponent += exponent

    def total(self) -> np.ndarray:
        """The law over the product of the weights, (n,)."""
        return np.asarray(self.branches.sum(axis=0) + self.coherence.real)
