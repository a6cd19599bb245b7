"""Every site gets the regression that it would get alone, however its steps are chosen and whenever they end."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pairwise_models
import pytest
import torch
from torch import Tensor

from neurise.energies import regressions
from neurise.energies.regressions import Descent, Fit, Sample
from neurise.precision import product_in_two
from neurise.rows import Rows

CPU = torch.device("cpu")
STATES = pytest.mark.parametrize("states", [2, 3])
SITES = 7


def sample_of(rows: Rows, states: int) -> Sample:
    """A sample in float64, so that rounding is nothing beside what is compared."""
    found = regressions.sample_of(rows, states, CPU)
    parts = {name: getattr(found, name).double() for name in ("features", "target")}
    weights = torch.ones(len(rows)).double() if rows.weights is None else rows.weights
    return replace(found, weight=weights / weights.sum(), **parts)


def coupled(states: int, n: int = 600) -> Rows:
    """Sites 0, 3 and 4 tell nothing about any; 1, 2, 5 and 6 follow one another, each more closely than the one before."""
    generator = pairwise_models.generator()
    x = torch.randint(states, (n, SITES), generator=generator, dtype=torch.uint8)
    for before, after, share in ((1, 2, 0.6), (2, 5, 0.9), (5, 6, 0.95)):
        x[:, after] = torch.where(torch.rand(n, generator=generator) < share, x[:, before], x[:, after])
    return Rows(x)


def mask_of(sample: Sample) -> Tensor:
    """All other sites are seen."""
    sites, outcomes = sample.shape[:2]
    sees = (~torch.eye(sites, dtype=torch.bool)).to(sample.features)
    return sees.repeat_interleave(outcomes, 0).repeat_interleave(outcomes, 1)


def descended(sample: Sample, penalty: float = 0.0) -> Fit:
    most = regressions.most_bend(sample)
    return regressions.descend(sample, regressions.marginals(sample), mask_of(sample), penalty=penalty, most=most)


def laws(fit: Fit, sample: Sample) -> Tensor:
    logits = (sample.features @ fit.weight.T + fit.bias).view(sample.target.shape)
    return torch.sigmoid(logits) if sample.outcomes == 1 else torch.softmax(logits, -1)


def objective(fit: Fit, sample: Sample, penalty: float) -> Tensor:
    """What is minimised for every site, (sites,)."""
    law, target = laws(fit, sample), sample.target
    if sample.outcomes == 1:
        law, target = torch.cat([law, 1 - law], -1), torch.cat([target, 1 - target], -1)
    blocks = fit.weight.view(sample.shape)
    smooth = -sample.weight @ (target * law.log()).sum(-1) + regressions.RIDGE / 2 * blocks.pow(2).sum((1, 2, 3))
    return smooth + penalty * blocks.pow(2).sum((1, 3)).sqrt().sum(1)


@STATES
@pytest.mark.parametrize("penalty", [0.003, 0.02])
def test_a_site_that_ends_early_has_what_it_would_have_among_all(
    states: int, penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Looked at often, sites are set apart in several goes.
    for name, value in {"TOLERANCE": 1e-9, "ITERATIONS": 3000, "LOOK_EVERY": 4}.items():
        monkeypatch.setattr(regressions, name, value)
    sample, goes, keep = sample_of(coupled(states), states), [], Descent.keep
    monkeypatch.setattr(Descent, "keep", lambda work, places: (goes.append(places.tolist()), keep(work, places)))
    found = descended(sample, penalty)
    assert len(goes) > 1
    assert any(places != list(range(len(places))) for places in goes)
    monkeypatch.setattr(regressions, "FEWER", 0.0)
    goes.clear()
    whole = descended(sample, penalty)
    assert not goes

    # A last step from y to z leaves a slope of at most ``most`` |y − z|, and |y − z| is at most the last move and the momentum of
    # the one before; twice that is allowed, as few of the moves are looked at. Where the curvature is at least m, a slope g is
    # within |g|/m of the minimum. (One-hots less their mean have directions in which nothing happens.)
    numbers = SITES * sample.outcomes**2 + sample.outcomes
    slope = 4 * regressions.TOLERANCE * regressions.most_bend(sample) * numbers**0.5
    law, full = laws(whole, sample), torch.cat([sample.features, torch.ones(len(sample.weight), 1)], 1)
    spread = torch.diag_embed(law) - law[..., :, None] * law[..., None, :]
    hessian = torch.einsum("n,nuab,nc,nd->uacbd", sample.weight, spread, full, full)
    bends = torch.linalg.eigvalsh(hessian.reshape(SITES, spread.shape[-1] * full.shape[1], -1))
    tolerance = 2 * slope / float(bends[bends > 1e-9].min())
    assert tolerance < 1e-3
    assert (found.weight - whole.weight).norm(dim=1).max() < tolerance
    assert (found.bias - whole.bias).abs().max() < tolerance
    # At the minimum the laws have the marginals of the rows.
    assert torch.einsum("n,nuo->uo", sample.weight, law - sample.target).norm(dim=1).max() < slope
    # No site that is coupled has the terms of another.
    assert torch.pdist(whole.weight.view(SITES, -1)[[1, 2, 5, 6]]).min() > 100 * tolerance


def chain(sites: int, flip: float) -> Rows:
    """All configurations of a chain in which each site is the one before but for a chance ``flip``."""
    x = torch.tensor(list(itertools.product(range(2), repeat=sites)))
    flips = (x[:, 1:] != x[:, :-1]).sum(1).double()
    return Rows(x.to(torch.uint8), None, 0.5 * flip**flips * (1 - flip) ** (sites - 1 - flips))


def newton(sample: Sample, u: int) -> Tensor:
    """Weights of the logistic regression of site u on all others."""
    seen = [i for i in range(sample.shape[2]) if i != u]
    design = torch.cat([sample.features[:, seen], torch.ones(len(sample.weight), 1)], 1)
    ridge = torch.tensor([regressions.RIDGE] * len(seen) + [0.0]).double()
    theta = torch.zeros(len(ridge)).double()
    for _ in range(40):
        law = torch.sigmoid(design @ theta)
        slope = design.T @ (sample.weight * (law - sample.target[:, u, 0])) + ridge * theta
        hessian = design.T @ (design * (sample.weight * law * (1 - law))[:, None]) + torch.diag(ridge)
        theta = theta - torch.linalg.solve(hessian, slope)
    assert slope.norm() < 1e-12
    return theta[:-1]


def test_sites_that_are_almost_certain_are_fitted_in_the_steps_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chain(6, 0.01)  # a site at an end has p (1 − p) ≈ 0.01, one between two others less in most rows
    exact = sample_of(rows, 2)
    sought = torch.stack([newton(exact, u) for u in range(6)])

    def off() -> Tensor:
        weight = descended(regressions.sample_of(rows, 2, CPU)).weight.double()
        others = torch.stack([torch.cat([line[:u], line[u + 1 :]]) for u, line in enumerate(weight)])
        return (others - sought).norm(dim=1) / sought.norm(dim=1)

    assert regressions.ITERATIONS == 200
    assert off().max() < 0.01
    # With the one step length that is safe everywhere no site gets there.
    monkeypatch.setattr(regressions, "FIRST_BEND", 1.0)
    monkeypatch.setattr(regressions, "LESS_BEND", 1.0)
    assert off().min() > 0.05


@STATES
def test_the_rise_above_the_tangent_is_that_of_the_loss(states: int) -> None:
    generator, outcomes = pairwise_models.generator(), 1 if states == 2 else states
    logits, change = (4 * torch.randn(200, outcomes, generator=generator, dtype=torch.float64) for _ in range(2))

    def loss(z: Tensor) -> Tensor:
        return torch.logsumexp(
            torch.cat([z, 0 * z], -1) if states == 2 else z, -1
        )  # less the target's logit, a tangent

    at = logits.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(at).sum(), at)
    rise = loss(logits + change) - loss(logits) - (slope * change).sum(-1)
    torch.testing.assert_close(regressions._bregman(slope, change), rise, rtol=1e-9, atol=1e-12)


@STATES
@pytest.mark.parametrize("penalty", [0.0, 0.01])
def test_a_step_is_undone_or_leads_down_as_far_as_its_length_promises(
    states: int, penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regressions, "FIRST_BEND", 0.005)
    sample = sample_of(coupled(states), states)
    most = regressions.most_bend(sample)
    work = Descent(sample, regressions.marginals(sample), mask_of(sample), penalty, most)
    undone = made = 0
    for _ in range(60):
        work.momentum = torch.ones_like(work.momentum)  # steps start from where the last one ended
        before, bend, value = work.here, work.bend, objective(work.here, sample, penalty)
        sure = work.step().isfinite()
        torch.testing.assert_close(
            work.bend, torch.where(sure, regressions.LESS_BEND * bend, (2 * bend).clamp(max=most)), rtol=1e-6, atol=0
        )
        step = (work.here.weight - before.weight).view(SITES, -1).pow(2).sum(1)
        step += (work.here.bias - before.bias).view(SITES, -1).pow(2).sum(1)
        # A proximal step z of length 1 / L from y has F(z) ≤ F(y) − L |y − z|² / 2 where the loss rises above its tangent by no
        # more than L |y − z|² / 2. Lengths are float32, 6e-8 off, and the values are rounded to 1e-15 or so in each sum.
        assert (objective(work.here, sample, penalty) <= value - (1 - 1e-6) * bend / 2 * step + 1e-13).all()
        assert not step[~sure].any()
        undone, made = undone + int((~sure).sum()), made + int(sure.sum())
    assert undone >= 2 * SITES
    assert made >= 20 * SITES


@STATES
def test_the_logits_that_are_carried_along_are_those_of_the_terms(states: int) -> None:
    sample = sample_of(coupled(states), states)
    work = Descent(sample, regressions.marginals(sample), mask_of(sample), 0.0, regressions.most_bend(sample))
    for number in range(20):
        work.step()
        if number == 10:
            work.keep(torch.tensor([1, 4, 6]))
        torch.testing.assert_close(work.logits, work.ahead.logits(work.sample))
        torch.testing.assert_close(work.here_logits, work.here.logits(work.sample))
    assert (work.logits - work.here_logits).abs().max() > 1e-4


def test_numbers_that_are_cut_in_two_lose_little_where_products_round(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = pairwise_models.generator()
    features = torch.tensor([[-0.5], [0.5]])
    factor = torch.randn(1, 5000, generator=generator) * torch.exp(4 * torch.randn(1, 5000, generator=generator))
    exact, matmul = features.double() @ factor.double(), torch.matmul

    def cut(values: Tensor) -> Tensor:
        mantissa, exponent = torch.frexp(values)
        return torch.ldexp(torch.trunc(mantissa * 2**11) / 2**11, exponent)

    with monkeypatch.context() as patched:
        patched.setattr(Tensor, "__matmul__", lambda a, b: matmul(cut(a).double(), cut(b).double()).float())
        once, twice = features @ factor, product_in_two(features, factor)
    # Eleven bits without rounding lose less than 2^-10 of a number: 2^-10 of the second part, which is below 2^-10 of the whole.
    # The sum of the parts is rounded to float32 as well, by 2^-24.
    assert ((twice - exact).abs() <= (2**-20 + 2**-24) * exact.abs()).all()
    assert ((once - exact).abs() / exact.abs()).max() > 2**-11


def test_the_largest_curvature_is_found_where_the_law_is_symmetric() -> None:
    staggered = torch.tensor([[0, 1] * 10, [1, 0] * 10], dtype=torch.uint8)
    equal = torch.arange(3, dtype=torch.uint8)[:, None].expand(3, 4)
    # ±½ at 20 sites in one direction: 20 / 4. The second moments of centred one-hots are (δ − 1/3)/3, the same for 4 sites.
    for x, states, largest in ((staggered, 2, 5.0), (equal, 3, 4 / 3)):
        sample = regressions.sample_of(Rows(x), states, CPU)
        assert regressions._largest(sample) == pytest.approx(1.1 * largest, rel=1e-3)


def test_rows_beyond_the_numbers_that_are_looked_at_are_left_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "MOST_NUMBERS", 2 * 5)
    rows = 2**24 + 4  # whole numbers of 32-bit floats end before
    place = regressions.sample_of(Rows(torch.zeros(rows, 1, dtype=torch.uint8)), 2, CPU).place
    assert place.tolist() == [round(k * (rows - 1) / 4) for k in range(5)]
