"""GGM: the round-robin chain, reversed by classifiers that tell kept tokens from redrawn ones (Varma et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from neurise import losses
from neurise.conditionals import NetworkConditionals
from neurise.models._round_robin import RoundRobinModel, stratified_steps
from neurise.training.objective import Network, Objective

REVERSALS = ("bayes", "heat_bath")


class Example(NamedTuple):
    """A row before and after a step of the noise, and what the step did."""

    t: Tensor  # (n,)
    u: Tensor  # (n,)
    x: Tensor  # (n, sites): X_t, which differs from X_{t+1} at site u at most, and that site is hidden
    hidden: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    before: Tensor  # (n,): X_{t,u}
    after: Tensor  # (n,): X_{t+1,u}, the token that is seen
    redrawn: Tensor  # (n,): whether the step drew a fresh token, even if it is the same


@dataclass(frozen=True)
class ClassifierObjective:
    r"""Learn whether step t redrew the token a that is seen at site u after it, a head a token, by binary cross-entropy.

    With :math:`\Pi(\phi) = \varepsilon` the probability to keep and :math:`\Pi(a) = (1-\varepsilon)/p` that of each fresh token,

    .. math::
        y_a = P(\text{redrawn} \mid X_{t+1,u} = a, x_{-u}) = \frac{\Pi(a)}{\Pi(a) + \Pi(\phi)\,\mu_t(a \mid x_{-u})}
        \quad\Longleftrightarrow\quad \mu_t(a \mid x_{-u}) = \frac{\Pi(a)}{\Pi(\phi)}\Big(\frac{1}{y_a} - 1\Big).

    The network gives :math:`f_a = \log p\,\mu_t(a \mid x_{-u})`, so the classifier's logit is
    :math:`\ell_a = \log\frac{1-\varepsilon}{\varepsilon} - f_a`, and the conditional is softmax f.
    """

    conditionals: NetworkConditionals

    @property
    def network(self) -> nn.Module:
        """Return the network."""
        return self.conditionals.network

    @property
    def bytes_per_example(self) -> int:
        """Forward and backward together."""
        return 3 * self.conditionals.bytes_per_row

    def draw(self, x: Tensor, y: Tensor | None, *, generator: Generator) -> Example:
        """Noise each row to a time of its own, and one step further."""
        noise, n = self.conditionals.noise, len(x)
        t = stratified_steps(self.conditionals, n, generator=generator)
        u = noise.site(t)
        x_t = noise.corrupt(x, t, generator=generator)
        before = x_t.gather(-1, u[:, None]).squeeze(-1)
        redrawn = torch.rand(n, generator=generator, device=x.device) >= noise.keep_prob
        fresh = torch.randint(noise.space.states, (n,), generator=generator, device=x.device, dtype=x_t.dtype)
        after = torch.where(redrawn, fresh, before)
        return Example(t, u, x_t, self.conditionals.hidden(t), y, before, after, redrawn)

    def losses(self, network: Network, drawn: Any) -> Tensor:
        """Return the binary cross-entropy of the head of the token that is seen."""
        t, u, x, hidden, y, _, after, redrawn = drawn
        keep = self.conditionals.noise.keep_prob
        f_a = network(t, u, x, hidden, y).gather(-1, after.long()[:, None]).squeeze(-1)
        logit = math.log((1 - keep) / keep) - f_a
        return functional.binary_cross_entropy_with_logits(logit, redrawn.to(logit.dtype), reduction="none")

    def scores(self, network: Network, drawn: Any) -> Tensor:
        """Return the cross-entropy of the conditional that the heads imply: the sampler uses nothing else."""
        t, u, x, hidden, y, before, _, _ = drawn
        return losses.cross_entropy(network(t, u, x, hidden, y), before)


@dataclass(kw_only=True, eq=False, repr=False)
class GGM(RoundRobinModel):
    """Glauber generative model: a classifier a token learns which tokens the noise has redrawn.

    The chain and the network are those of :class:`NeurISE`; only what the network learns differs. Soft noise is needed: at
    ε = 0 every token is redrawn, and there is nothing to tell apart.

    Args:
        keep_prob: ε, the probability that a step keeps its site, above 0.
        cycles: how often the noise goes round all sites.
        reverse: "bayes" draws a site given its present token too, "heat_bath" (the original) from the conditional alone.
            Both reverse the chain exactly when the conditionals are exact.
        width, depth: size of the network; ``network`` is "site_mlp" (one for all steps) or "local_mlp" (one a step).
        order: the sites in the order in which they are noised.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        batch_size, learning_rate, weight_decay, warmup, clip_norm, average_decay, patience, validation_fraction: the
            training loop's; warmup is a fraction of the run, patience a number of evaluations.
    """

    keep_prob: float = 0.5
    cycles: int = 4
    reverse: str = "bayes"

    def _build(self) -> Objective:
        if self.reverse not in REVERSALS:
            raise ValueError(f"reverse must be {' or '.join(map(repr, REVERSALS))}, got {self.reverse!r}")
        if self.keep_prob == 0:
            raise ValueError(
                "keep_prob must be above 0 for GGM: at 0 every token is redrawn, so that no classifier can tell kept from "
                "redrawn, and the conditional would be a division by zero; NeurISE takes keep_prob=0"
            )
        return ClassifierObjective(self._network_conditionals(hide_noised=False, heat_bath=self.reverse == "heat_bath"))
