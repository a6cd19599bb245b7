"""The terms of the theorem for models learnt from more and more rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from neurise.laws import as_law, distance
from neurise.models.neurise import NeurISE
from neurise.noise.round_robin import RoundRobin
from neurise.theory.bounds import Terms, step_errors, terms
from neurise.theory.starts import empirical, empirical_starts

SETTINGS: Mapping[str, Any] = {
    **{"width": 64, "depth": 2, "steps": 600, "training__batch_size": 512, "training__learning_rate": 4e-3},
    "chain__hide_noised": True,
}
"""A size of the paper's network that learns a few hundred configurations in a second or two; hard noise forgets the start."""

UNIFORM = "uniform"


class Learnt(NamedTuple):
    """A model learnt from so many rows: every bound, for every start, and what learning by heart would give."""

    rows: int
    seed: int
    memorised: float  # TV between the rows themselves and the pmf
    starts: dict[str, Terms]  # the uniform law first


def learning_curve(
    pmf: Any, noise: RoundRobin, sizes: Sequence[int], seeds: Sequence[int], **settings: Any
) -> Iterator[Learnt]:
    """Draw rows from a pmf, fit NeurISE to them and evaluate the terms of the theorem, for each size and seed.

    ``settings`` are parameters of the model, over :data:`SETTINGS`. A seed determines the rows, the training and the noise of
    the empirical starts.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> curve = theory.learning_curve(law, noise, sizes=[50], seeds=[0], width=4, members=1, steps=5)
    >>> len(list(curve))
    1
    """
    space = noise.space
    law = as_law(pmf, space.size, "pmf")
    for size in sizes:
        if isinstance(size, bool) or int(size) != size or size < 2:
            raise ValueError(f"a number of rows to learn from must be a whole number, at least 2, got {size!r}")
    chosen = {**SETTINGS, **settings, "keep_prob": noise.keep_prob, "cycles": noise.cycles}
    shares = (law / law.sum()).numpy()
    for size in sizes:
        for seed in seeds:
            places = torch.from_numpy(np.random.default_rng(seed).choice(space.size, int(size), p=shares))
            rows = space.configurations()[places]
            model = NeurISE.paper(**chosen, alphabet=list(range(space.states)))
            model.fit(rows.numpy(), seed=seed, device="cpu", verbose=False)
            errors = step_errors(model, law)
            generator = torch.Generator().manual_seed(seed)
            found = {UNIFORM: terms(model, law, errors=errors)}
            for name, start in empirical_starts(rows, noise, generator=generator).items():
                found[name] = terms(model, law, start, errors=errors)
            yield Learnt(int(size), seed, distance(empirical(rows, space), law), found)
