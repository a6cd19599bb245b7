"""Pairwise terms of few sites each: those of the regressions on parents, for one-hot tokens, and near those of the law."""

from __future__ import annotations

import numpy as np
import oracles
import pairwise_models
import pytest
import torch
from torch import Tensor

from neurise.energies import pairwise_regression, parent_terms
from neurise.energies.pairwise_regression import Terms
from neurise.energies.parents import of_rows
from neurise.rows import Rows
from neurise.space import Space

CPU = torch.device("cpu")
SPACES = pytest.mark.parametrize("space", pairwise_models.SPACES, ids=["p=2", "p=3"])


def others(sites: int) -> Tensor:
    return ~torch.eye(sites, dtype=torch.bool)


def law_of(space: Space) -> np.ndarray:
    """The law of a ring with tables and fields without any symmetry."""
    return pairwise_models.law_of(
        space, *pairwise_models.random_model(space)[1:], beta=0.7 if space.states == 2 else 0.3
    )


def drawn(space: Space, n: int, seed: int = 0) -> Rows:
    return Rows(torch.from_numpy(oracles.draw(space, law_of(space), n, seed)).to(torch.uint8))


def fitted(rows: Rows, states: int, sees: Tensor, held: Rows | None = None) -> Terms:
    return parent_terms.fit(rows, held, states, sees, seed=0, device=CPU)[0]


def said(terms: Terms, x: Tensor, states: int) -> Tensor:
    """Return the conditionals of all sites, (n, sites, states)."""
    hot = (x[..., None] == torch.arange(states)).double().flatten(1)
    return (terms.bias.double() + torch.einsum("uai,ni->nua", terms.pair.double(), hot)).softmax(-1)


@SPACES
def test_the_terms_say_what_the_regressions_on_parents_say(space: Space) -> None:
    rows, held, sees = drawn(space, 400), drawn(space, 400, seed=1), others(space.sites)
    terms = fitted(rows, space.states, sees, held)
    found = of_rows(rows, held, space.states, sees, most=parent_terms.MOST)
    x = space.configurations()
    answers = said(terms, x, space.states)
    for u in range(space.sites):
        for n in range(0, len(x), 7):
            logits = found.bias[u, 0].double().clone()
            for k, parent in enumerate(found.sites[u].tolist()):
                if parent < 0:
                    continue
                token = int(x[n, parent])
                features = torch.zeros(space.states).double()
                features[token] = 1
                seen = torch.tensor([token - 0.5]).double() if space.states == 2 else features - 1 / space.states
                logits += seen @ found.weight[u, k].double()
            if space.states == 2:
                logits = torch.cat([torch.zeros(1).double(), logits])
            torch.testing.assert_close(answers[n, u], logits.softmax(-1), atol=1e-6, rtol=0)


@SPACES
def test_what_a_site_does_not_see_has_no_terms_and_all_terms_sum_to_zero(space: Space) -> None:
    sees = others(space.sites) & (torch.rand(space.sites, space.sites, generator=pairwise_models.generator()) < 0.5)
    terms = fitted(drawn(space, 500), space.states, sees)
    pair = terms.pair.view(space.sites, space.states, space.sites, space.states)
    there = (pair != 0).any(3).any(1)
    assert not (there & ~sees).any()
    assert there.any()
    for total in (pair.sum(1), pair.sum(3), terms.bias.sum(1)):
        assert total.abs().max() < 1e-5


@SPACES
def test_a_row_of_weight_k_is_k_rows(space: Space) -> None:
    few, held = drawn(space, 300), drawn(space, 300, seed=1)
    counts = torch.arange(300) % 4 + 1
    sees = others(space.sites)
    weighted = fitted(Rows(few.x, None, counts.double()), space.states, sees, held)
    repeated = fitted(Rows(few.x.repeat_interleave(counts, 0)), space.states, sees, held)
    torch.testing.assert_close(weighted, repeated, rtol=1e-3, atol=2e-3)  # the same steps but for rounding
    plain = fitted(few, space.states, sees, held)
    assert (plain.pair - repeated.pair).abs().max() > 0.02


@SPACES
def test_of_many_rows_the_conditionals_are_those_of_the_law(space: Space) -> None:
    law, n = law_of(space), 100_000
    rows, held = (
        Rows(x, None, counts.double())  # the same as n rows, in far less time
        for x, counts in (drawn(space, n, seed).x.unique(dim=0, return_counts=True) for seed in (1, 2))
    )
    answers = said(fitted(rows, space.states, others(space.sites), held), space.configurations(), space.states)
    for site in range(space.sites):
        true = torch.from_numpy(oracles.conditional(space, law, site)).reshape(answers[:, site].shape)
        # Squared errors in the mean over the law are about the numbers that are estimated over n; the prior may add as much.
        off = (torch.from_numpy(law) * (answers[:, site] - true).pow(2).sum(-1)).sum()
        assert float(off) < 20 * (1 + (space.sites - 1) * (space.states - 1)) * (space.states - 1) / n


@pytest.mark.parametrize("states", [2, 3])
def test_a_coupled_pair_stands_out(states: int) -> None:
    generator = pairwise_models.generator()
    x = torch.randint(states, (4000, 5), generator=generator, dtype=torch.uint8)
    x[:, 3] = torch.where(torch.rand(4000, generator=generator) < 0.9, x[:, 1], x[:, 3])
    pair = fitted(Rows(x), states, others(5)).pair.view(5, states, 5, states)
    size = pair.abs().amax((1, 3))
    assert (torch.diagonal(pair[1, :, 3], dim1=0, dim2=1) > 0.5).all()
    coupled = torch.zeros(5, 5, dtype=torch.bool)
    coupled[1, 3] = coupled[3, 1] = True
    assert float(size[~coupled].max()) < 0.1  # three standard errors of a term that is zero, 1/sqrt(3600/4)


def test_a_part_is_judged_by_the_other_rows_and_many_columns_are_fitted_so(monkeypatch: pytest.MonkeyPatch) -> None:
    space = pairwise_models.SPACES[1]
    rows, sees = drawn(space, 300), others(space.sites).triu()
    part = torch.arange(300) % 3 > 0
    monkeypatch.setattr(pairwise_regression, "LARGE", 0)
    found = pairwise_regression.fit(rows, None, space.states, sees, parts=[part, ~part], seed=0, device=CPU)
    one, other = Rows(rows.x[part]), Rows(rows.x[~part])
    for terms, own, aside in ((found[0], one, other), (found[1], other, one)):
        torch.testing.assert_close(terms, fitted(own, space.states, sees, aside))
