r"""Evaluate a model on rows with one or two sites changed: by likelihoods or by single-site conditionals.

Second differences of :math:`\log \mu` over two sites need no normalisation, so a likelihood gives them, and so do the
conditionals of single sites.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from neurise.space import Space

LOOKUP = 2**18
"""Configurations up to which the likelihood of all of them is computed once, where that is less than asking row by row."""
NUMBERS = 2**24
"""Numbers that are held at a time."""
TOKENS = 2**17
"""Tokens of the configurations that a likelihood is asked for at a time: what can be counted while it goes on."""


def _uncounted(number: int) -> None:
    """Count nothing."""


class LawSource(Protocol):
    """A source of the law of one and of two sites given the others."""

    space: Space
    count: Callable[[int], None]  # called with the number of configurations that the model has just looked at

    def rows_at_once(self) -> int:
        """How many rows to ask for at a time."""

    def evaluations(self, rows: int) -> int:
        """How many configurations the model has to evaluate."""

    def tables(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Log-probabilities up to a constant for each row of tokens, (R, sites).

        Of one site, :math:`\log \mu(x_i = a \mid x_{-i})`, (R, sites, states); and of two,
        :math:`\log \mu(x_i = a, x_j = b \mid \text{the others})`, (R, pairs, states, states), pairs in the order of
        :func:`pairs_of`.
        """


def pairs_of(sites: int) -> np.ndarray:
    """All pairs i < j, (pairs, 2)."""
    return np.array(list(combinations(range(sites), 2)), dtype=np.int64).reshape(-1, 2)


