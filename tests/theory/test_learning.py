import itertools

import numpy as np
import oracles
import pytest
import torch

from neurise import theory
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space
from neurise.theory.starts import expected_gamma

SPACE = Space(sites=2, states=3)
TINY = {"width": 8, "depth": 1, "steps": 40, "training__batch_size": 64}


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def test_the_empirical_law_counts_rows() -> None:
    rows = SPACE.uniform(50, generator=generator())
    np.testing.assert_allclose(theory.empirical(rows, SPACE), oracles.empirical(SPACE, rows), atol=1e-15)


@pytest.mark.parametrize("keep_prob", [0.0, 0.5])
def test_empirical_starts_are_what_their_names_say(keep_prob: float) -> None:
    n, noise = 20_000, RoundRobin(SPACE, keep_prob, cycles=1)
    rows = SPACE.configurations()[torch.arange(n) % 4]  # four configurations alone, equally often
    found = theory.empirical_starts(rows, noise, generator=generator())
    assert list(found) == ["noised rows", "fresh noise", "uniform draws"]
    mu_last = oracles.noised_laws(SPACE, oracles.empirical(SPACE, rows[:4]), keep_prob, cycles=1)[-1]
    uniform = np.full(SPACE.size, 1 / SPACE.size)
    np.testing.assert_allclose(found["fresh noise"], mu_last, atol=1e-15)
    # The other two are the laws of n draws; the tolerance fails by chance once in 10^9.
    assert oracles.tv(found["noised rows"], mu_last) <= oracles.sampled_tv_tolerance(mu_last, n)
    assert oracles.tv(found["uniform draws"], uniform) <= oracles.sampled_tv_tolerance(uniform, n)
    assert float(found["noised rows"].sum()) == pytest.approx(1)
    assert not torch.equal(found["noised rows"], found["fresh noise"])  # drawn once, not averaged


def test_the_mean_of_gamma_is_below_its_bound_and_not_far() -> None:
    space = Space(sites=1, states=4)
    for n in (1, 3, 5):
        gammas = []
        for draws in itertools.product(range(4), repeat=n):  # all outcomes, equally likely
            gammas.append(oracles.tv(np.bincount(draws, minlength=4) / n, np.full(4, 0.25)))
        assert 0.6 * expected_gamma(space, n) < np.mean(gammas) <= expected_gamma(space, n)
    with pytest.raises(ValueError, match="n must be positive"):
        expected_gamma(space, 0)


@pytest.mark.parametrize("keep_prob", [0.0, 0.5])
def test_a_learning_curve_keeps_to_the_theorem_and_its_corollary(keep_prob: float) -> None:
    pmf, noise = oracles.random_law(SPACE, seed=1), RoundRobin(SPACE, keep_prob, cycles=2)
    found = list(theory.learning_curve(pmf, noise, [5, 200], [0, 1], **TINY))
    assert [(model.rows, model.seed) for model in found] == [(5, 0), (5, 1), (200, 0), (200, 1)]
    uniform = np.full(SPACE.size, 1 / SPACE.size)
    delta = oracles.tv(oracles.noised_laws(SPACE, pmf, keep_prob, 2)[-1], uniform)
    for model in found:
        assert list(model.starts) == ["uniform", "noised rows", "fresh noise", "uniform draws"]
        for name, terms in model.starts.items():
            assert terms.paper.tv <= terms.sharp + 1e-12 <= terms.paper.bound + 2e-12
            assert terms.paper.delta_T == pytest.approx(delta, abs=1e-12)
            assert terms.mismatch <= terms.paper.delta_T + terms.paper.gamma + 1e-12
            assert (terms.paper.gamma == 0) == (name == "uniform") or keep_prob == 0
        distances = [terms.paper.tv for terms in model.starts.values()]
        assert (max(distances) - min(distances) < 1e-12) == (keep_prob == 0)  # hard noise forgets where it began
    assert found[0].memorised > found[2].memorised  # of forty times as many rows


def test_the_rows_come_from_the_pmf() -> None:
    n = 20_000
    pmf = oracles.random_law(SPACE, seed=2)
    (model,) = theory.learning_curve(pmf, RoundRobin(SPACE, 0.3, 1), [n], [0], **{**TINY, "steps": 1})
    assert model.memorised <= oracles.sampled_tv_tolerance(pmf, n)


def test_the_same_seed_gives_the_same_figures() -> None:
    pmf, noise = oracles.random_law(SPACE, seed=3), RoundRobin(SPACE, 0.3, 1)
    first, again, other = (list(theory.learning_curve(pmf, noise, [50], [seed], **TINY)) for seed in (4, 4, 5))
    assert first == again
    assert first[0].starts != other[0].starts
    assert first[0].memorised != other[0].memorised  # other rows, not only another training


def test_equal_rows_are_enough_for_a_figure() -> None:
    point = np.eye(9)[4]
    (model,) = theory.learning_curve(point, RoundRobin(SPACE, 0.3, 1), [2], [0], **TINY)
    assert model.memorised == 0
    assert model.starts["uniform"].paper.tv <= model.starts["uniform"].sharp + 1e-12


@pytest.mark.parametrize("size", [0, -3, 1, 2.5, True])
def test_a_number_of_rows_is_a_whole_number_above_one(size: object) -> None:
    curve = theory.learning_curve(np.full(9, 1 / 9), RoundRobin(SPACE, 0.3, 1), [size], [0])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="whole number, at least 2"):
        next(iter(curve))
