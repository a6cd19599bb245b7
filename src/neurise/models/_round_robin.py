"""What models that reverse the round-robin chain by single-site conditionals share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn

from neurise import discovery, exact, likelihood, losses
from neurise.alphabet import Symbols
from neurise.batching import batches
from neurise.conditionals import NetworkConditionals, is_autoregressive
from neurise.models._trained import TrainedModel
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.clamped import sample_clamped
from neurise.sampling.reverse import sample
from neurise.training.objective import Network
from neurise.training.settings import positive_whole

FEW_PARTICLES = 10
"""Fewer effective particles than this, or than the rows drawn from them, deserve a warning."""


class Example(NamedTuple):
    """A noised row: what the network is shown, and the token it should find."""

    t: Tensor  # (n,)
    u: Tensor  # (n,)
    x: Tensor  # (n, sites)
    hidden: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    x_u: Tensor  # (n,)


@dataclass(frozen=True)
class RoundRobinObjective(ABC):
    r"""Learn :math:`\mu_t(x_u \mid x_{-u})` on :math:`X_t` at site u = t mod q, for t uniform over the steps worth learning.

    Steps at constant sites are left out: their conditionals are known. A method writes ``losses``.
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
        """Noise each row to a time of its own. Times are stratified: a batch covers all steps evenly."""
        noise, n = self.conditionals.noise, len(x)
        steps = self.conditionals.steps_to_learn
        place = torch.arange(n, device=x.device) + torch.rand(n, generator=generator, device=x.device)
        t = steps[(place * (len(steps) / n)).long().clamp(max=len(steps) - 1)]
        u = noise.site(t)
        x_t = noise.corrupt(x, t, generator=generator)
        x_u = x_t.gather(-1, u[:, None]).squeeze(-1)
        return Example(t, u, x_t, self.conditionals.hidden(t), y, x_u)

    @abstractmethod
    def losses(self, network: Network, drawn: Any) -> Tensor:
        """Return the training loss of each example."""

    def scores(self, network: Network, drawn: Any) -> Tensor:
        """Return the cross-entropy: a proper score, whatever the training loss, so that losses can be compared by it."""
        t, u, x, hidden, y, x_u = drawn
        return losses.cross_entropy(network(t, u, x, hidden, y), x_u)


