"""Regressions on known neighbours are solved to the end, and look at nothing else."""

from __future__ import annotations

import oracles
import pairwise_models
import pytest
import torch
from torch import Tensor

from neurise.energies import neighbours
from neurise.energies.regressions import sample_of
from neurise.rows import Rows
from neurise.space import Space

CPU = torch.device("cpu")
SPACES = pytest.mark.parametrize("space", pairwise_models.SPACES, ids=["p=2", "p=3"])


def ring(sites: int) -> Tensor:
    place = torch.arange(sites)
    gap = (place[:, None] - place) % sites
    return (gap == 1) | (gap == sites - 1)


def drawn(space: Space, n: int) -> Rows:
    model = pairwise_models.random_model(space)[1:]
    law = pairwise_models.law_of(space, *model, beta=0.7 if space.states == 2 else 0.3)
    return Rows(torch.from_numpy(oracles.draw(space, law, n, 0)).to(torch.uint8))


def logits(terms: neighbours.Terms, x: Tensor, states: int) -> Tensor:
    hot = (x[..., None] == torch.arange(states)).double().flatten(1)
    return terms.bias.double() + torch.einsum("uai,ni->nua", terms.pair.double(), hot)


@SPACES
@pytest.mark.parametrize("weighted", [False, True])
def test_the_terms_have_no_slope_left_but_that_of_the_penalty(space: Space, weighted: bool) -> None:
    rows = drawn(space, 400)
    if weighted:
        rows = Rows(rows.x, None, 1.0 + torch.arange(400).double() % 3)
    near = ring(space.sites)
    terms = neighbours.fit(rows, space.states, near, device=CPU)[0]
    weight = torch.ones(400).double() if rows.weights is None else rows.weights
    count, share = float(weight.sum()), weight / weight.sum()
    error = torch.softmax(logits(terms, rows.x, space.states), -1)
    error -= (rows.x[..., None] == torch.arange(space.states)).double()
    features = sample_of(rows, space.states, CPU).features.double()
    inner = features.shape[1] // space.sites
    slope = torch.einsum("n,nua,ni->uai", share, error, features).view(*error.shape[1:], space.sites, inner)
    # |slope| = λ |term|, for a bias too. A term of two states is four times that of their tokens, and is all of the log-odds.
    size = 4 * max(float(terms.pair.abs().max()), float(terms.bias.abs().max()))
    rounding = 1e-6  # of the terms, which are kept in float32
    assert float((share @ error.flatten(1)).abs().max()) < neighbours.PRIOR / count * size + rounding
    assert float((slope * near[:, None, :, None]).abs().max()) < neighbours.PRIOR / count * size + rounding


@SPACES
def test_sites_that_are_not_neighbours_are_not_looked_at(space: Space) -> None:
    terms = neighbours.fit(drawn(space, 300), space.states, ring(space.sites), device=CPU)[0]
    blocks = terms.pair.view(space.sites, space.states, space.sites, space.states).abs().amax((1, 3))
    assert torch.equal(blocks > 0, ring(space.sites))


@SPACES
def test_of_many_rows_the_conditionals_are_those_of_the_law(space: Space) -> None:
    model = pairwise_models.random_model(space)[1:]
    law = pairwise_models.law_of(space, *model, beta=0.7 if space.states == 2 else 0.3)
    n = 200_000
    drawn, counts = torch.from_numpy(oracles.draw(space, law, n, 1)).to(torch.uint8).unique(dim=0, return_counts=True)
    rows = Rows(drawn, None, counts.double())  # the same as n rows, in far less time
    every = ~torch.eye(space.sites, dtype=torch.bool)
    terms = neighbours.fit(rows, space.states, every, device=CPU)[0]
    x = torch.tensor(oracles.configurations(space))
    said = torch.softmax(logits(terms, x, space.states), -1)
    for site in range(space.sites):
        true = torch.from_numpy(oracles.conditional(space, law, site)).reshape(said[:, site].shape)
        # Some twenty numbers are estimated from n rows: in the mean over the law, squared errors are about their number over n.
        off = (torch.from_numpy(law) * (said[:, site] - true).pow(2).sum(-1)).sum()
        assert float(off) < 10 * (1 + (space.sites - 1) * (space.states - 1)) * (space.states - 1) / n


def test_a_part_of_the_rows_is_fitted_by_itself() -> None:
    space = pairwise_models.SPACES[0]
    rows, near = drawn(space, 300), ring(space.sites)
    half = torch.arange(300) < 150
    part = neighbours.fit(rows, space.states, near, parts=[half], device=CPU)[0]
    alone = neighbours.fit(Rows(rows.x[:150]), space.states, near, device=CPU)[0]
    torch.testing.assert_close(part, alone)
