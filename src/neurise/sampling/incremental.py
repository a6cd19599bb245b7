"""The reverse chain by walks: a step updates what the step before it left, instead of evaluating whole rows."""

from __future__ import annotations

import sys

import torch
from torch import Generator, Tensor

from neurise import devices
from neurise.batching import CACHE
from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals
from neurise.networks.parts.walk import Walk
from neurise.noise.base import SiteNoise
from neurise.walks import Recomputed

LEAST_ROWS = 512
"""Rows that go together on a CPU, however wide they are: a step of few rows takes as long as one of many."""


@torch.no_grad()
def reverse(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    precision: str = "float32",
) -> Tensor:
    """Run the chain from X_T = x back to X_0, (n, sites) tokens, as :func:`neurise.sampling.reverse.reverse` does."""
    noise, state = conditionals.noise, transposed(x)
    for cycle in reversed(range(noise.cycles)):
        top = noise.top(cycle)
        level = uniforms(top * len(x), generator=generator).view(top, len(x))
        if not forgotten(conditionals, cycle):
            run_in_blocks(conditionals, state, y, level, cycle=cycle, precision=precision)
    return state.T.contiguous()


@torch.no_grad()
def sweep(conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    """Redraw every site once at time 0, as :func:`neurise.sampling.corrector.sweep` does."""
    state = transposed(x)
    level = uniforms(state.numel(), generator=generator).view(state.shape)
    run_in_blocks(conditionals, state, y, level, sweep=True)
    return state.T.contiguous()


def transposed(x: Tensor) -> Tensor:
    """Lay rows out as (sites, n): a step reads and writes one stretch of memory."""
    return x.T.clone(memory_format=torch.contiguous_format)


def forgotten(conditionals: Conditionals, cycle: int) -> bool:
    """Whether a cycle need not be run: after hard noise that is hidden, the last one draws every site anew."""
    view = conditionals.view(sweep=False)
    whole = conditionals.noise.num_steps >= conditionals.noise.space.sites
    return cycle > 0 and view is not None and view.grows and whole


def begin_walk(conditionals: Conditionals, x: Tensor, y: Tensor | None, cycle: int, top: int) -> Walk:
    """Begin to follow rows (n, sites) through a cycle at site ``top`` − 1: for loops that draw in their own way."""
    sites = torch.arange(x.shape[1], device=x.device)
    if forgotten(conditionals, cycle):  # no plan is made for such cycles: samplers leave them out
        return Recomputed(conditionals, cycle * len(sites) + sites, x.T, y)
    which = torch.full((1,), cycle, dtype=torch.int64, device=x.device)
    return conditionals.walk(x.T.contiguous(), y, which, top=top)


def run_in_blocks(
    conditionals: Conditionals,
    state: Tensor,
    y: Tensor | None,
    level: Tensor,
    *,
    cycle: int = 0,
    sweep: bool = False,
    precision: str = "float32",
) -> None:
    """Run one cycle, or one sweep, in place on tokens (sites, n), in blocks of rows that stay in the cache."""
    n = state.shape[1]
    # A few layers stay in the cache, and enough rows share the time that it takes to begin each step.
    in_cache = max(LEAST_ROWS, CACHE // conditionals.bytes_per_row)
    size = min(n, most_at_once(conditionals)) if state.is_cuda else in_cache
    which = torch.full((1,), cycle, dtype=torch.int64, device=state.device)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        part, labels = state[:, rows].contiguous(), None if y is None else y[rows]
        walk = conditionals.walk(part, labels, which, top=len(level), sweep=sweep, precision=precision)
        run_cycle(walk, conditionals.noise, part, level[:, rows], sweep=sweep)
        state[:, rows] = part


def most_at_once(conditionals: Conditionals) -> int:
    """Return how many rows may walk at once: what is kept of them takes at most a quarter of the device's memory."""
    if not conditionals.bytes_per_walk:
        return sys.maxsize
    return max(1, devices.total_bytes(conditionals.device) // (4 * conditionals.bytes_per_walk))


def run_cycle(walk: Walk, noise: SiteNoise, x: Tensor, level: Tensor, *, sweep: bool = False) -> None:
    """Draw one site after another, in place on x (sites, n); ``level`` (top, n) are uniforms in the order of the steps."""
    binary = noise.space.states == 2
    bonus = 0.0 if sweep else kept_bonus(noise)
    if binary:
        level = torch.log1p(-level) - level.log()  # a threshold on the log-odds: see choose
    for step, u in enumerate(reversed(range(len(level)))):
        token = choose(walk.logits(u), x[u], level[step], bonus=bonus)
        walk.put(u, token)
        x[u] = token


def kept_bonus(noise: SiteNoise) -> float:
    """Return what Bayes' rule adds to the logit of the present token; noise that has no such number is not for walks."""
    bonus = noise.kept_bonus
    if bonus is None:
        raise ValueError(f"{type(noise).__name__} has no kept_bonus: its kernel is for the reference loop")
    return bonus


def choose(logits: Tensor, x_u: Tensor, level: Tensor, *, bonus: float) -> Tensor:
    r"""Draw from the Bayes kernel of a step by inverse CDF, (n,) tokens.

    With two states, :math:`U \ge P(0) = 1/(1 + e^f)` is :math:`f \ge \log\frac{1-U}{U}`, and ``level`` is the right side.
    """
    if logits.shape[-1] == 1:
        if bonus:
            level = level - bonus * (2 * x_u.to(level.dtype) - 1)
        return torch.ge(logits.squeeze(-1), level, out=torch.empty_like(x_u))
    if bonus:
        present = x_u[:, None] == torch.arange(logits.shape[-1], device=x_u.device)
        logits = logits + bonus * present
    return draw(logits - logits.amax(-1, keepdim=True), level).to(x_u.dtype)
