"""What models that learn single-site conditionals of noised rows are shown, and how they are scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn

from neurise import losses
from neurise.conditionals import NetworkConditionals
from neurise.models._folds import without_folds
from neurise.networks._committee import Committee
from neurise.training.objective import Network


class Example(NamedTuple):
    """A noised row: what the network is shown, and the token it should find."""

    t: Tensor  # (n,)
    u: Tensor  # (n,)
    x: Tensor  # (n, sites)
    hidden: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    x_u: Tensor  # (n,)
    fold: Tensor | None = None  # (n,): the member of a committee that may not learn from the row


@dataclass(frozen=True)
class RoundRobinObjective(ABC):
    r"""Learn :math:`\mu_t(x_u \mid x_{-u})` on :math:`X_t` at site u = t mod q, for t uniform over the steps worth learning.

    Steps at constant sites are left out: their conditionals are known. A method writes ``loss_of``.
    """

    conditionals: NetworkConditionals
    clean: float = field(default=0.0, kw_only=True)
    """Share of the examples that are not noised and ask for any site: they teach the conditionals of the data itself."""
    folds: int = field(default=0, kw_only=True)
    """Into how many folds rows are cut that bear their fold: member k of a committee never learns from fold k, which judges it."""

    @property
    def network(self) -> nn.Module:
        """Return the network."""
        return self.conditionals.network

    @property
    def bytes_per_example(self) -> int:
        """Forward and backward together."""
        return 3 * self.conditionals.bytes_per_row

    def draw(self, x: Tensor, y: Tensor | None, *, generator: Generator) -> Example:
        """Noise each row to a time of its own. Times are stratified: a batch covers all steps evenly."""
        noise, n = self.conditionals.noise, len(x)
        x, fold = without_folds(x, noise.space.sites)
        steps = self.conditionals.steps_to_learn
        place = torch.arange(n, device=x.device) + torch.rand(n, generator=generator, device=x.device)
        t = steps[(place * (len(steps) / n)).long().clamp(max=len(steps) - 1)]
        u = noise.site(t)
        if self.clean:
            t, u = self._some_clean(t, u, generator=generator)
        x_t = noise.corrupt(x, t, generator=generator)
        x_u = x_t.gather(-1, u[:, None]).squeeze(-1)
        return Example(t, u, x_t, self.conditionals.hidden(t), y, x_u, fold)

    def _some_clean(self, t: Tensor, u: Tensor, *, generator: Generator) -> tuple[Tensor, Tensor]:
        """Move a random share of the examples to time 0, each with a site of its own that varies."""
        chance = torch.rand(2, len(t), generator=generator, device=t.device)
        sites = self.conditionals.sites_to_learn
        anywhere = sites[(chance[1] * len(sites)).long().clamp(max=len(sites) - 1)]
        clean = chance[0] < self.clean
        return torch.where(clean, torch.zeros_like(t), t), torch.where(clean, anywhere, u)

    def losses(self, network: Network, drawn: Any) -> Tensor:
        """Return the training loss of each example. The members of a committee learn each by itself."""
        t, u, x, hidden, y, x_u, fold = drawn
        logits = network(t, u, x, hidden, y)
        if not isinstance(self.network, Committee):
            return self.loss_of(logits, x_u)
        each = self.loss_of(logits, x_u[:, None].expand(logits.shape[:-1]))  # (n, members)
        if fold is not None:
            others = fold[:, None] != torch.arange(each.shape[-1], device=fold.device)
            each = each * others * (self.folds / (self.folds - 1))
        return each.mean(-1)

    @abstractmethod
    def loss_of(self, logits: Tensor, x_u: Tensor) -> Tensor:
        """Return the loss of logits (..., states) where the token x_u (...) was observed."""

    def scores(self, network: Network, drawn: Any) -> Tensor:
        """Return the cross-entropy: a proper score, whatever the training loss, so that losses can be compared by it.

        Where there are folds, it is that of the one member that has not learnt from the row.
        """
        t, u, x, hidden, y, x_u, fold = drawn
        logits = network(t, u, x, hidden, y)
        if fold is None:
            return losses.cross_entropy(self.conditionals.opinion(logits), x_u)
        own = fold[:, None, None].expand(-1, 1, logits.shape[-1])
        return losses.cross_entropy(logits.gather(-2, own).squeeze(-2), x_u)
