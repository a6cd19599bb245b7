"""Weights and conditionals of pairwise models against exact laws."""

from __future__ import annotations

import itertools

import numpy as np
import oracles
import pytest
import torch
from pairwise_models import SPACES, law_of, random_model

from neurise import interactions
from neurise.interactions import Interactions
from neurise.space import Space


@pytest.mark.parametrize("space", SPACES)
def test_log_weight_is_the_sum_over_pairs_and_sites(space: Space) -> None:
    model, *parts = random_model(space)
    x = space.configurations()
    log_law = model.log_weight(x) - model.log_weight(x).logsumexp(0)
    np.testing.assert_allclose(log_law.exp().numpy(), law_of(space, *parts), rtol=1e-12)
    assert len(model.edges) == space.sites  # three times the same pair is one


def test_log_weight_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, *_ = random_model(SPACES[1])
    x = SPACES[1].configurations()
    whole = model.log_weight(x)
    monkeypatch.setattr(interactions, "BLOCK", 50)
    torch.testing.assert_close(model.log_weight(x), whole)


@pytest.mark.parametrize("few", [0, 10**6])  # as a matrix product, and as a sum over the neighbours
@pytest.mark.parametrize("space", SPACES)
def test_logits_are_the_conditionals_of_the_law(space: Space, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "FEW", few)
    model, *parts = random_model(space)
    law, x = law_of(space, *parts), space.configurations()
    seen = []
    for group, sites in enumerate(model.groups):
        conditional = model.logits(group, x).softmax(-1).numpy()
        assert conditional.shape == (space.size, len(sites), space.states)
        for place, site in enumerate(sites.tolist()):
            np.testing.assert_allclose(conditional[:, place], oracles.conditional(space, law, site), rtol=1e-12)
            seen.append(site)
    assert sorted(seen) == list(range(space.sites))


def test_sites_of_a_group_do_not_interact() -> None:
    rng = np.random.default_rng(3)
    edges = np.array([pair for pair in itertools.combinations(range(12), 2) if rng.random() < 0.4])
    model = Interactions.ising(edges, rng.normal(size=len(edges)), np.zeros(12))
    colour = {site: group for group, sites in enumerate(model.groups) for site in sites.tolist()}
    assert len(colour) == 12
    assert all(colour[i] != colour[j] for i, j in edges.tolist())
