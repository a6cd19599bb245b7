"""Glauber sweeps against exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest
import torch
from chi_square import assert_drawn_from
from pairwise_models import SPACES, generator, law_of, random_model

from neurise.mcmc import SiteBySite, sweep
from neurise.space import Space

DRAWS = 100_000


def site_kernel(space: Space, law: np.ndarray, site: int) -> np.ndarray:
    """Heat bath at one site, [new, old], from the law alone."""
    conditional = oracles.conditional(space, law, site)
    kernel = np.zeros((space.size, space.size))
    place = {x: i for i, x in enumerate(oracles.configurations(space))}
    for old, x in enumerate(oracles.configurations(space)):
        for token in range(space.states):
            kernel[place[(*x[:site], token, *x[site + 1 :])], old] = conditional[old, token]
    return kernel


def sweep_kernel(space: Space, law: np.ndarray, order: list[int]) -> np.ndarray:
    kernel = np.eye(space.size)
    for site in order:
        kernel = site_kernel(space, law, site) @ kernel
    return kernel


@pytest.mark.parametrize("space", SPACES)
def test_redrawing_a_group_leaves_the_law_as_it_is(space: Space) -> None:
    """The kernel of a group, written out from the model's own logits, times the law is the law."""
    model, *parts = random_model(space)
    law, configurations = law_of(space, *parts), np.array(oracles.configurations(space))
    for group, sites in enumerate(model.groups):
        log_chance = model.logits(group, space.configurations()).log_softmax(-1).numpy()  # (old, site, state)
        kernel = np.zeros((space.size, space.size))
        for old, new in itertools.product(range(space.size), repeat=2):
            moved = np.flatnonzero(configurations[old] != configurations[new])
            if set(moved.tolist()) <= set(sites.tolist()):
                chances = [
                    log_chance[old, place, configurations[new, site]] for place, site in enumerate(sites.tolist())
                ]
                kernel[new, old] = math.exp(sum(chances))
        np.testing.assert_allclose(kernel.sum(axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose(kernel @ law, law, rtol=1e-12)


@pytest.mark.parametrize("beta", [None, 1.0, 0.4, 0.0])
@pytest.mark.parametrize("space", SPACES)
def test_one_sweep_from_one_place_has_the_law_of_its_kernel(space: Space, beta: float | None) -> None:
    model, *parts = random_model(space)
    start = 7
    x = space.configurations(start, start + 1).repeat(DRAWS, 1)
    before = model.log_weight(x)
    betas = None if beta is None else torch.full((DRAWS,), beta, dtype=torch.float64)
    gain = sweep(model, x, generator=generator(), beta=betas)
    order = [site for sites in model.groups for site in sites.tolist()]
    tempered = law_of(space, *parts, beta=1.0 if beta is None else beta)
    assert_drawn_from(space.index(x).numpy(), sweep_kernel(space, tempered, order)[:, start])
    torch.testing.assert_close(gain, model.log_weight(x) - before)  # of the law itself, at whatever temperature


def test_chains_have_their_own_temperatures() -> None:
    space = SPACES[1]
    model, *parts = random_model(space)
    x = space.configurations(7, 8).repeat(2 * DRAWS, 1)
    betas = torch.tensor([0.2, 1.0], dtype=torch.float64).repeat(DRAWS)
    sweep(model, x, generator=generator(), beta=betas)
    order = [site for sites in model.groups for site in sites.tolist()]
    for chain, beta in enumerate((0.2, 1.0)):
        kernel = sweep_kernel(space, law_of(space, *parts, beta=beta), order)
        assert_drawn_from(space.index(x[chain::2]).numpy(), kernel[:, 7])


def test_sweep_of_any_conditionals_in_any_order() -> None:
    """A law without structure, zeros included, known through a function of site and rows alone."""
    space, order = Space(sites=3, states=4), [2, 0, 1]
    law = oracles.random_law(space, seed=1, zeros=0.2)
    with np.errstate(divide="ignore", invalid="ignore"):
        tables = [torch.from_numpy(np.log(oracles.conditional(space, law, site))) for site in range(space.sites)]
    start = int(law.argmax())
    x = space.configurations(start, start + 1).repeat(DRAWS, 1)
    sweep(SiteBySite(lambda u, rows: tables[u][space.index(rows)], order), x, generator=generator())
    with np.errstate(invalid="ignore"):
        kernel = np.nan_to_num(sweep_kernel(space, np.where(law > 0, law, 1e-300), order))
    assert_drawn_from(space.index(x).numpy(), np.where(kernel[:, start] < 1e-250, 0, kernel[:, start]))


def test_certain_states_are_kept_and_weigh_nothing() -> None:
    x = torch.tensor([[0, 1], [0, 0]], dtype=torch.uint8)
    certain = torch.tensor([[-math.inf, 0.0], [0.0, -math.inf]])  # site 0 is 1, site 1 is 0
    gain = sweep(SiteBySite(lambda u, rows: certain[u].expand(len(rows), 2), [0]), x.clone(), generator=generator())
    assert (gain > 1e30).all()  # from what is impossible to what is certain
    certain_x = torch.tensor([[1, 0], [1, 0]], dtype=torch.uint8)
    gain = sweep(SiteBySite(lambda u, rows: certain[u].expand(len(rows), 2), [0, 1]), certain_x, generator=generator())
    assert gain.tolist() == [0.0, 0.0]
    assert certain_x.tolist() == [[1, 0], [1, 0]]