class Likelihood:
    """By the likelihoods of a row, of all rows with one site changed, and of all with two."""

    def __init__(self, log_prob: Callable[[np.ndarray], np.ndarray], space: Space) -> None:
        self.log_prob, self.space = log_prob, space
        self.count: Callable[[int], None] = _uncounted
        self.pairs = pairs_of(space.sites)
        self._law: np.ndarray | None = None
        others = space.states - 1
        self.variants = 1 + space.sites * others + len(self.pairs) * others**2

    def rows_at_once(self) -> int:
        """How many rows fit."""
        return max(1, NUMBERS // (self.variants * self.space.sites))

    def evaluations(self, rows: int) -> int:
        """Each row with its variants, but no more than there are configurations."""
        return min(rows * self.variants, self.space.size) if self.space.size <= LOOKUP else rows * self.variants

    def tables(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate every variant once: changes are counted from the token that is there, then put in their places."""
        states, sites, others = self.space.states, self.space.sites, self.space.states - 1
        changed = (x[:, None, :] + self._changes()) % states  # (R, variants, sites)
        value = self._values(changed.reshape(-1, sites)).reshape(len(x), -1)
        one = np.empty((len(x), sites, states))
        one[:, :, 0] = value[:, :1]
        one[:, :, 1:] = value[:, 1 : 1 + sites * others].reshape(len(x), sites, others)
        first, second = self.pairs.T
        two = np.empty((len(x), len(self.pairs), states, states))
        two[:, :, :, 0], two[:, :, 0, :] = one[:, first], one[:, second]
        two[:, :, 1:, 1:] = value[:, 1 + sites * others :].reshape(len(x), -1, others, others)
        turn = (np.arange(states) - x[:, :, None].astype(np.int64)) % states  # (R, sites, states): token → change
        one = np.take_along_axis(one, turn, axis=2)
        two = np.take_along_axis(two, turn[:, first, :, None], axis=2)
        return one, np.take_along_axis(two, turn[:, second, None, :], axis=3)

    def _changes(self) -> np.ndarray:
        """What is added to a row: nothing; 1 … p−1 at each site; the same at each pair, (variants, sites)."""
        kind: Any = np.uint8 if self.space.states <= 128 else np.uint16  # sums of two tokens must fit
        others, sites = np.arange(1, self.space.states, dtype=kind), self.space.sites
        unit = np.eye(sites, dtype=kind)
        single = others[None, :, None] * unit[:, None, :]  # (sites, p − 1, sites)
        first, second = self.pairs.T
        double = single[first][:, :, None] + single[second][:, None, :]  # (pairs, p − 1, p − 1, sites)
        return np.concatenate([np.zeros((1, sites), kind), single.reshape(-1, sites), double.reshape(-1, sites)])

    def _values(self, tokens: np.ndarray) -> np.ndarray:
        if self.space.size > LOOKUP:
            return self._evaluated(tokens)
        if self._law is None:
            self._law = self._evaluated(self.space.configurations().numpy())
        place = np.zeros(len(tokens), dtype=np.int64)
        for site in range(self.space.sites):
            place = place * self.space.states + tokens[:, site]
        values: np.ndarray = self._law[place]
        return values

    def _evaluated(self, tokens: np.ndarray) -> np.ndarray:
        """Ask the model, a block at a time."""
        block, values = max(1, TOKENS // self.space.sites), []
        for start in range(0, len(tokens), block):
            values.append(self.log_prob(tokens[start : start + block]))
            self.count(len(values[-1]))
        return np.concatenate(values)


class SiteConditionals:
    r"""By the conditionals of single sites, :math:`c_i(a \mid x_{-i})`.

    With x the row as it is, Brook's lemma gives the law of two sites from either end,

    .. math:: \log \mu(a, b) \doteq \log c_j(b \mid x_i) + \log \frac{c_i(a \mid b)}{c_i(x_i \mid b)}
       \doteq \log c_i(a \mid x_j) + \log \frac{c_j(b \mid a)}{c_j(x_j \mid a)},

    up to constants. Learnt conditionals need not agree with each other: the mean of both is taken.
    """

    def __init__(self, conditional: Callable[[np.ndarray, int], np.ndarray], space: Space) -> None:
        self.conditional, self.space, self.pairs = conditional, space, pairs_of(space.sites)
        self.count: Callable[[int], None] = _uncounted

    def rows_at_once(self) -> int:
        """How many rows fit."""
        return max(1, NUMBERS // (self.space.sites * self.space.states) ** 2)

    def evaluations(self, rows: int) -> int:
        """Each site in each row, with each other site changed."""
        return rows * self.space.sites * self._of_a_site()

    def _of_a_site(self) -> int:
        return 1 + (self.space.sites - 1) * (self.space.states - 1)

    def tables(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ask for every site with every other site set to every state."""
        sites, states, count = self.space.sites, self.space.states, len(x)
        tokens = np.arange(states)
        one = np.empty((count, sites, states))
        given = np.zeros((count, sites, sites, states, states))  # log c_i(a | x_j = b) at [row, i, j, a, b]
        for i in range(sites):
            changed = np.repeat(x[:, None, None, :], sites * states, axis=1).reshape(count, sites, states, sites)
            for j in range(sites):
                changed[:, j, :, j] = tokens
            asked = np.delete(changed, i, axis=1).reshape(-1, sites)
            with np.errstate(divide="ignore"):
                answer = np.log(self.conditional(np.concatenate([x, asked]), i))
            self.count(count * self._of_a_site())
            one[:, i] = answer[:count]
            among = np.delete(np.arange(sites), i)
            given[:, i, among] = answer[count:].reshape(count, sites - 1, states, states).swapaxes(2, 3)
        first, second = self.pairs.T
        ends = self._from(one, given, x, first, second), self._from(one, given, x, second, first).swapaxes(2, 3)
        return one, (ends[0] + ends[1]) / 2

    def _from(self, one: np.ndarray, given: np.ndarray, x: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Log-law of (a, b) at (i, j), through the present token of i, (R, pairs, states, states)."""
        own = given[:, i, j]  # (R, pairs, a, b)
        present = np.take_along_axis(own, x[:, i, None, None].astype(np.int64), axis=2)
        with np.errstate(invalid="ignore"):
            law = one[:, j][:, :, None, :] + own - present
        return np.where(np.isnan(law), -np.inf, law)
