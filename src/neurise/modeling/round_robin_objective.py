"""What models that learn single-site conditionals of noised rows are shown, and how they are scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor

from neurise import losses
from neurise.conditionals.base import Frame
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.losses import Loss
from neurise.networks.parts.stack import Stack
from neurise.rows import Batch
from neurise.training.objective import Prediction


class Example(NamedTuple):
    """A noised row: what the networks are shown, and the token they should find."""

    t: Tensor  # (n,)
    u: Tensor  # (n,)
    x: Tensor  # (n, sites)
    hidden: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    x_u: Tensor  # (n,)
    fold: Tensor | None = None  # (n,): the member of a committee that must not learn from the row


@dataclass(frozen=True)
class RoundRobinObjective:
    r"""Learn :math:`\mu_t(x_u \mid x_{-u})` on :math:`X_t` at site u = t mod q, for t uniform over the steps worth learning.

    Several networks learn side by side from the same examples, each by itself. Steps at constant sites are left out:
    their conditionals are known.
    """

    noisings: ClassVar[int] = 32

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
        return 3 * (6 * space.sites * space.states + 16 * width * self.network.size)

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

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to a time of its own. Times are stratified: a batch covers all steps evenly."""
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
        fold = None if batch.fold is None else batch.fold.long()
        return Example(t, u, x_t, hidden, batch.y, noise.target(x, x_t, u), fold)

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
        t, u, x, hidden, y, x_u, fold = drawn
        logits = network(t, u, x, hidden, y)  # (n, members, states)
        each = self.loss(logits, x_u[:, None].expand(logits.shape[:-1]))  # (n, members)
        if fold is not None:
            others = fold[:, None] != torch.arange(each.shape[-1], device=fold.device)
            each = each * others * (self.folds / (self.folds - 1))
        return each.mean(-1)

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the cross-entropy of what the networks say together: a proper score, so that losses can be compared by it."""
        return losses.cross_entropy(self.answers(network, drawn), drawn[5])

    def answers(self, network: Prediction, drawn: Any) -> Tensor:
        """Return what the networks say together, up to a constant, (n, states).

        Where there are folds, it is what the one network says that has not learnt from the row.
        """
        t, u, x, hidden, y, _, fold = drawn
        logits = network(t, u, x, hidden, y)
        if fold is None:
            return torch.log_softmax(logits, dim=-1).mean(-2)
        own = fold[:, None, None].expand(-1, 1, logits.shape[-1])
        return logits.gather(-2, own).squeeze(-2)
