r"""How much of an answer should come from each of several kinds of conditionals, by rows that none of them has learnt from.

With shares w that sum to 1, the answer at a site is :math:`\log \mu = \sum_k w_k \log \mu_k - \log Z`, and a row has the score
:math:`s(x) = -\sum_u \log \mu(x_u \mid x_{>u})`. An answer is *as good* as another where the mean of the difference of their
scores over the rows is within so many of its standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import torch
from torch import Tensor

from neurise.conditionals.base import Conditionals
from neurise.rows import Rows, are_counts

TENTHS, TWENTIETHS = 10, 20
"""Shares are multiples of these parts, of three kinds or more and of two."""
IMPOSSIBLE = -1e9
"""Nats: as good as −∞, of which there is no mean."""
TIE = 1e-9
"""Nats. Differences below are rounding."""
ERRORS = 2.0
"""Standard errors by which more parameters must be better to be taken, and by which networks that were trained for a short while
must be worse to be given up."""
NUMBERS = 2**22
"""Log-probabilities of one kind that are compared, at most."""


@dataclass(frozen=True, eq=False)
class Judges:
    """Rows held back, and which of their sites vary."""

    rows: Rows
    varies: Tensor  # (sites,)

    @classmethod
    def of(cls, rows: Rows, constant: Tensor, states: int) -> Judges:
        """Take as many of the rows as can be compared at once, on the device of the conditionals."""
        most = max(1, NUMBERS // (rows.x.shape[1] * states))
        if len(rows) > most:
            rows = rows.take(torch.linspace(0, len(rows) - 1, most, dtype=torch.float64).round().long())
        return cls(rows.to(constant.device), constant < 0)

    @torch.no_grad()
    def answers(self, asked: Conditionals) -> Tensor:
        """Return the log-conditionals of the sites that vary, (n, sites, states) float64."""
        found = []
        for part in asked.blocks(len(self.rows), cached=True):
            y = None if self.rows.y is None else self.rows.y[part]
            found.append(asked.log_conditionals(self.rows.x[part], y)[:, self.varies].double().clamp(min=IMPOSSIBLE))
        return torch.cat(found)

    def scores(self, answers: Tensor) -> Tensor:
        """Return the score of each row, (n,)."""
        tokens = self.rows.x[:, self.varies].long()[..., None]
        return -answers.gather(-1, tokens).squeeze(-1).sum(1)

    def mean_and_error(self, values: Tensor) -> tuple[float, float]:
        """Return the mean of numbers that rows have, (n,), and its standard error; a row of count m is m rows.

        One row says nothing of its own error, which is infinite then.
        """
        mass = torch.ones_like(values) if self.rows.weights is None else self.rows.weights.to(values)
        total = mass.sum()
        mean = mass @ values / total
        each = mass if self.rows.weights is not None and are_counts(self.rows.weights) else mass**2
        error = float((each @ (values - mean) ** 2).sqrt() / total)
        return float(mean), math.inf if float(total**2 / each.sum()) <= 1 else error

    def is_as_good(self, scores: Tensor, best: Tensor, errors: float) -> bool:
        """Whether scores are worse than others by no more than so many standard errors of the difference."""
        mean, error = self.mean_and_error(scores - best)
        return mean <= errors * error + TIE


def mixed(answers: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """Return the answer of several kinds together; one that has no share is not asked."""
    asked = [share * answer for answer, share in zip(answers, shares, strict=True) if share]
    return torch.log_softmax(reduce(torch.add, asked), dim=-1)


def find_shares(
    judges: Judges, answers: Sequence[Tensor], parameters: Sequence[int], errors: float = ERRORS
) -> list[float]:
    """Return the shares of all kinds: those of the fewest parameters that are as good as the best, to so many errors.

    For every set of kinds the best shares are found. Of the sets that are as good as the best of all the one with the fewest
    ``parameters`` is taken, so that a kind that is as good alone as with the others is taken alone; but no set that one with
    fewer parameters beats.
    """
    best: dict[tuple[bool, ...], tuple[float, tuple[float, ...], Tensor]] = {}
    for shares in _grid(len(answers)):
        scores = judges.scores(mixed(answers, shares))
        mean, kinds = judges.mean_and_error(scores)[0], tuple(share > 0 for share in shares)
        if kinds not in best or mean < best[kinds][0] - TIE:
            best[kinds] = (mean, shares, scores)
    least = min(best.values(), key=lambda entry: entry[0])
    order = sorted(best, key=lambda kinds: sum(p for p, there in zip(parameters, kinds, strict=True) if there))
    lowest = math.inf
    for kinds in order:
        mean, shares, scores = best[kinds]
        if mean < lowest and judges.is_as_good(scores, least[2], errors):
            return list(shares)
        lowest = min(lowest, mean)
    return list(least[1])  # as good as itself: there is always one


def are_behind(judges: Judges, networks: Tensor, solved: Tensor) -> bool:
    """Whether networks that were trained for a short while need not be trained any further.

    So where they are clearly worse, and no share of them makes the answer better than what was solved for is alone: they know
    nothing that it does not.
    """
    alone = judges.scores(solved)
    if judges.is_as_good(judges.scores(networks), alone, ERRORS):
        return False
    shares = [(1 - share / TWENTIETHS, share / TWENTIETHS) for share in range(1, TWENTIETHS)]
    together = [judges.scores(mixed([solved, networks], own)) for own in shares]
    best = min(together, key=lambda scores: judges.mean_and_error(scores)[0])
    return judges.is_as_good(alone, best, 1.0)


def _grid(kinds: int) -> list[tuple[float, ...]]:
    """All shares of so many kinds that are multiples of a small part."""
    parts = TWENTIETHS if kinds == 2 else TENTHS
    if kinds == 1:
        return [(1.0,)]
    found = []
    for first in product(range(parts + 1), repeat=kinds - 1):
        if sum(first) <= parts:
            found.append((*(own / parts for own in first), (parts - sum(first)) / parts))
    return found
