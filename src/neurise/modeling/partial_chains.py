r"""Sums over missing values for models that generate a row site by site, from the last place of their order to the first.

.. math:: \log P(x) = \sum_u \log \mu(x_u \mid x_{>u})

What is missing at places before the first value that is there is generated after everything else, so that it sums to one and is
left out. Only what is missing *behind* a value that is there has to be summed over: exactly where its values are few, otherwise
by weighted particles (:mod:`neurise.sampling.clamped`).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from neurise import likelihood
from neurise.conditionals.base import Conditionals
from neurise.modeling.partial_rows import MOST, Completions, Estimate, completions, counts, drawn_from
from neurise.sampling.clamped import estimate_log_prob


class Lack(NamedTuple):
    """What of some rows is to be summed over, and what counts in the likelihood, (n, sites) booleans each."""

    summed: Tensor
    counted: Tensor

    @classmethod
    def of(cls, missing: Tensor, constant: Tensor) -> Lack:
        """Find both. A missing site that never varies depends on no other, and none on it: it sums to one by itself."""
        reached = (~missing).int().cummax(1).values.bool()  # from the first value that is there on
        summed = missing & reached & (constant < 0)
        return cls(summed, summed | ~missing)


def log_marginal(
    conditionals: Conditionals,
    x: Tensor,
    missing: Tensor,
    y: Tensor | None,
    *,
    constant: Tensor,
    digits: Tensor,
    generator: Generator,
) -> Estimate:
    """Return how likely what is there of the rows is, for one chain; everything is in the chain's order."""
    lack = Lack.of(missing, constant)
    small = counts(lack.summed, digits) <= MOST
    value, error = torch.zeros(2, len(x), dtype=torch.float64)
    for part in _summed(conditionals, x, lack, y, digits, torch.nonzero(small).flatten()):
        value[part.rows] = part.log_prob.logsumexp(1)
    large = torch.nonzero(~small).flatten()
    if len(large):
        labels = None if y is None else y.cpu()[large].to(y.device)
        known = torch.where(constant >= 0, constant.to(x.dtype), x[large])
        given = ~missing[large] | (constant >= 0)
        value[large], error[large] = estimate_log_prob(
            conditionals, torch.where(missing[large], known, x[large]), given, labels, generator=generator
        )
    return value, error


def fill_behind(
    conditionals: Conditionals,
    x: Tensor,
    missing: Tensor,
    y: Tensor | None,
    *,
    constant: Tensor,
    digits: Tensor,
    generator: Generator,
) -> tuple[Tensor, Tensor]:
    """Draw what is missing behind values that are there, where it is little; return the rows, and what is missing still."""
    lack = Lack.of(missing, constant)
    few = torch.nonzero((counts(lack.summed, digits) <= MOST) & lack.summed.any(1)).flatten()
    x, missing = x.clone(), missing.clone()
    for part in _summed(conditionals, x.clone(), lack, y, digits, few):
        x[part.rows[:, None], part.sites] = drawn_from(part, generator)
        missing[part.rows[:, None], part.sites] = False
    return x, missing


def _summed(
    conditionals: Conditionals, x: Tensor, lack: Lack, y: Tensor | None, digits: Tensor, rows: Tensor
) -> list[Completions]:
    def score(completed: Tensor, which: Tensor) -> Tensor:
        labels = None if y is None else y.cpu()[which].to(y.device)
        terms = likelihood.log_terms(conditionals, completed, labels)
        return terms.masked_fill(~lack.counted[which].to(terms.device), 0.0).sum(1)

    return list(completions(score, x, lack.summed, digits, rows))
