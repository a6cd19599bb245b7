r"""The data's own conditionals by regressions of every site on all others, learnt from rows that were noised a little.

Sweeps redraw each site given all the others. They begin with rows that a chain has drawn, and in these sites disagree that never
do so in the data. A regression that was learnt from the data alone may follow any of several sites which always agree there, and
sweeps by it lead away from the data. So the sites that it looks at are noised:

.. math:: \min_{A, b}\ \mathbb{E}\Bigl[-\log \mu(x_u \mid \tilde x_{-u})\Bigr] + \lambda \sum_{u,i} \lVert A_{u,i} \rVert,
   \qquad \tilde x_i = \begin{cases} x_i & \text{with probability } 1 - \epsilon, \\ \text{uniform} & \text{otherwise,}
   \end{cases}

where the target :math:`x_u` is that of the data. Of several sites that agree all are followed then, each a little.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Generator, Tensor

from neurise.deadline import Work
from neurise.energies.pairwise_regression import Terms, expanded
from neurise.energies.regressions import Sample, descend, marginals, most_bend, noise_unit, sample_of
from neurise.rows import Rows
from neurise.space import Space

NOISE = 0.02
"""ε. Reads of annealers rise in energy under sweeps without it, by 4 of 368 (263 qubits), and stay where they are with it."""
STRENGTH = 0.01
"""λ, in units of the noise of a block's gradient."""
MOST_WORK = {"cpu": 3e9, "cuda": 3e12}
"""Rows × columns² up to which the fit is a matter of seconds, or of a minute on a CPU."""
MOST_COLUMNS = 2**13
"""Sites × states up to which terms of all pairs are kept: there are as many as the square of it."""


def serves(rows: Rows, space: Space, device: torch.device) -> bool:
    """Whether there is a fit of all pairs for rows without gaps and labels: whether it is not too much work."""
    columns = space.sites * (1 if space.states == 2 else space.states)
    work = len(rows) * columns**2
    return space.sites * space.states <= MOST_COLUMNS and work <= MOST_WORK.get(device.type, 0.0)


@torch.no_grad()
def fit(rows: Rows, space: Space, varies: Tensor, *, seed: int, work: Work | None = None) -> Terms:
    """Fit the terms of all sites that vary, on the device of ``varies`` (sites,)."""
    device, states = varies.device, space.states
    sample = noised(rows, space, device, Generator().manual_seed(seed))
    sees = (varies & varies[:, None]).fill_diagonal_(False)
    mask = sees.to(sample.features).repeat_interleave(sample.outcomes, 0).repeat_interleave(sample.outcomes, 1)
    penalty = STRENGTH * noise_unit(sample)
    found = descend(sample, marginals(sample), mask, penalty=penalty, most=most_bend(sample), work=work)
    return expanded(found, space.sites, states)


def noised(rows: Rows, space: Space, device: torch.device, generator: Generator) -> Sample:
    """Return rows whose targets are those of the data, and in whose features a share of the tokens was redrawn."""
    redrawn = torch.rand(rows.x.shape, generator=generator) < NOISE
    uniform = space.uniform(len(rows), generator=generator)
    noisy = replace(rows, x=torch.where(redrawn, uniform.to(rows.x.dtype), rows.x.cpu()))
    return replace(sample_of(rows, space.states, device), features=sample_of(noisy, space.states, device).features)
