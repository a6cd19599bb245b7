"""What models that learn single-site conditionals of noised rows are shown, and how they are scored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from neurise import losses
from neurise.conditionals.base import Frame
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.losses import Loss
from neurise.modeling.stretches import Stretches, stretches_of
from neurise.networks.parts.stack import Stack
from neurise.rows import Batch
from neurise.training.objective import Prediction

NOISINGS = 32
"""How many questions a row that is held back is asked, where that takes no more than enough examples."""


class Example(NamedTuple):
    """A noised row: what the networks are shown, and the token they should find.

    It is asked for one site, or for K of them one after another, in a stretch: what is (n,) below is (n, K) then.
    """

    t: Tensor  # (n,)
    u: Tensor  # (n,)
    x: Tensor  # (n, sites), at the first question of a stretch
    hidden: Tensor  # (n, sites), likewise
    y: Tensor | None  # (n,), also in a stretch
    x_u: Tensor  # (n,)
    fold: Tensor | None = None  # (n,), also in a stretch: the member of a committee that must not learn from the row
    after: Tensor | None = None  # (n, K): the tokens that the sites of a stretch hold after their steps; (n, 0): hidden
    weight: Tensor | None = None  # (n,): of the questions, one on average; those of a stretch always have weights


@dataclass(frozen=True)
class RoundRobinObjective:
    r"""Learn :math:`\mu_t(x_u \mid x_{-u})` on :math:`X_t` at site u = t mod q, for t uniform over the steps worth learning.

    Several networks learn side by side from the same examples, each by itself. Steps at constant sites are left out:
    their conditionals are known.

    With ``stretch`` above 1 a row is asked for about so many consecutive steps: it is noised to the first of them, and follows
    the chain from there, which changes one site per step. A network can answer them for little more than the price of one.
    The steps are cut into stretches of equal length; where these overlap, each counts less, so that the mean over a batch is
    the mean over steps that single questions have.

    A site whose value is missing is hidden at all times, and a question whose answer is missing weighs nothing: the mean is
    over the answers that are there.
    """

    network: Stack  # of site networks
    frame: Frame
    loss: Loss
    hide_noised: bool = field(kw_only=True)
    clean: float = field(default=0.0, kw_only=True)
    """Share of the examples that ask for any site, not only for the one that its step noises."""
    anytime: bool = field(default=False, kw_only=True)
    """Whether half of those examples keep their time; the others are not noised at all."""
    folds: int = field(default=0, kw_only=True)
    """Into how many folds the rows are cut, if they are: member k never learns from fold k, which validates it."""
    stretch: int = field(default=1, kw_only=True)
    """About how many consecutive steps of a row are learnt at once."""

    @property
    def noisings(self) -> int:
        """As often as gives a row 32 questions, at least."""
        return max(1, NOISINGS // self.stretch)

    def one_by_one(self) -> RoundRobinObjective:
        """Return the objective that asks for one site of each row."""
        return replace(self, stretch=1)

    def members(self) -> list[NetworkConditionals]:
        """Return the conditionals of each network."""
        found = []
        for network in self.network.networks():
            found.append(NetworkConditionals(network, self.frame, hide_noised=self.hide_noised))
        return found

    @property
    def bytes_per_example(self) -> int:
        """Forward and backward together, of all networks; they share the one-hot of a row."""
        space, width = self.frame.noise.space, int(self.network.pattern.width)  # type: ignore[arg-type]
        per_question = 16 * width * self.network.size
        if self.stretch > 1:  # columns and heads that are looked up
            per_question *= self.stretch * (2 + space.states)
        return 3 * (6 * space.sites * space.states + per_question)

    @cached_property
    def _steps(self) -> Tensor:
        """Steps at sites that vary. Found once: to count them is to wait for the device."""
        steps = torch.arange(self.frame.noise.num_steps, device=self.frame.constant.device)
        found = steps[self.frame.constant[self.frame.noise.site(steps)] < 0]
        if not len(found):
            raise ValueError(
                f"the {len(steps)} steps of the chain touch sites that never vary, and no others: more steps are needed"
            )
        return found

    @cached_property
    def _sites(self) -> Tensor:
        return torch.nonzero(self.frame.constant < 0).flatten()

    @cached_property
    def _stretches(self) -> Stretches:
        return stretches_of(self._steps, min(self.stretch, len(self._sites)))

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to a time of its own. Times are stratified: a batch covers all steps evenly."""
        if self.stretch > 1:
            return self._draw_stretch(batch, generator=generator)
        noise, x, n = self.frame.noise, batch.x, len(batch.x)
        steps = self._steps
        place = torch.arange(n, device=x.device) + torch.rand(n, generator=generator, device=x.device)
        t = steps[(place * (len(steps) / n)).long().clamp(max=len(steps) - 1)]
        u = noise.site(t)
        if self.clean:
            t, u = self._some_anywhere(t, u, generator=generator)
        x_t = noise.corrupt(x, t, generator=generator)
        hidden = (self.frame.constant >= 0).expand(n, -1)
        if self.hide_noised:
            hidden = hidden | noise.erased(t)
        weight = None
        if batch.missing is not None:
            hidden = hidden | batch.missing
            weight = weights_of_present(batch.missing.gather(-1, u[:, None]).squeeze(-1))
        fold = None if batch.fold is None else batch.fold.long()
        return Example(t, u, x_t, hidden, batch.y, noise.target(x, x_t, u), fold, None, weight)

    def _draw_stretch(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to the first time of a stretch, and follow the chain through it. Stretches are stratified."""
        noise, x, n, cut = self.frame.noise, batch.x, len(batch.x), self._stretches
        place = torch.arange(n, device=x.device) + torch.rand(n, generator=generator, device=x.device)
        which = (place * (len(cut.steps) / n)).long().clamp(max=len(cut.steps) - 1)
        t, weight = cut.steps[which], cut.weight[which]
        u = noise.site(t)
        if self.clean:
            chosen, anywhere = self._rows_anywhere(n, u.shape[1], generator=generator)
            t, u = torch.where(chosen, 0, t), torch.where(chosen, anywhere, u)
            weight = torch.where(chosen, 1.0, weight)
        x_t = noise.corrupt(x, t[:, 0], generator=generator)
        constant = self.frame.constant >= 0
        hidden, after = constant.expand(n, -1), u[:, :0]  # what hard noise leaves is hidden
        if self.hide_noised:
            hidden = hidden | noise.erased(t[:, 0])
        before = x_t.gather(-1, u)
        if not (self.hide_noised and noise.is_hard):
            after = noise.visited(before, u, generator=generator).long()
        elif self.clean:
            after = torch.full_like(u, noise.space.states)
        if self.clean:  # at time 0 nothing changes
            after = torch.where(chosen, before.long(), after)
        if batch.missing is not None:
            hidden, gone = hidden | batch.missing, batch.missing.gather(-1, u)
            weight = weight * weights_of_present(gone)
            after = after.masked_fill(gone, noise.space.states) if after.shape[-1] else after
        fold = None if batch.fold is None else batch.fold.long()
        return Example(t, u, x_t, hidden, batch.y, noise.target(x, x_t, u), fold, after, weight)

    def _rows_anywhere(self, n: int, count: int, *, generator: Generator) -> tuple[Tensor, Tensor]:
        """Choose a random share of the rows, (n, 1), and give each so many sites in a row that vary, (n, count)."""
        chance = torch.rand(2, n, 1, generator=generator, device=self._sites.device)
        first = (chance[1] * len(self._sites)).long()
        return chance[0] < self.clean, self._sites[
            (first + torch.arange(count, device=first.device)) % len(self._sites)
        ]

    def _some_anywhere(self, t: Tensor, u: Tensor, *, generator: Generator) -> tuple[Tensor, Tensor]:
        """Give a random share of the examples a site of their own that varies, and the time 0 unless they keep theirs."""
        chance = torch.rand(3 if self.anytime else 2, len(t), generator=generator, device=t.device)
        anywhere = self._sites[(chance[1] * len(self._sites)).long().clamp(max=len(self._sites) - 1)]
        chosen = chance[0] < self.clean
        early = torch.zeros_like(t)
        if self.anytime:
            # Sites that hold pure noise at time t have nothing to teach: those examples go back to time 0.
            kept = (chance[2] < 0.5) & ~self.frame.noise.erased(t).gather(-1, anywhere[:, None]).squeeze(-1)
            early = torch.where(kept, t, early)
        return torch.where(chosen, early, t), torch.where(chosen, anywhere, u)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the mean training loss of the networks on each example, without the one that must not learn from it."""
        x_u, fold, weight = drawn[5], drawn[6], drawn[8]
        logits = _asked(network, drawn)  # (n, members, states), or (n, K, members, states)
        own = () if self.frame.noise.space.sizes is None else (self._own(drawn[1]),)
        each = self.loss(logits, x_u[..., None].expand(logits.shape[:-1]), *own)
        if weight is not None:
            each = each * weight[..., None]
            each = each if weight.dim() == 1 else each.mean(1)  # (n, members)
        if fold is not None:
            others = fold[:, None] != torch.arange(each.shape[-1], device=fold.device)
            each = each * others * (self.folds / (self.folds - 1))
        return each.mean(-1)

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the cross-entropy of what the networks say together: a proper score, so that losses can be compared by it."""
        scores = losses.cross_entropy(self.answers(network, drawn), drawn[5])
        if drawn[8] is not None:
            scores = scores * drawn[8]
        return scores if scores.dim() == 1 else scores.mean(1)

    def answers(self, network: Prediction, drawn: Any) -> Tensor:
        """Return what the networks say together, up to a constant, (n, states), or (n, K, states) of a stretch.

        Where there are folds, it is what the one network says that has not learnt from the row.
        """
        logits, fold = _asked(network, drawn), drawn[6]
        if self.frame.noise.space.sizes is not None:
            logits = logits.masked_fill(~self._own(drawn[1]), -torch.inf)
        if fold is None:
            return torch.log_softmax(logits, dim=-1).mean(-2)
        own = fold.view(-1, *[1] * (logits.dim() - 1)).expand(*logits.shape[:-2], 1, logits.shape[-1])
        return logits.gather(-2, own).squeeze(-2)

    def _own(self, u: Tensor) -> Tensor:
        """Return which states the sites u have, (..., 1, states), whatever the member."""
        return self.frame.noise.space.allowed(u.device)[u][..., None, :]


def _asked(network: Prediction, drawn: Any) -> Tensor:
    """Ask the networks for the site of each row, or for the sites of each stretch, (..., members, states)."""
    t, u, x, hidden, y, _, _, after, _ = drawn
    return network(t, u, x, hidden, y) if after is None else network(t, u, x, hidden, y, after)


def weights_of_present(missing: Tensor) -> Tensor:
    """Weigh answers: 0 where they are missing, alike where they are not, and 1 on average; of any shape."""
    there = (~missing).float()
    return there / there.mean().clamp(min=1 / max(1, there.numel()))
