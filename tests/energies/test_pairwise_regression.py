"""The pairwise terms are those of the convex problem that they are said to solve."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pairwise_models
import pytest
import torch
from torch import Tensor

from neurise.energies import pairwise_regression as pairwise
from neurise.energies import regressions
from neurise.energies.pairwise_regression import Terms
from neurise.energies.regressions import Fit
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


def fitted(rows: Rows, states: int, sees: Tensor, **more: object) -> Terms:
    return pairwise.fit(rows, more.pop("held", rows), states, sees, seed=0, device=CPU, **more)[0]  # type: ignore[arg-type]


def path(rows: Rows, states: int, sees: Tensor) -> list[Fit]:
    inner = 1 if states == 2 else states
    mask = sees.repeat_interleave(inner, 0).repeat_interleave(inner, 1).float()
    return list(regressions.path(regressions.sample_of(rows, states, CPU), mask))


def encoded(x: Tensor, states: int) -> tuple[Tensor, Tensor]:
    """Features (n, sites, F) and targets (n, sites, O) as the module says it has them, in float64."""
    if states == 2:
        return x.double()[..., None] - 0.5, x.double()[..., None]
    hot = (x[..., None] == torch.arange(states)).double()
    return hot - 1 / states, hot


def shares(rows: Rows) -> Tensor:
    weights = torch.ones(len(rows)).double() if rows.weights is None else rows.weights
    return weights / weights.sum()


def loss(weight: Tensor, bias: Tensor, rows: Rows, states: int, ridge: float) -> Tensor:
    """The smooth part of the problem; weight (sites, O, sites, F), bias (sites, O)."""
    features, target = encoded(rows.x, states)
    logits = bias + torch.einsum("uoif,nif->nuo", weight, features)
    if states == 2:
        values = (torch.log1p(torch.exp(logits)) - logits * target).sum((1, 2))
    else:
        values = (torch.logsumexp(logits, -1) - (logits * target).sum(-1)).sum(1)
    return values @ shares(rows) + ridge / 2 * weight.pow(2).sum()


def curvature(rows: Rows, states: int) -> tuple[float, float]:
    """Largest eigenvalue of the problem's bound on the curvature, and the smallest curvature of a fit of any one site.

    Where every symbol has a probability of at least m in all contexts, the curvature in the logits is at least m (1 − m) in all
    directions but that of a common shift. These laws have m = 0.05; a fit to a few hundred rows may have a little less.
    """
    features = encoded(rows.x, states)[0].flatten(1)
    full = torch.cat([features, torch.ones(len(features), 1).double()], dim=1)
    values = torch.linalg.eigvalsh(full.T @ (full * shares(rows)[:, None]))
    real = values[values > 1e-9]  # one-hots less their mean have a direction each in which nothing happens
    return (0.25 if states == 2 else 0.5) * float(values[-1]), 0.04 * float(real[0])


def stopping(rows: Rows, states: int) -> float:
    """Length of the slope that the stopping rule leaves to the terms of one site.

    A step of length s ≥ 1 / 1.1 L from y to z leaves the slope (y − z)/s − (slope at y − slope at z), which is no longer than
    |y − z|/s. |y − z| is at most the last move and the momentum of the one before, each of which is at most the tolerance in
    every number; twice that is allowed, as only every twentieth move is looked at.
    """
    numbers = rows.x.shape[1] * (1 if states == 2 else states**2) + states
    return 4 * regressions.TOLERANCE * 1.1 * curvature(rows, states)[0] * math.sqrt(numbers)


def newton(rows: Rows, states: int, u: int, seen: list[int]) -> tuple[Tensor, Tensor]:
    """Multinomial logistic regression of site u, the last symbol of every site for reference; then in the zero-sum gauge."""
    hot = (rows.x[..., None] == torch.arange(states - 1)).double()
    design = torch.cat([torch.ones(len(rows), 1).double(), hot[:, seen].flatten(1)], dim=1)

    own = (rows.x[:, u, None] == torch.arange(states - 1)).double()
    theta = torch.zeros(states - 1, design.shape[1]).double()
    for _ in range(20):
        law = torch.softmax(torch.cat([design @ theta.T, torch.zeros(len(rows), 1).double()], dim=1), dim=1)[:, :-1]
        slope = (law - own).T @ design
        spread = torch.diag_embed(law) - law[:, :, None] * law[:, None, :]
        hessian = torch.einsum("nab,nc,nd->acbd", spread, design, design).reshape(slope.numel(), -1)
        theta = theta - torch.linalg.solve(hessian, slope.flatten()).view_as(theta)
    assert slope.norm() < 1e-9 * len(rows)
    table = torch.zeros(states, len(seen), states).double()
    table[:-1, :, :-1] = theta[:, 1:].view(states - 1, len(seen), states - 1)
    bias = torch.cat([theta[:, 0], torch.zeros(1).double()]) + table.mean(2).sum(1)
    table = table - table.mean(2, keepdim=True)
    return table - table.mean(0), bias - bias.mean()


@SPACES
def test_without_a_penalty_the_terms_are_those_of_newtons_method(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "STRENGTHS", (1e-7,))
    for name, value in {"RIDGE": 0.0, "TOLERANCE": 2e-6, "ITERATIONS": 5000}.items():
        monkeypatch.setattr(regressions, name, value)
    rows = drawn(space, 3000)
    sees = others(space.sites).triu()
    terms = fitted(rows, space.states, sees)
    # A slope g where the curvature is at least m is no farther than |g|/m from the minimum.
    tolerance = stopping(rows, space.states) / curvature(rows, space.states)[1]
    assert tolerance < 0.1
    for u in range(space.sites):
        seen = torch.nonzero(sees[u]).flatten().tolist()
        pair, bias = newton(rows, space.states, u, seen)
        found = terms.pair[u].view(space.states, space.sites, space.states)[:, seen].double()
        assert (found - pair).norm() < tolerance
        assert (terms.bias[u] - bias).norm() < tolerance
    assert terms.pair.abs().max() > 10 * tolerance


@SPACES
@pytest.mark.parametrize("strength", [0.2, 0.8])
def test_a_penalised_fit_is_optimal(space: Space, strength: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "STRENGTHS", (strength,))
    monkeypatch.setattr(regressions, "ITERATIONS", 5000)
    monkeypatch.setattr(regressions, "TOLERANCE", 1e-5)
    rows, sites, states = drawn(space, 1000), space.sites, space.states
    sees, inner = others(sites), 1 if states == 2 else states
    found, relaxed = path(rows, states, sees)
    unit = (0.25 if states == 2 else 1 - 1 / states) * math.sqrt(math.log(20 * sites**2) / len(rows))
    tolerance = stopping(rows, states)
    assert tolerance < 0.2 * strength * unit
    for fit, penalty in ((found, strength * unit), (relaxed, 0.0)):
        weight = fit.weight.view(sites, inner, sites, inner).double().requires_grad_()
        bias = fit.bias.view(sites, inner).double().requires_grad_()
        slope, bias_slope = torch.autograd.grad(loss(weight, bias, rows, states, regressions.RIDGE), (weight, bias))
        assert bias_slope.norm(dim=1).max() < tolerance
        kept = int((weight != 0).any(3).any(1).sum())
        for u, i in torch.nonzero(sees).tolist():
            block, own = weight[u, :, i], slope[u, :, i]
            if not block.any():
                assert penalty == 0 or own.norm() <= penalty + tolerance
                assert not relaxed.weight.view(sites, inner, sites, inner)[u, :, i].any()
            else:
                assert (own + penalty * block / block.norm()).norm() <= tolerance
        assert 1 < kept < sites * (sites - 1) + (strength == 0.2)


@SPACES
def test_what_a_site_does_not_see_has_no_terms_and_all_terms_sum_to_zero(space: Space) -> None:
    sees = others(space.sites) & (torch.rand(space.sites, space.sites, generator=pairwise_models.generator()) < 0.5)
    terms = fitted(drawn(space, 500), space.states, sees)
    pair = terms.pair.view(space.sites, space.states, space.sites, space.states)
    there = (pair != 0).any(3).any(1)
    assert not (there & ~sees).any()
    assert there.sum() >= sees.sum() // 2
    # At most 2000 steps, each of which rounds numbers below 2 by at most 6e-8 of them.
    for total in (pair.sum(1), pair.sum(3), terms.bias.sum(1)):
        assert total.abs().max() < 2000 * 2 * 6e-8


@SPACES
def test_a_row_of_weight_k_is_k_rows(space: Space) -> None:
    few, held = drawn(space, 300), drawn(space, 300, seed=1)
    counts = torch.arange(300) % 4 + 1
    sees = others(space.sites)
    weighted = fitted(Rows(few.x, None, counts.double()), space.states, sees, held=held)
    repeated = fitted(Rows(few.x.repeat_interleave(counts, 0)), space.states, sees, held=held)
    # The same steps but for rounding, which is 1e-7 of numbers below 10 in a slope, over the smallest curvature.
    torch.testing.assert_close(weighted, repeated, rtol=0, atol=1e-6 / curvature(few, space.states)[1])
    plain = fitted(few, space.states, sees, held=held)
    assert (plain.pair - repeated.pair).abs().max() > 0.02


def test_counts_are_cross_fitted_by_observations() -> None:
    shares = list(regressions._folds(torch.tensor([1000.0, 1.0, 50.0, 3.0]), pairwise_models.generator()))
    torch.testing.assert_close(sum(shares), torch.ones(4))
    # Binomial(1000, 1/5) has a standard deviation of 12.6; five of them are exceeded once in 10^6.
    assert all(abs(1000 * float(share[0]) - 200) < 64 for share in shares)


@SPACES
def test_a_part_of_the_rows_is_fitted_as_if_there_were_no_others(space: Space) -> None:
    rows, held, sees = drawn(space, 600), drawn(space, 600, seed=1), others(space.sites).triu()
    part = torch.arange(600) % 3 > 0
    whole, without = pairwise.fit(rows, held, space.states, sees, parts=[None, part], seed=0, device=CPU)
    every, rest = (
        [pairwise.expanded(fit, space.sites, space.states) for fit in path(some, space.states, sees)]
        for some in (rows, Rows(rows.x[part]))
    )
    alone = rest[[torch.equal(one.pair, whole.pair) for one in every].index(True)]
    # The same steps but for rounding, as above.
    torch.testing.assert_close(without, alone, rtol=0, atol=1e-6 / curvature(rows, space.states)[1])
    assert (without.pair - whole.pair).abs().max() > 0.01


@pytest.mark.parametrize("states", [2, 3])
def test_independent_sites_have_no_pairs_and_a_coupled_one_has(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # λ is 2 √log(20 q²) ≈ 5 standard deviations of a block's slope under independence, which none of 20 exceeds in 10^4 tries.
    monkeypatch.setattr(regressions, "STRENGTHS", (2.0,))
    generator = pairwise_models.generator()
    x = torch.randint(states, (4000, 5), generator=generator, dtype=torch.uint8)
    sees = others(5)
    assert not fitted(Rows(x), states, sees, held=None).pair.any()
    # A copy nine times in ten: a slope of 0.2 and more, where λ is 0.05.
    x[:, 3] = torch.where(torch.rand(4000, generator=generator) < 0.9, x[:, 1], x[:, 3])
    pair = fitted(Rows(x), states, sees, held=None).pair.view(5, states, 5, states)
    assert torch.nonzero(pair.abs().sum((1, 3))).tolist() == [[1, 3], [3, 1]]
    assert (torch.diagonal(pair[1, :, 3], dim1=0, dim2=1) > 0.5).all()


@SPACES
def test_the_clean_conditionals_of_a_pairwise_law_are_found(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "TOLERANCE", 2e-6)
    monkeypatch.setattr(regressions, "ITERATIONS", 5000)
    law = torch.from_numpy(law_of(space))
    rows = Rows(space.configurations(), None, law)
    terms = fitted(rows, space.states, others(space.sites))  # by itself: then the fit without penalty is the best
    # The ridge pulls with the slope RIDGE |A|, twice that of the zero-sum terms for x − ½, and the stopping rule leaves its own.
    length = float(terms.pair.flatten(1).norm(dim=1).max()) * (2 if space.states == 2 else 1)
    distance = (regressions.RIDGE * length + stopping(rows, space.states)) / curvature(rows, space.states)[1]
    # Features and constant are shorter than 2, and the probability of a symbol has the slope p (1 − p) ≤ 1/4 in the difference
    # of its logit to a mean of the others, which is at most √2 of the logits' length.
    tolerance = 2 * math.sqrt(2) / 4 * distance
    assert tolerance < 0.03
    hot = (rows.x[..., None] == torch.arange(space.states)).float().flatten(1)
    for u in range(space.sites):
        found = torch.softmax(hot @ terms.pair[u].T + terms.bias[u], dim=-1)
        assert (found - torch.from_numpy(oracles.conditional(space, law.numpy(), u))).abs().max() < tolerance
