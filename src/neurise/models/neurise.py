"""NeurISE diffusion: the paper's model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn

from neurise import discovery, likelihood, losses
from neurise.alphabet import Symbols
from neurise.batching import batches
from neurise.conditionals import NetworkConditionals, is_autoregressive
from neurise.models.base import Model
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.clamped import sample_clamped
from neurise.sampling.reverse import sample
from neurise.training.objective import Network, Objective
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
        """Noise each row to a time of its own. Times are stratified: a batch covers all steps evenly."""
        noise, n = self.conditionals.noise, len(x)
        steps = torch.arange(noise.num_steps, device=x.device)
        steps = steps[self.conditionals.constant[noise.site(steps)] < 0]
        place = torch.arange(n, device=x.device) + torch.rand(n, generator=generator, device=x.device)
        t = steps[(place * (len(steps) / n)).long().clamp(max=len(steps) - 1)]
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


class NeurISE(Model):
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

    effective_samples_: float | None = None
    """Of the last ``sample`` with ``clamp``: how many independent samples its weighted particles were worth."""

    def __init__(
        self,
        *,
        keep_prob: float = 0.0,
        cycles: int = 1,
        width: int = 256,
        depth: int = 2,
        loss: str = "screening",
        order: Sequence[int] | None = None,
        alphabet: Sequence[Any] | None = None,
        network: str = "site_mlp",
        hide_noised: bool = True,
        steps: int = 4000,
        batch_size: int = 1024,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-4,
        warmup: float = 0.05,
        clip_norm: float = 1.0,
        average_decay: float = 0.995,
        patience: int = 20,
        validation_fraction: float = 0.1,
    ) -> None:
        self.keep_prob = keep_prob
        self.cycles = cycles
        self.width = width
        self.depth = depth
        self.loss = loss
        self.order = order
        self.alphabet = alphabet
        self.network = network
        self.hide_noised = hide_noised
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.clip_norm = clip_norm
        self.average_decay = average_decay
        self.patience = patience
        self.validation_fraction = validation_fraction

    @property
    def conditionals(self) -> NetworkConditionals:
        """Return the learnt conditionals, which drive the reverse chain."""
        self._fitted()
        objective = self.objective_
        assert isinstance(objective, ConditionalObjective)
        return objective.conditionals

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

    def _build(self) -> Objective:
        schema = self.schema_
        width, depth = positive_whole("width", self.width), positive_whole("depth", self.depth)
        noise = RoundRobin(schema.space, self.keep_prob, positive_whole("cycles", self.cycles))
        classes = 0 if schema.labels is None else len(schema.labels)
        make = discovery.find("neurise.networks", self.network)
        network = make(schema.space, noise.num_steps, width=width, depth=depth, classes=classes)
        conditionals = NetworkConditionals(
            network, noise, schema.constant.to(self.device_), hide_noised=bool(self.hide_noised), width=width
        )
        return ConditionalObjective(conditionals, losses.resolve(self.loss))

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
