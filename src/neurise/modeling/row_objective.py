"""What models that learn all conditionals of a row in one pass are shown, and how they are scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor

from neurise import losses
from neurise.conditionals.base import Frame
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.deadline import Work
from neurise.losses import Loss
from neurise.modeling.round_robin_objective import RoundRobinObjective, weights_of_present
from neurise.networks.parts.layers import with_gaps
from neurise.networks.parts.stack import Stack
from neurise.rows import Batch, without_fold
from neurise.space import possible
from neurise.training.objective import Prediction


class RowExample(NamedTuple):
    """A row of the data: hard noise hides what it erased, so that nothing need be noised."""

    x: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    fold: Tensor | None = None  # (n,): the member of a committee that must not learn from the row
    kept: Tensor | None = None  # (n, ...): what dropout leaves to the networks while they learn
    weight: Tensor | None = None  # (n, sites that vary): 0 where the value is missing, 1 on average; None without gaps


@dataclass(frozen=True)
class RowObjective:
    r"""Learn :math:`\mu(x_u \mid x_{>u})` of all sites u that vary at once: the loss of a row is the mean over its sites.

    The mean over rows is that of :class:`~neurise.modeling.round_robin_objective.RoundRobinObjective`, which draws one site
    of each row, and so are the scores. A site whose value is missing is shown as the token p, which no network looks at, and
    left out of the mean.
    """

    noisings: ClassVar[int] = 1
    is_long: ClassVar[bool] = True

    network: Stack  # of row networks
    frame: Frame
    loss: Loss
    folds: int = field(default=0, kw_only=True)
    """Into how many folds the rows are cut, if they are: member k never learns from fold k, which validates it."""

    def one_by_one(self) -> RoundRobinObjective:
        """Return the objective that asks for one site of each row."""
        return RoundRobinObjective(self.network, self.frame, self.loss, hide_noised=True, folds=self.folds)

    def members(self) -> list[RowConditionals]:
        """Return the conditionals of each network."""
        return [RowConditionals(network, self.frame) for network in self.network.networks()]

    @staticmethod
    def begin(job: Any, work: Work, graph: Tensor | None = None) -> None:
        """Let the networks of a job find out what needs no descent, each without the fold that validates it, if there are folds.

        ``graph`` (sites, sites) says which sites are known to depend on each other directly.
        """
        objective = job.objective
        members = objective.network.networks()
        work = work.part(1.0, what="preparing", unit="networks", total=len(members))
        found, is_alike = None, job.rows.fold is None
        for number, network in enumerate(members):
            if not (number and is_alike):
                own, aside = without_fold(job.rows, job.held, number)
                part = work.part(1.0 if is_alike else 1 / (len(members) - number))
                near = {} if graph is None or not network.takes_graph else {"near": graph}
                found = network.begin(own, aside, objective.frame.constant < 0, part, **near)
            network.take(found)
            work.left(done=1)
        if work.shown is not None:
            work.shown.progress.close()

    @property
    def bytes_per_example(self) -> int:
        """Forward and backward together, of all networks."""
        pattern: Any = self.network.pattern
        return self.network.size * int(pattern.bytes_per_row(training=True))

    @cached_property
    def _sites(self) -> Tensor:
        """Sites that vary. Found once: to count them is to wait for the device."""
        return torch.nonzero(self.frame.constant < 0).flatten()

    @cached_property
    def _own(self) -> Tensor | None:
        """Which states the sites that vary have, (sites, states); None where all have the same."""
        space = self.frame.noise.space
        return None if space.sizes is None else space.allowed(self._sites.device)[self._sites]

    def draw(self, batch: Batch, *, generator: Generator) -> RowExample:
        """Show rows as they are; sites that never vary show token 0."""
        fold = None if batch.fold is None else batch.fold.long()
        pattern: Any = self.network.pattern
        kept = pattern.masks(len(batch.x), generator=generator)
        x, weight = batch.x, None
        if batch.missing is not None:
            x = with_gaps(x, batch.missing, self.frame.noise.space.states)
            weight = weights_of_present(batch.missing.index_select(1, self._sites))
        return RowExample(x.masked_fill(self.frame.constant >= 0, 0), batch.y, fold, kept, weight)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the mean training loss of the networks on each row, without the one that must not learn from it."""
        x, y, fold, kept, weight = drawn
        logits, tokens = self._varying(network(x, y) if kept is None else network(x, y, kept), x, weight)
        own = () if self._own is None else (self._own[:, None],)
        each = self.loss(logits, tokens[..., None].expand(logits.shape[:-1]), *own)
        each = (each if weight is None else each * weight[..., None]).mean(1)  # (n, members)
        if fold is not None:
            others = fold[:, None] != torch.arange(each.shape[-1], device=fold.device)
            each = each * others * (self.folds / (self.folds - 1))
        return each.mean(-1)

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the mean cross-entropy over the sites of what the networks say together, (n,)."""
        x, y, fold, _, weight = drawn
        logits, tokens = self._varying(network(x, y), x, weight)
        if self._own is not None:
            logits = logits.masked_fill(~self._own[:, None], -torch.inf)
        each = losses.cross_entropy(together(logits, fold), tokens)
        return (each if weight is None else each * weight).mean(1)

    def answers(self, network: Prediction, drawn: Any) -> Tensor:
        """Return what the networks say together of the examples of a round-robin objective, (n, states)."""
        _, u, x, hidden, y, _, fold, _, weight = drawn
        states = self.frame.noise.space.states
        # Where there are gaps they are hidden; what was erased is hidden too, and not looked at anyhow.
        x = x.masked_fill(x >= states, 0) if weight is None else with_gaps(x, hidden, states)
        shown = x.masked_fill(self.frame.constant >= 0, 0)
        logits = network(shown, y)  # (n, sites, members, states)
        own = logits.gather(1, u[:, None, None, None].expand(-1, 1, *logits.shape[2:]))
        if self.frame.noise.space.sizes is not None:
            own = possible(own, self.frame.noise.space, u[:, None, None])
        return together(own, fold).squeeze(1)

    def _varying(self, logits: Tensor, x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the logits and the tokens of the sites that vary, (n, sites, members, states) and (n, sites).

        Where there are gaps, which weigh nothing, they are asked for the token 0, which every site has.
        """
        x = x if weight is None else x.masked_fill(x >= self.frame.noise.space.states, 0)
        if len(self._sites) == x.shape[-1]:
            return logits.float(), x.long()
        return logits.index_select(1, self._sites).float(), x.index_select(1, self._sites).long()


def together(logits: Tensor, fold: Tensor | None) -> Tensor:
    """Return what the members say together, (n, sites, states), up to a constant.

    Where there are folds, it is what the one member says that has not learnt from the row.
    """
    if fold is None:
        return torch.log_softmax(logits, dim=-1).mean(-2)
    own = fold[:, None, None, None].expand(-1, logits.shape[1], 1, logits.shape[-1])
    return logits.gather(-2, own).squeeze(-2)
