r"""Sampling with some sites given (inpainting), by sequential importance resampling.

Holding or re-noising the given sites and sampling the rest around them is wrong in law. What is right: particles carry a
weight. A given site follows the noise *bridge* from its value c (the forward chain, known exactly, see
:meth:`RoundRobin.bridge`) instead of the learnt reverse kernel, and the weight is multiplied by the ratio of the two,

.. math:: w \leftarrow w \cdot \frac{P_\theta(x_{t,u} \mid X_{t+1})}{q(x_{t,u} \mid x_{0,u} = c, X_{t+1,u})} .

Weighted particles then follow the model's law given :math:`X_0 = c` at the clamped sites, and resampling by weight draws
from it, with an error of one over the number of particles. In the last cycle the bridge is the value itself and the factor
its likelihood. With hard noise and clamped sites that are generated first, all weights are equal: the draw is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from neurise.conditionals import Conditionals
from neurise.sampling.categorical import draw, uniforms


@dataclass(frozen=True)
class Particles:
    """Resampled particles, (groups, keep, sites) tokens, and the smallest effective number each group went through."""

    x: Tensor
    effective: Tensor  # (groups,)


@torch.no_grad()
def sample_clamped(
    conditionals: Conditionals,
    values: Tensor,
    given: Tensor,
    y: Tensor | None = None,
    *,
    particles: int,
    keep: int,
    generator: Generator,
) -> Particles:
    """Draw ``keep`` configurations for each of G groups of particles.

    ``values`` (G, sites) are tokens and ``given`` (G, sites) says which of them hold; y is (G · particles,) or None.
    """
    noise, groups = conditionals.noise, len(values)
    sites, device = noise.space.sites, values.device
    value, is_given = values.repeat_interleave(particles, 0), given.repeat_interleave(particles, 0)
    rows = groups * particles

    # Start: given sites from their own noised law, which costs a factor uniform / q(x_T | c); no factor for hard noise.
    all_visits = torch.tensor([noise.cycles], device=device)
    log_noised = noise.log_kernel(value, all_visits[:, None])  # (rows, sites, states)
    uniform = uniforms(rows * sites, generator=generator).reshape(rows, sites)
    noised = draw(log_noised, uniform)
    x = torch.where(is_given, noised, noise.start(rows, generator=generator))
    ratio = torch.log(torch.tensor(1 / noise.space.states, dtype=torch.float64)) - _pick(log_noised, x)
    log_weight = torch.where(is_given, ratio, 0.0).sum(-1).reshape(groups, particles)
    effective = torch.full((groups,), float(particles), dtype=torch.float64, device=device)

    steps = torch.arange(noise.num_steps, device=device)
    somewhere = given.any(0).tolist()
    for t in reversed(range(noise.num_steps)):
        u, step = t % sites, steps[t : t + 1]
        log_conditional = conditionals.log_conditional(step, noise.site(step), x, y)
        log_step = noise.reverse(log_conditional, x[:, u]).double()
        uniform = uniforms(rows, generator=generator)
        if not somewhere[u]:
            x[:, u] = draw(log_step, uniform)
            continue
        bridge = noise.bridge(value[:, u], x[:, u], noise.visits(step)[:, u])
        holds = is_given[:, u]
        token = draw(torch.where(holds[:, None], bridge, log_step), uniform)
        factor = _pick(log_step, token) - _pick(bridge, token)
        log_weight = log_weight + torch.where(holds, factor, 0.0).reshape(groups, particles)
        x[:, u] = token
        size = _effective(log_weight)
        effective = torch.minimum(effective, size)
        # Resample early where the weights have become too uneven for the particles to be worth their number.
        chosen = _systematic(log_weight, particles, generator=generator)
        thin = (size < particles / 2)[:, None]
        chosen = torch.where(thin, chosen, torch.arange(particles, device=device))
        log_weight = torch.where(thin, 0.0, log_weight)
        offset = torch.arange(groups, device=device)[:, None] * particles
        flat = (chosen + offset).reshape(-1)
        x = x[flat]
        y = None if y is None else y[flat]

    chosen = _systematic(log_weight, keep, generator=generator)
    picked = x.reshape(groups, particles, sites).gather(1, chosen[..., None].expand(-1, -1, sites))
    return Particles(picked, effective)


def _pick(values: Tensor, token: Tensor) -> Tensor:
    return values.gather(-1, token.long()[..., None]).squeeze(-1)


def _effective(log_weight: Tensor) -> Tensor:
    r"""Effective number of particles :math:`(\sum w)^2 / \sum w^2` of each group; zero where all weights are."""
    weight = (log_weight - log_weight.amax(-1, keepdim=True)).nan_to_num(nan=0.0, posinf=0.0).exp()
    weight = torch.where(log_weight > -torch.inf, weight, 0.0)
    return weight.sum(-1).square() / weight.square().sum(-1).clamp(min=1e-300)


def _systematic(log_weight: Tensor, n: int, *, generator: Generator) -> Tensor:
    """Pick n particles of each group, each as often as its weight says to within one, (groups, n)."""
    groups, particles = log_weight.shape
    weight = torch.softmax(log_weight.nan_to_num(nan=0.0, neginf=-1e300), dim=-1)
    shift = uniforms(groups, generator=generator)[:, None]
    level = (torch.arange(n, device=log_weight.device) + shift) / n
    return torch.searchsorted(weight.cumsum(-1), level, right=True).clamp(max=particles - 1)
