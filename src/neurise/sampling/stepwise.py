r"""Chains told step by step: every state on the way, and the law that each token was drawn from.

The loops of :mod:`neurise.sampling.reverse` and :mod:`neurise.sampling.parallel` keep the present state alone. These tell of
each step as they make it, from the same random numbers in the same order, so they end in the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals, Ordered
from neurise.noise.base import SiteNoise
from neurise.sampling.corrector import Sweeps, swept_sites
from neurise.sampling.incremental import begin_walk
from neurise.sampling.parallel import ParallelChain
from neurise.walks import log_law


class Move(NamedTuple):
    """One step of n chains."""

    time: int  # of the state that it leads to
    site: Tensor | None  # (n,) the place of the order that each chain redraws; None: all of them
    token: Tensor  # (n,); (n, sites) where all sites move
    law: Tensor  # the logarithm of the law that the token was drawn from, (n, tokens) or (n, sites, tokens)
    conditional: Tensor | None = None  # the logarithm of the learnt conditional behind it, (n, states)


@torch.no_grad()
def reverse_moves(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    sweeps: Sweeps | None = None,
    held: Tensor | None = None,
    known: Sequence[Tensor] | None = None,
) -> Iterator[Move]:
    r"""Run the chain from :math:`X_T` = x, (n, sites), back to :math:`X_0`, one move per step, and sweeps among and after them.

    ``known`` are the tokens of all steps of the chain, (n,) each, where they were drawn before: then their laws are told, and
    sweeps alone draw anything. Sweeps leave the sites that are ``held``, (n, sites), as they are.
    """
    noise, n, sweeps = conditionals.noise, len(x), sweeps or {}
    states, steps = noise.space.states, torch.arange(noise.num_steps, device=x.device)
    x, past = x.clone(), iter(known or ())
    for cycle in reversed(range(noise.cycles)):
        top = noise.top(cycle)
        level = None if known is not None else uniforms(top * n, generator=generator).view(top, n)
        walk = begin_walk(conditionals, x, y, cycle, top)
        for u in reversed(range(top)):
            t = cycle * noise.space.sites + u
            log_conditional = log_law(walk.logits(u), states)
            law = noise.reverse(log_conditional, x[:, u], steps[t : t + 1])
            token = next(past) if level is None else draw(law, level[top - 1 - u])
            x[:, u] = token.to(x.dtype)
            walk.put(u, x[:, u])
            yield Move(t, _everywhere(u, x), token, law, log_conditional)
            for _ in range(sweeps.get(t, 0)):
                yield from _sweep_moves(conditionals.clean, x, y, t, held, generator)
                if u:
                    walk = begin_walk(conditionals, x, y, cycle, u)


def _sweep_moves(
    conditionals: Conditionals, x: Tensor, y: Tensor | None, t: int, held: Tensor | None, generator: Generator
) -> Iterator[Move]:
    """Redraw every site of x once, in place, as :func:`neurise.sampling.corrector.sweep` does."""
    noise, sites = conditionals.noise, conditionals.noise.space.sites
    places, step = torch.arange(sites, device=x.device), torch.full((1,), t, device=x.device)
    level = uniforms(sites * len(x), generator=generator).view(sites, len(x))
    for number, u in enumerate(reversed(swept_sites(conditionals, t))):
        log_conditional = conditionals.log_conditional(step, places[u : u + 1], x, y)
        law = noise.redraw(log_conditional, x[:, u])
        token = draw(law, level[number]).to(x.dtype)
        x[:, u] = token if held is None else torch.where(held[:, u], x[:, u], token)
        yield Move(t, _everywhere(u, x), x[:, u].clone(), law, log_conditional)


@torch.no_grad()
def noise_moves(noise: SiteNoise, x: Tensor, *, generator: Generator) -> Iterator[Move]:
    r"""Noise rows (n, sites) step by step, :math:`X_{t+1,u} \sim k(\cdot \mid X_{t,u})`, from t = 0 to T."""
    x = x.to(torch.int16)  # a mask may be token 256
    once = torch.ones(len(x), dtype=torch.int64, device=x.device)
    for t in range(noise.num_steps):
        u = t % noise.space.sites
        site = _everywhere(u, x)
        law = noise.log_noised_token(x[:, u], once, site)
        token = draw(law, uniforms(len(x), generator=generator))
        x[:, u] = token.to(x.dtype)
        yield Move(t + 1, site, token, law)


@torch.no_grad()
def joint_moves(chain: ParallelChain, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Iterator[Move]:
    """Run a chain that changes all sites at once from x, (n, sites), back to the data."""
    for step in reversed(range(chain.num_steps)):
        uniform = uniforms(x.numel(), generator=generator).view(x.shape)
        law = chain.log_step(step, x, y)
        x = draw(law, uniform).to(x.dtype)
        yield Move(step, None, x.clone(), law)


def mixture_moves(chains: Sequence[tuple[Ordered, Tensor, Sequence[Move]]], n: int) -> Iterator[Move]:
    """Put the moves of several chains together, each of which has rows (k,) of its own and takes the sites in its own order.

    They make equally many steps.
    """
    for moves in zip(*(own for _, _, own in chains), strict=True):
        first = moves[0]
        site = torch.empty(n, dtype=torch.int64)
        token = torch.empty(n, dtype=first.token.dtype)
        law, conditional = torch.empty(n, first.law.shape[-1]), torch.empty(n, first.law.shape[-1])
        for (chain, rows, _), move in zip(chains, moves, strict=True):
            assert move.site is not None
            assert move.conditional is not None
            place = move.site.cpu()
            site[rows] = place if chain.order is None else torch.tensor(chain.order)[place]
            token[rows] = move.token.cpu()
            law[rows], conditional[rows] = move.law.cpu().float(), move.conditional.cpu().float()
        yield Move(first.time, site, token, law, conditional)


def _everywhere(u: int, x: Tensor) -> Tensor:
    return torch.full((len(x),), u, device=x.device)
