r"""Conditionals with terms of each class: what a correction by moments finds class by class (:mod:`._class_matching`).

The logits of site u in a row of class y get

.. math:: c_{y,u} + \sum_k w_{y,uk} \sum_{i > u} a_{y,ik}\,\phi(x_i),

a constant, and what the sites drawn so far have along a few directions :math:`a_{y,k}` of the class. A matrix of pairs for every
class would be far larger, and find no more in the rows of one class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise import checks, conditionals
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Together
from neurise.energies.regressions import Fit
from neurise.networks.parts.walk import Walk
from neurise.space import Space


class ClassTerms(nn.Module):
    """The constants and the directions of each class, for features as :func:`~neurise.energies.regressions.sample_of` has them.

    O is 1 for two states, whose logit is the log-odds of token 1, or the number of states.
    """

    def __init__(self, space: Space, classes: int, directions: int) -> None:
        super().__init__()
        self.space, self.outcomes = space, 1 if space.states == 2 else space.states
        columns = space.sites * self.outcomes
        self.axes = nn.Parameter(torch.empty(classes, columns, directions))
        self.along = nn.Parameter(torch.empty(classes, columns, directions))
        self.bias = nn.Parameter(torch.empty(classes, columns))

    def encoded(self, x: Tensor) -> Tensor:
        """Return the features of tokens, (..., O)."""
        if self.outcomes == 1:
            return x[..., None].to(self.bias.dtype) - 0.5
        tokens = torch.arange(self.outcomes, device=x.device)
        return (x[..., None] == tokens).to(self.bias.dtype) - 1 / self.outcomes

    def at(self, u: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return what the site u of each row (n, sites) gets, (n, O)."""
        sites, each = self.space.sites, self.outcomes
        later = torch.arange(sites, device=x.device) > u[:, None]
        seen = (self.encoded(x) * later[..., None]).flatten(1)
        every = torch.einsum("nf,cfk->nck", seen, self.axes)  # one product for all classes: there are few
        own = every[torch.arange(len(x), device=x.device), y]
        shape = len(self.bias), sites, each
        weights = self.along.view(*shape, own.shape[1])[y, u]  # (n, O, K)
        return self.bias.view(shape)[y, u] + (weights * own[:, None]).sum(-1)

    def of_all_sites(self, features: Tensor, y: Tensor) -> Tensor:
        """Return what every site of each row gets, (n, sites, O), by the pairs (columns, columns) of one class after another."""
        sites = torch.arange(self.space.sites, device=features.device).repeat_interleave(self.outcomes)
        sees, found = sites > sites[:, None], torch.zeros_like(features)
        for kind in range(len(self.bias)):
            here = torch.nonzero(y == kind).flatten()
            pair = (self.along[kind] @ self.axes[kind].T) * sees
            found[here] = features[here] @ pair.T + self.bias[kind]
        return found.view(len(features), self.space.sites, self.outcomes)


class Matched(NamedTuple):
    """What is added to the conditionals, and the features (draws, columns) of rows that were drawn with it.

    Where labels are looked at, each class gets terms as well, and the rows are as many of one class after another.
    """

    fit: Fit
    features: Tensor
    by_class: ClassTerms | None = None


class ClassMatched(Conditionals):
    r"""Autoregressive conditionals with terms of each class added to the steps of the chain, normalised again.

    Rows without a label get none. The terms are no part of the clean conditionals that a corrector asks for.
    """

    def __init__(self, inner: Conditionals, terms: ClassTerms) -> None:
        super().__init__()
        self.inner, self.terms, self.noise = inner, terms, inner.noise
        self.hide_noised, self.bytes_per_row = inner.hide_noised, inner.bytes_per_row
        self.bytes_per_walk, self.in_one_pass, self.walks_in = inner.bytes_per_walk, inner.in_one_pass, inner.walks_in
        self.register_buffer("ignored", inner.ignored, persistent=False)

    @property
    def clean(self) -> Conditionals:
        """Leave the correction out."""
        return self.inner.clean

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Correct the steps of the chain, t = u, and leave every other answer as it is, (..., states)."""
        answer = self.inner.log_conditional(t, u, x, y)
        if y is None:
            return answer
        leading = answer.shape[:-1]
        rows = x.expand(*leading, -1).reshape(-1, x.shape[-1])
        change = self.terms.at(u.expand(leading).reshape(-1), rows, y.expand(leading).reshape(-1))
        corrected = answer + _of_states(change).view_as(answer).to(answer.dtype)
        return torch.where((t == u)[..., None], torch.log_softmax(corrected, dim=-1), answer)

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Correct all sites at once where the inner conditionals come in one pass, (n, sites, states)."""
        if not self.inner.in_one_pass:
            return super().log_conditionals(x, y)
        answer = self.inner.log_conditionals(x, y)
        if y is None:
            return answer
        change = self.terms.of_all_sites(self.terms.encoded(x).flatten(1), y)
        return torch.log_softmax(answer + _of_states(change).to(answer.dtype), dim=-1)

    def _walk_without_plan(
        self, x: Tensor, y: Tensor | None, cycle: Tensor, *, top: int, sweep: bool, precision: str
    ) -> Walk:
        inner = self.inner.walk(x, y, cycle, top=top, sweep=sweep, precision=precision)
        return inner if sweep or y is None else Together((1.0, 1.0), (inner, ClassWalk(self.terms, x, y, top)))

    def description(self) -> dict[str, Any]:
        """Describe the inner conditionals, and say how many directions a class has."""
        return {
            "answers": "class_matched",
            "directions": self.terms.axes.shape[-1],
            "inner": self.inner.description(),
        }

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> ClassMatched:
        """Make the inner conditionals again."""
        inner, space = conditionals.build(description["inner"], frame), frame.noise.space
        count = checks.count("directions", description["directions"], space.sites * space.states)
        return cls(inner, ClassTerms(space, frame.classes, count))


class ClassWalk(Walk):
    """What rows have along the directions of their class so far, which each token adds to."""

    def __init__(self, terms: ClassTerms, x: Tensor, y: Tensor, top: int) -> None:
        self.terms, self.y = terms, y
        self.so_far = terms.bias.new_zeros(x.shape[1], terms.axes.shape[-1])
        for u in range(top, len(x)):  # where the walk begins further down
            self.put(u, x[u])

    def logits(self, u: int) -> Tensor:
        """Return what the terms add, (n, O)."""
        own = slice(u * self.terms.outcomes, (u + 1) * self.terms.outcomes)
        weights = self.terms.along[:, own].index_select(0, self.y)  # (n, O, K)
        return self.terms.bias[:, own].index_select(0, self.y) + (weights * self.so_far[:, None]).sum(-1)

    def put(self, u: int, token: Tensor) -> None:
        """Add what the token has along the directions."""
        own = slice(u * self.terms.outcomes, (u + 1) * self.terms.outcomes)
        axes = self.terms.axes[:, own].index_select(0, self.y)
        self.so_far = self.so_far + (axes * self.terms.encoded(token)[..., None]).sum(1)


def _of_states(change: Tensor) -> Tensor:
    """Write what the log-odds of two states get as what each state gets, (..., states)."""
    return functional.pad(change, (1, 0)) if change.shape[-1] == 1 else change
