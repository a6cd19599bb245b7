"""The one reverse loop, which every faster form is tied to, and the choice among these forms."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import torch
from torch import Generator, Tensor

from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals
from neurise.sampling import graphs, incremental
from neurise.sampling.corrector import Sweeps, correct, sweep

METHODS = ("fused", "graphs", "incremental", "reference")
"""Forms of the reverse loop, the fastest first. All draw the same rows from the same random numbers, up to rounding."""
WORTHWHILE = 2**21
"""Draws from which on seconds of compiling are worth it. Below, the incremental form ends sooner."""

FOR_LONG_STEPS = 16
"""So many times as many where steps look at all that walks keep: they take long, and to record them takes four runs."""


class Reverse(Protocol):
    """A form of the reverse loop."""

    def __call__(
        self, conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator
    ) -> Tensor:
        """Run the chain from X_T = x back to X_0, (n, sites) tokens."""


def reverse(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    sweeps: Sweeps | None = None,
) -> Tensor:
    r"""Run the chain from :math:`X_T` = x back to :math:`X_0`, (n, sites) tokens; one evaluation per step.

    Step t = T−1 … 0 replaces site u = t mod q by a draw from the Bayes kernel
    :math:`P(a \mid \tilde x) \propto k(\tilde x_u \mid a)\,\mu_t(a \mid x_{-u})`. ``sweeps`` says how many sweeps follow the
    step that leads to a time above 0.
    """
    noise, n = conditionals.noise, len(x)
    steps = torch.arange(noise.num_steps, device=x.device)
    x = x.clone()
    for cycle in reversed(range(noise.cycles)):
        top = noise.top(cycle)
        level = uniforms(top * n, generator=generator).view(top, n)  # a cycle at a time, as the faster forms do
        for u in reversed(range(top)):
            t = cycle * noise.space.sites + u
            step = steps[t : t + 1]  # a slice, not an element: indexing with one would wait for the device
            log_conditional = conditionals.log_conditional(step, noise.site(step), x, y)
            x[:, u] = draw(noise.reverse(log_conditional, x[:, u], step), level[top - 1 - u])
            for _ in range((sweeps or {}).get(t, 0) if t else 0):
                x = sweep(conditionals.clean, x, y, t=t, generator=generator)
    return x


@torch.no_grad()
def sample(
    conditionals: Conditionals,
    n: int,
    y: Tensor | None = None,
    *,
    generator: Generator,
    sweeps: Sweeps | None = None,
    start: Tensor | None = None,
    method: str | None = None,
    precision: str | None = None,
) -> Tensor:
    """Draw n configurations in batches that fit the memory budget, starting from noise or from ``start`` (n, sites).

    The form of the loop is chosen by itself unless ``method`` names one. ``precision`` is that of the hidden layers:
    "bfloat16" is faster on a GPU, and moves probabilities by up to about 0.03; by default it is what the conditionals are
    made for. ``sweeps`` are those of a corrector.
    """
    noise, sweeps, on_gpu = conditionals.noise, sweeps or {}, conditionals.ignored.is_cuda
    # A CPU has no shorter numbers that are faster.
    precision = precision or (conditionals.walks_in if on_gpu and method != "reference" else "float32")
    if any(t > 0 for t in sweeps):
        run: Reverse = partial(reverse, sweeps=sweeps)
    else:
        run = choose(conditionals, method, precision, draws=n * noise.num_steps)
    # Copies to pinned memory need not wait for each other.
    drawn = torch.empty(n, noise.space.sites, dtype=torch.uint8, pin_memory=on_gpu)
    for rows in conditionals.blocks_to_draw(n):
        begin = noise.start(rows.stop - rows.start, generator=generator) if start is None else start[rows]
        labels = None if y is None else y[rows]
        x = run(conditionals, begin, labels, generator=generator)
        if sweeps.get(0):
            x = correct(conditionals, x, labels, sweeps=sweeps[0], generator=generator)
        drawn[rows].copy_(x, non_blocking=on_gpu)
    if on_gpu:
        torch.cuda.synchronize(conditionals.device)
    return drawn


def choose(
    conditionals: Conditionals, method: str | None = None, precision: str = "float32", *, draws: int = WORTHWHILE
) -> Reverse:
    """Return the fastest form of the loop that serves these conditionals where they are, or the one that is named.

    ``draws`` is how many tokens are to be drawn in all: for few of them nothing is compiled or recorded.
    """
    if method is None:
        worthwhile = WORTHWHILE * (FOR_LONG_STEPS if conditionals.bytes_per_walk else 1)
        offered = METHODS if draws >= worthwhile else METHODS[METHODS.index("incremental") :]
        method = next(name for name in offered if serves(name, conditionals, precision))
    elif method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    elif not serves(method, conditionals, precision):
        raise ValueError(
            f"method {method!r} cannot serve {type(conditionals).__name__} on {conditionals.device}; "
            "leave it out, and the fastest that can is taken"
        )
    return _form(method, precision)


def _form(method: str, precision: str) -> Reverse:
    if method == "reference":
        return reverse
    if method == "incremental":
        return partial(incremental.reverse, precision=precision)
    if method == "graphs":
        return partial(graphs.reverse, precision=precision)
    from neurise.sampling import fused

    return partial(fused.reverse, precision=precision)


def serves(method: str, conditionals: Conditionals, precision: str = "float32") -> bool:
    """Whether a form of the loop can run with these conditionals where they are."""
    if method == "reference":
        return precision == "float32"
    if conditionals.noise.tokens != conditionals.noise.space.states or conditionals.noise.kept_bonus is None:
        return False
    if method == "incremental":
        return True
    if not graphs.available(conditionals.device):
        return False
    if method == "graphs":
        return True
    from neurise.sampling import fused

    return fused.available(conditionals.device) and fused.fits(conditionals, precision)