@dataclass(kw_only=True, eq=False, repr=False)
class RoundRobinModel(TrainedModel):
    r"""A network learns the conditionals :math:`\mu_t(x_u \mid x_{-u})` of the noised laws, and they run the chain backwards.

    Its objective holds them as ``conditionals``.
    """

    keep_prob: float = 0.0
    cycles: int = 1
    width: int = 256
    depth: int = 2
    network: str = "site_mlp"

    effective_samples_: float = field(init=False)
    """Of the last ``sample`` with ``clamp``: how many independent samples its weighted particles were worth."""

    @property
    def conditionals(self) -> NetworkConditionals:
        """Return the learnt conditionals, which drive the reverse chain."""
        self._fitted()
        conditionals: NetworkConditionals = self.objective_.conditionals  # type: ignore[attr-defined]
        return conditionals

    def conditional(self, X: Symbols, site: int, step: int | None = None, y: Any = None) -> np.ndarray:
        r"""Probabilities of each symbol at a site given all others, (N, states) in the order of the alphabet.

        With ``step`` = t, where step t noises that site: the learnt conditional of the noised law μ_t. Without: the
        clean conditional :math:`\mu_0(x_u \mid x_{-u})`, from ratios of the exact likelihood. (The network's output at
        t = 0 is not that, unless u is 0: round-robin training visits site u only at t = u mod q.)
        """
        schema = self._fitted()
        if site not in range(schema.space.sites):
            raise ValueError(f"site must be a whole number from 0 to {schema.space.sites - 1}, got {site!r}")
        x, place = schema.encode(X), schema.order.index(site)
        if step is None:
            if not is_autoregressive(self.conditionals):
                raise NotImplementedError(
                    "the clean conditional needs the exact likelihood of hard noise with hide_noised=True; "
                    f"step={place} gives the learnt conditional of the law noised by {place} steps"
                )
            return self._clean_conditional(x, place, y)
        noise = self.conditionals.noise
        if step not in range(place, noise.num_steps, schema.space.sites):
            raise ValueError(
                f"step {step} does not noise site {site}: its steps are {place}, {place} + {schema.space.sites}, … "
                f"below {noise.num_steps}"
            )
        labels = schema.encode_labels(y, len(x))
        if schema.labels is not None and labels is None:
            raise ValueError("the conditional of a noised law needs the label: give y")
        parts = []
        for rows in batches(len(x), self.conditionals.bytes_per_row):
            t = torch.tensor([step], device=self.device_)
            label = None if labels is None else labels[rows].to(self.device_)
            log_conditional = self.conditionals.log_conditional(t, noise.site(t), x[rows].to(self.device_), label)
            parts.append(log_conditional.double().softmax(-1).cpu().numpy())
        return np.concatenate(parts)

    def _clean_conditional(self, x: Tensor, place: int, y: Any) -> np.ndarray:
        """Normalise the likelihoods of the p configurations that differ at one place."""
        joint = []
        for token in range(self.space_.states):
            changed = x.clone()
            changed[:, place] = token
            terms = self._label_rows(y, len(x))
            joint.append(
                np.logaddexp.reduce([np.log(w) + self._log_prob(changed, label).numpy() for label, w in terms])
            )
        log_joint = np.stack(joint, axis=-1)
        total = np.logaddexp.reduce(log_joint, axis=-1, keepdims=True)
        return np.asarray(np.exp(log_joint - total))

    def _network_conditionals(self, *, hide_noised: bool, heat_bath: bool = False) -> NetworkConditionals:
        """Check the parameters and make the untrained conditionals for the fitted schema."""
        schema = self.schema_
        width, depth = positive_whole("width", self.width), positive_whole("depth", self.depth)
        noise = RoundRobin(schema.space, self.keep_prob, positive_whole("cycles", self.cycles), heat_bath)
        make = discovery.find("neurise.networks", self.network)
        if not make.one_site:
            raise ValueError(
                f"network {self.network!r} predicts all sites at once; {type(self).__name__} asks for one site at a time, "
                "as site_mlp and local_mlp do"
            )
        network = make(schema.space, noise.num_steps, width=width, depth=depth, classes=schema.classes)
        constant = schema.constant.to(self.device_)
        return NetworkConditionals(network, noise, constant, hide_noised=hide_noised, width=width)

    def _draw(self, n: int, y: Tensor | None, clamp: tuple[Tensor, Tensor] | None, generator: Generator) -> Tensor:
        if clamp is None:
            return sample(self.conditionals, n, y, generator=generator)
        labels = self.schema_.labels
        drawn = sample_clamped(
            self.conditionals,
            n,
            clamp[0].to(self.device_),
            clamp[1].to(self.device_),
            y,
            draw_labels=partial(labels.draw, generator=generator) if labels is not None and y is None else None,
            generator=generator,
        )
        self.effective_samples_ = float(drawn.effective.sum())
        if not bool(drawn.effective.all()):
            raise ValueError("the model gives the clamped values probability zero: nothing can be drawn")
        if not drawn.exact and float(drawn.effective.min()) < max(drawn.rows, FEW_PARTICLES):
            warnings.warn(
                f"the clamped values are unlikely along the way: {n} rows rest on about {self.effective_samples_:.0f} "
                "effective samples; put the clamped sites last in order=, so that they are generated first",
                stacklevel=4,
            )
        return drawn.x

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not is_autoregressive(self.conditionals):
            why = "soft noise (keep_prob > 0)" if self.keep_prob else "hide_noised=False"
            raise NotImplementedError(f"a model with {why} has no exact likelihood; elbo() gives a lower bound")
        return likelihood.log_prob(self.conditionals, x, y)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        return likelihood.elbo(self.conditionals, x, y, generator=generator)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None) -> Tensor:
        """Push the start through the reverse kernels."""
        return exact.chain_law(self.conditionals, label, start)
