"""The one reverse loop, which every faster form is tied to, and the choice among these forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import Generator, Tensor

from neurise.batching import batches, budget_on
from neurise.conditionals import Conditionals
from neurise.sampling import _plan, fused, graphs, incremental
from neurise.sampling.categorical import draw, uniforms

METHODS = ("fused", "graphs", "incremental", "reference")
"""Forms of the reverse loop, the fastest first. All draw the same rows from the same random numbers, up to rounding."""


WORTHWHILE = 2**21
"""Draws from which on seconds of compiling are worth it. Below, the incremental form ends sooner."""


class Reverse(Protocol):
    """A form of the reverse loop."""

    def __call__(
        self, conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator
    ) -> Tensor:
        """Run the chain from X_T = x back to X_0, (n, sites) tokens."""


def reverse(conditionals: Conditionals, x: Tensor, y: Tensor | None = None, *, generator: Generator) -> Tensor:
    r"""Run the chain from :math:`X_T` = x back to :math:`X_0`, (n, sites) tokens; one evaluation a step.

    Step t = T−1 … 0 replaces site u = t mod q by a draw from the Bayes kernel
    :math:`P(a \mid \tilde x) \propto k(\tilde x_u \mid a)\,\mu_t(a \mid x_{-u})`.
    """
    noise, sites, n = conditionals.noise, conditionals.noise.space.sites, len(x)
    steps = torch.arange(noise.num_steps, device=x.device)
    x = x.clone()
    for t in reversed(range(noise.num_steps)):
        u = t % noise.space.sites
        if t % sites == sites - 1:  # random numbers are drawn a cycle at a time, as the faster forms do
            level = uniforms(sites * n, generator=generator).view(sites, n)
        step = steps[t : t + 1]  # a slice, not an element: indexing with one would wait for the device
        log_conditional = conditionals.log_conditional(step, noise.site(step), x, y)
        x[:, u] = draw(noise.reverse(log_conditional, x[:, u]), level[sites - 1 - t % sites])
    return x


@torch.no_grad()
def sample(
    conditionals: Conditionals,
    n: int,
    y: Tensor | None = None,
    *,
    generator: Generator,
    method: str | None = None,
    precision: str = "float32",
) -> Tensor:
    """Draw n configurations, starting from uniform noise, in batches that fit the memory budget.

    The form of the loop is chosen by itself unless ``method`` names one. ``precision`` is that of the hidden layers:
    "bfloat16" is faster on a GPU, and moves probabilities by up to about 0.03.
    """
    run = choose(conditionals, method, precision, draws=n * conditionals.noise.num_steps)
    pinned = conditionals.device.type == "cuda"  # copies to it need not wait for each other
    drawn = torch.empty(n, conditionals.noise.space.sites, dtype=torch.uint8, pin_memory=pinned)
    for rows in batches(n, conditionals.bytes_per_row, budget_on(conditionals.device)):
        noise = conditionals.noise.start(rows.stop - rows.start, generator=generator)
        labels = None if y is None else y[rows]
        drawn[rows].copy_(run(conditionals, noise, labels, generator=generator), non_blocking=pinned)
    if pinned:
        torch.cuda.synchronize(conditionals.device)
    return drawn


def choose(
    conditionals: Conditionals, method: str | None = None, precision: str = "float32", *, draws: int = WORTHWHILE
) -> Reverse:
    """Return the fastest form of the loop that serves these conditionals where they are, or the one that is named.

    ``draws`` is how many tokens are to be drawn in all: for few of them nothing is compiled or recorded.
    """
    if method is None:
        offered = METHODS if draws >= WORTHWHILE else METHODS[METHODS.index("incremental") :]
        method = next(name for name in offered if serves(name, conditionals, precision))
    elif method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    elif not serves(method, conditionals, precision):
        raise ValueError(
            f"method {method!r} cannot serve {type(conditionals).__name__} on {conditionals.device}; "
            "leave it out, and the fastest that can is taken"
        )
    if method == "reference":
        return reverse
    forms: dict[str, Callable[..., Tensor]] = {
        "fused": fused.reverse,
        "graphs": graphs.reverse,
        "incremental": incremental.reverse,
    }
    return partial(forms[method], precision=precision)


def serves(method: str, conditionals: Conditionals, precision: str = "float32") -> bool:
    """Whether a form of the loop can run with these conditionals where they are."""
    if method == "reference":
        return True
    if not _plan.supports(conditionals):
        return False
    if method == "fused":
        return fused.available(conditionals.device) and fused.fits(conditionals, precision)
    return method == "incremental" or graphs.available(conditionals.device)
