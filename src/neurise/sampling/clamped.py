r"""Sampling with some sites given (inpainting), by sequential importance resampling.

Holding or re-noising the given sites and sampling the rest around them is wrong in law. What is right: particles carry a
weight. A given site follows the noise *bridge* from its value c (the forward chain, known exactly, see
:meth:`SiteNoise.bridge`) instead of the learnt reverse kernel, and the weight is multiplied by the ratio of the two,

.. math:: w \leftarrow w \cdot \frac{P_\theta(x_{t,u} \mid X_{t+1})}{q(x_{t,u} \mid x_{0,u} = c, X_{t+1,u})} .

Weighted particles then follow the model's law given :math:`X_0 = c` at the clamped sites, and resampling by weight draws
from it, with an error of one over the number of particles. In the last cycle the bridge is the value itself and the factor
its likelihood. With hard noise and clamped sites that are generated first, all weights are equal: the draw is exact.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from neurise import batching
from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals
from neurise.labels import Labels
from neurise.networks.parts.walk import Walk
from neurise.sampling.corrector import Sweeps, correct
from neurise.sampling.incremental import begin_walk
from neurise.walks import log_law

FEW_PARTICLES = 10
"""Fewer effective particles than this, or than the rows drawn from them, deserve a warning."""
SHARED = 8
"""Particles for each row that is asked for, where all rows are given the same."""
SHARED_LEAST = 1024
"""Particles at least, where all rows are given the same: the error of resampling is one over their number."""
OWN = 64
"""Particles for each row, where every row is given something of its own."""
REPEATS = 8
"""Groups of particles whose spread says how well the probability of what is given is known."""


class Clamped(NamedTuple):
    """Rows with the given values in them, (n, sites) tokens, and how many particles were behind each group of rows."""

    x: Tensor
    effective: Tensor  # (groups,) effective number of particles, at its lowest
    rows: int  # rows drawn from each group
    exact: bool  # all weights were equal, so that the draw is exact
    y: Tensor | None = None  # (n,): the labels of the rows, where there are labels


@dataclass
class Trail:
    """Where particles went: the tokens of every step, and which particles go on from which."""

    start: Tensor = field(init=False)  # (particles, sites)
    moves: list[tuple[Tensor, Tensor | None]] = field(
        default_factory=list
    )  # tokens (particles,); then whom each goes on from
    kept: Tensor = field(init=False)  # (n,) the particles that were kept in the end

    def traced(self) -> tuple[Tensor, list[Tensor]]:
        """Return the start, (n, sites), and the tokens of all steps, (n,) each, of those that were kept."""
        place, tokens = self.kept, list[Tensor]()
        for token, followed in reversed(self.moves):
            place = place if followed is None else followed[place]
            tokens.append(token[place])
        return self.start[place], tokens[::-1]


class Wish(Protocol):
    """What ``sample`` was asked for: so many rows, with labels, and the sites that are given, (values, given)."""

    @property
    def n(self) -> int:
        """Return how many rows are wanted."""

    @property
    def y(self) -> Tensor | None:
        """Return their labels, if they are given."""

    @property
    def clamp(self) -> tuple[Tensor, Tensor] | None:
        """Return the given values, and which of them hold."""

    @property
    def generator(self) -> Generator:
        """Return the source of random numbers."""

    @property
    def quiet(self) -> bool:
        """Whether few effective samples are no reason to warn."""


def draw_clamped(
    conditionals: Conditionals, wish: Wish, *, labels: Labels | None, sweeps: Sweeps, device: torch.device
) -> tuple[Tensor, float]:
    """Draw rows with some sites given, (n, sites), and return how many effective samples they rest on.

    Warns where they are few, and raises ValueError where the given values are impossible. Sweeps hold the given sites.
    """
    drawn = checked_clamped(conditionals, wish, labels=labels, sweeps=sweeps, device=device)
    effective = float(drawn.effective.sum())
    if not sweeps.get(0) or wish.clamp is None:
        return drawn.x, effective
    y, held = None if drawn.y is None else drawn.y.to(device), wish.clamp[1].to(device).expand(wish.n, -1)
    moved = correct(conditionals, drawn.x.to(device), y, sweeps=sweeps[0], held=held, generator=wish.generator)
    return moved.cpu(), effective


def checked_clamped(
    conditionals: Conditionals,
    wish: Wish,
    *,
    labels: Labels | None,
    sweeps: Sweeps,
    device: torch.device,
    trails: list[Trail] | None = None,
) -> Clamped:
    """Draw what :func:`draw_clamped` does before its sweeps, with its warning and its errors."""
    if any(t > 0 for t in sweeps):
        raise NotImplementedError("with clamp=, sweeps can run at time 0 only: pass a number")
    assert wish.clamp is not None
    values, given = (part.to(device) for part in wish.clamp)
    unknown = labels is not None and wish.y is None
    drawn = sample_clamped(
        conditionals,
        wish.n,
        values,
        given,
        wish.y,
        draw_labels=partial(labels.draw, generator=wish.generator) if labels is not None and unknown else None,
        generator=wish.generator,
        trails=trails,
    )
    if not bool(drawn.effective.all()):
        raise ValueError("the model gives the clamped values probability zero: nothing can be drawn")
    if not drawn.exact and not wish.quiet and float(drawn.effective.min()) < max(drawn.rows, FEW_PARTICLES):
        warnings.warn(
            f"the clamped values are unlikely along the way: {wish.n} rows rest on about "
            f"{float(drawn.effective.sum()):.0f} effective samples; put the clamped sites last in order=, so that they are "
            "generated first",
            stacklevel=6,
        )
    return drawn


@torch.no_grad()
def sample_clamped(
    conditionals: Conditionals,
    n: int,
    values: Tensor,
    given: Tensor,
    y: Tensor | None = None,
    *,
    draw_labels: Callable[[int], Tensor] | None = None,
    generator: Generator,
    trails: list[Trail] | None = None,
) -> Clamped:
    """Draw n rows given some of their sites.

    ``values`` and ``given`` are (1 or n, sites): tokens, and which of them hold. ``y`` (n,) are labels that are given too;
    where labels exist and are not given, ``draw_labels`` draws them for the particles, and the weights do the rest.
    ``trails`` is a list to which the ways of the particles are added.
    """
    same = len(values) == 1 and (y is None or bool((y == y[0]).all()))
    # With every weight equal there is nothing to resample: as many particles as rows, and an exact draw.
    equal = conditionals.is_autoregressive and draw_labels is None and _given_last(given)
    if same:
        fitting = max(1, batching.MEMORY_BUDGET // conditionals.bytes_per_row)
        rows = max(1, min(n, fitting if equal else max(SHARED_LEAST, fitting) // SHARED))
        groups, particles = -(-n // rows), rows if equal else max(SHARED_LEAST, SHARED * rows)
    else:
        groups, rows, particles = n, 1, 1 if equal else OWN
    values, given = values.expand(groups, -1), given.expand(groups, -1)
    parts, effective, kinds = [], [], list[Tensor | None]()
    for chunk in batching.batches(groups, conditionals.bytes_per_row * particles):
        size = (chunk.stop - chunk.start) * particles
        if draw_labels is not None:
            labels: Tensor | None = draw_labels(size)
        else:
            labels = None if y is None else (y[:1] if same else y[chunk]).repeat_interleave(size if same else particles)
        trail = None if trails is None else Trail()
        x, least, own, _ = weigh(conditionals, values[chunk], given[chunk], labels, particles, rows, generator, trail)
        if trails is not None and trail is not None:
            trails.append(trail)
        parts.append(x.flatten(0, 1).cpu())
        effective.append(least.cpu())
        kinds.append(own)
    kept = None if kinds[0] is None else torch.cat([kind.flatten() for kind in kinds if kind is not None])[:n]
    return Clamped(torch.cat(parts)[:n], torch.cat(effective), rows, equal, kept)


@torch.no_grad()
def estimate_log_prob(
    conditionals: Conditionals, values: Tensor, given: Tensor, y: Tensor | None = None, *, generator: Generator
) -> tuple[Tensor, Tensor]:
    r"""Estimate how likely the given sites of each row are, :math:`\log P(x_o)`, and the standard error, (n,) float64 each.

    The mean weight of the particles has the mean :math:`P(x_o)`, resampling included. Each row has REPEATS groups of OWN
    particles, and the error is that of the mean over its groups. For hard noise, where all particles start alike.
    """
    found = []
    for chunk in batching.batches(len(values), conditionals.bytes_per_row * OWN * REPEATS):
        value, holds = (part[chunk].repeat_interleave(REPEATS, 0) for part in (values, given))
        labels = None if y is None else y[chunk].repeat_interleave(REPEATS * OWN)
        device = conditionals.device
        log_mean = weigh(conditionals, value.to(device), holds.to(device), labels, OWN, 1, generator)[3]
        found.append(log_mean.view(-1, REPEATS).cpu())
    log_means = torch.cat(found)
    total = log_means.logsumexp(1) - math.log(REPEATS)
    relative = (log_means - total[:, None]).exp().nan_to_num(nan=0.0)
    return total, relative.std(1) / math.sqrt(REPEATS)


def _given_last(given: Tensor) -> bool:
    """Whether the given sites are the last of the order in every row, and so the first to be generated."""
    return bool((given.int().cummax(dim=-1).values == given).all())


def weigh(
    conditionals: Conditionals,
    values: Tensor,
    given: Tensor,
    y: Tensor | None,
    particles: int,
    keep: int,
    generator: Generator,
    trail: Trail | None = None,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Run G groups of weighted particles.

    Return ``keep`` of each, the lowest effective number of each, labels, and the logarithm of the mean weight of each. A
    ``trail`` is told where the particles went.
    """
    noise, groups = conditionals.noise, len(values)
    sites, device, rows = noise.space.sites, values.device, len(values) * particles
    value, holds = values.repeat_interleave(particles, 0), given.repeat_interleave(particles, 0)

    # Start: a given site from its own noised law q(x_T | c), at the price of start / q. For hard noise the price is 1. Where
    # the start never is, no particle may begin; a price that all of them share does not matter.
    last = noise.visits(torch.tensor(noise.num_steps, device=device))  # (sites,)
    log_start = noise.start_law().log().to(device)
    log_q = noise.log_noised_token(value, last, torch.arange(sites, device=device))  # (rows, sites, tokens)
    log_q = log_q.masked_fill(log_start == -torch.inf, -torch.inf)
    noised = draw(log_q, uniforms(rows * sites, generator=generator).reshape(rows, sites))
    x = torch.where(holds, noised, noise.start(rows, generator=generator))
    price = _pick(log_start.expand_as(log_q), x) - _pick(log_q, x)
    log_weight = torch.where(holds, price, 0.0).sum(-1).view(groups, particles)
    if trail is not None:
        trail.start = x.clone()
    effective, log_mean = _effective(log_weight), torch.zeros_like(log_weight[:, 0])

    walk: Walk | None = None
    steps = torch.arange(noise.num_steps, device=device)
    offset = torch.arange(groups, device=device)[:, None] * particles
    somewhere = given.any(0).tolist()
    for t in reversed(range(noise.num_steps)):
        (cycle, u), step = divmod(t, sites), steps[t : t + 1]
        if walk is None or u == noise.top(cycle) - 1:
            walk = begin_walk(conditionals, x, y, cycle, u + 1)
        log_conditional = log_law(walk.logits(u), noise.space.states)
        log_step = noise.reverse(log_conditional, x[:, u], step).double()
        uniform = uniforms(rows, generator=generator)
        if not somewhere[u]:
            x[:, u] = draw(log_step, uniform)
            walk.put(u, x[:, u])
            if trail is not None:
                trail.moves.append((x[:, u].clone(), None))
            continue
        bridge = noise.bridge(value[:, u], x[:, u], step)
        token = draw(torch.where(holds[:, u, None], bridge, log_step), uniform)
        factor = torch.where(holds[:, u], _pick(log_step, token) - _pick(bridge, token), 0.0)
        x[:, u] = token
        walk.put(u, x[:, u])
        log_weight = log_weight + factor.view(groups, particles)
        size = _effective(log_weight)
        effective = torch.minimum(effective, size)
        # Uneven weights waste particles: where half of them are wasted, resample now.
        wasted = (size < particles / 2)[:, None]
        if not bool(wasted.any()):
            if trail is not None:
                trail.moves.append((token, None))
            continue
        chosen = _systematic(log_weight, particles, generator=generator)
        place = (torch.where(wasted, chosen, torch.arange(particles, device=device)) + offset).flatten()
        again = wasted & (size > 0)[:, None]
        log_mean = log_mean + torch.where(again.squeeze(1), log_weight.logsumexp(1) - math.log(particles), 0.0)
        log_weight = torch.where(again, 0.0, log_weight)
        if trail is not None:
            trail.moves.append((token, place))
        x, y, walk = x[place], None if y is None else y[place], None  # a walk follows rows that stay where they are

    chosen = _systematic(log_weight, keep, generator=generator)
    if trail is not None:
        trail.kept = (chosen + offset).flatten()
    kept = x.view(groups, particles, sites).gather(1, chosen[..., None].expand(-1, -1, sites))
    log_mean = log_mean + log_weight.logsumexp(1) - math.log(particles)
    labels = None if y is None else y.view(groups, particles).gather(1, chosen)
    return kept.to(torch.uint8), effective, labels, log_mean


def _pick(values: Tensor, token: Tensor) -> Tensor:
    return values.gather(-1, token.long()[..., None]).squeeze(-1)


def _effective(log_weight: Tensor) -> Tensor:
    r"""Effective number :math:`(\sum w)^2 / \sum w^2` of each group's particles; 0 where no weight is left."""
    weight = (log_weight - log_weight.amax(-1, keepdim=True)).exp().nan_to_num(nan=0.0)
    return weight.sum(-1).square() / weight.square().sum(-1).clamp(min=torch.finfo(weight.dtype).tiny)


def _systematic(log_weight: Tensor, n: int, *, generator: Generator) -> Tensor:
    """Pick n particles of each group, each as often as its weight says to within one, (groups, n)."""
    groups, particles = log_weight.shape
    weight = (log_weight - log_weight.amax(-1, keepdim=True)).exp().nan_to_num(nan=1.0)
    cdf = weight.cumsum(-1)
    level = (torch.arange(n, device=cdf.device) + uniforms(groups, generator=generator)[:, None]) / n
    return torch.searchsorted(cdf, level * cdf[:, -1:], right=True).clamp(max=particles - 1)
