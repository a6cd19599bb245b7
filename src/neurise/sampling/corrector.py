r"""Glauber sweeps at a fixed time: the corrector of a predictor–corrector sampler.

A site is redrawn from its conditional given all the others, :math:`\mu_t(x_u \mid x_{-u})`, which leaves :math:`\mu_t` as it
is. What the reverse steps got wrong is pulled back towards the law that these conditionals belong to. They must have been
learnt at every site of that time: round-robin training alone visits one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor

from neurise import checks
from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals
from neurise.sampling import graphs, incremental

Sweeps = Mapping[int, int]
"""How many sweeps run at which times of the chain; time 0 is after the last reverse step."""


def checked_sweeps(wanted: Any, conditionals: Conditionals, *, clean: bool, anytime: bool) -> dict[int, int]:
    """Return sweeps by time: from a number (at time 0) or a mapping. Raise ValueError where nothing was taught for them."""
    given = dict(wanted) if isinstance(wanted, Mapping) else {0: wanted}
    found = {}
    for time, count in given.items():
        t, sweeps = checks.whole("a time of sweeps", time), checks.whole("sweeps", count, checks.MOST_STEPS)
        if t >= conditionals.noise.num_steps:
            raise ValueError(f"sweeps at time {t}: the chain has the times 0 … {conditionals.noise.num_steps - 1}")
        if sweeps and t == 0 and not clean:
            raise ValueError(
                f"sweeps={sweeps} needs the conditionals of the data itself: those of an energy, where one was learnt "
                "(architecture__energy), or of a network that was taught them: fit with corrector__clean above 0, 0.25 say "
                "(of a network of rows, a fit that was interrupted has none)"
            )
        if sweeps and t > 0 and not (clean and anytime):
            raise ValueError(
                f"sweeps at time {t} need a network that knows every site at that time: fit with corrector__clean above "
                "0, 0.25 say, and corrector__anytime=True"
            )
        if sweeps:
            found[t] = sweeps
    return found


def swept_sites(conditionals: Conditionals, t: int) -> range:
    """Return the sites that a sweep at time t redraws: those that do not hold pure noise then."""
    sites = conditionals.noise.space.sites
    return range(min(t, sites) if conditionals.noise.is_hard else 0, sites)


def sweep(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    t: int = 0,
    held: Tensor | None = None,
    generator: Generator,
) -> Tensor:
    """Redraw every site of x (n, sites) once, the last one first, at time t; sites that are ``held`` stay, (n, sites).

    Sites that hold noise and nothing else stay too: those that hard noise erased, and masks.
    """
    sites = conditionals.noise.space.sites
    places = torch.arange(sites, device=x.device)
    step = torch.full((1,), t, device=x.device)
    x = x.clone()
    level = uniforms(sites * len(x), generator=generator).view(sites, len(x))  # in the order of the steps
    for number, u in enumerate(reversed(swept_sites(conditionals, t))):
        log_conditional = conditionals.log_conditional(step, places[u : u + 1], x, y)
        token = draw(conditionals.noise.redraw(log_conditional, x[:, u]), level[number])
        x[:, u] = token if held is None else torch.where(held[:, u], x[:, u], token)
    return x


@torch.no_grad()
def correct(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    sweeps: int,
    held: Tensor | None = None,
    generator: Generator,
) -> Tensor:
    """Sweep rows (n, sites) at time 0, as fast as the conditionals and the device allow."""
    asked = conditionals.clean
    for _ in range(sweeps):
        if held is not None:
            x = sweep(asked, x, y, held=held, generator=generator)
        elif graphs.available(asked.device):
            x = graphs.sweep(asked, x, y, generator=generator)
        else:
            x = incremental.sweep(asked, x, y, generator=generator)
    return x
