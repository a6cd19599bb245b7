"""NeurISE diffusion: the paper's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Generator, Tensor, nn

from neurise import losses
from neurise.conditionals import NetworkConditionals
from neurise.models._round_robin import RoundRobinModel, stratified_steps
from neurise.training.objective import Network, Objective


class Example(NamedTuple):
    """A noised row: what the network is shown, and the token it should find."""

    t: Tensor  # (n,)
    u: Tensor  # (n,)
    x: Tensor  # (n, sites)
    hidden: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    x_u: Tensor  # (n,)


@dataclass(frozen=True)
class ConditionalObjective:
    r"""Learn :math:`\mu_t(x_u \mid x_{-u})` on :math:`X_t` at site u = t mod q, for t uniform over the steps worth learning.

    Steps at constant sites are left out: their conditionals are known.
    """

    conditionals: NetworkConditionals
    loss: losses.Loss

    @property
    def network(self) -> nn.Module:
        """Return the network."""
        return self.conditionals.network

    @property
    def bytes_per_example(self) -> int:
        """Forward and backward together."""
        return 3 * self.conditionals.bytes_per_row

    def draw(self, x: Tensor, y: Tensor | None, *, generator: Generator) -> Example:
        """Noise each row to a time of its own."""
        noise = self.conditionals.noise
        t = stratified_steps(self.conditionals, len(x), generator=generator)
        u = noise.site(t)
        x_t = noise.corrupt(x, t, generator=generator)
        x_u = x_t.gather(-1, u[:, None]).squeeze(-1)
        return Example(t, u, x_t, self.conditionals.hidden(t), y, x_u)

    def losses(self, network: Network, drawn: Any) -> Tensor:
        """Return the chosen loss."""
        t, u, x, hidden, y, x_u = drawn
        return self.loss(network(t, u, x, hidden, y), x_u)

    def scores(self, network: Network, drawn: Any) -> Tensor:
        """Return the cross-entropy: a proper score, whatever the training loss, so that losses can be compared by it."""
        t, u, x, hidden, y, x_u = drawn
        return losses.cross_entropy(network(t, u, x, hidden, y), x_u)


@dataclass(kw_only=True, eq=False, repr=False)
class NeurISE(RoundRobinModel):
    """Discrete diffusion by single-site conditionals, learnt with the Neural Interaction Screening loss.

    Args:
        keep_prob: ε, the probability that a step keeps its site. 0 is hard noise: an autoregressive model with an exact
            likelihood. Above 0, a diffusion.
        cycles: how often the noise goes round all sites.
        width, depth: size of the network; ``network`` is "site_mlp" (one for all steps) or "local_mlp" (one a step).
        loss: "screening" (NeurISE), "weighted_screening(alpha)" or "cross_entropy".
        order: the sites in the order in which they are noised; they are generated in the opposite order.
        alphabet: all symbols, where the sample may lack some.
        hide_noised: hide sites that hard noise has erased from the network. Equal in law, and it makes the likelihood
            exact; False is the paper's form.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        batch_size, learning_rate, weight_decay, warmup, clip_norm, average_decay, patience, validation_fraction: the
            training loop's; warmup is a fraction of the run, patience a number of evaluations.
    """

    loss: str = "screening"
    hide_noised: bool = True

    def _build(self) -> Objective:
        conditionals = self._network_conditionals(hide_noised=bool(self.hide_noised))
        return ConditionalObjective(conditionals, losses.resolve(self.loss))
