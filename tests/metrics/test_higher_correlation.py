import itertools
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from oracles import draw

from neurise.metrics import higher_correlation
from neurise.metrics._groups import draw_groups, sums_over
from neurise.space import Space

SPACES = [Space(sites=5, states=2), Space(sites=4, states=3)]
IDS = ["p=2", "p=3"]


def group(rows: np.ndarray, sites: tuple[int, ...], states: int) -> np.ndarray:
    """The quantity whose mean is the correlation, one a row."""
    chosen = rows[:, list(sites)]
    return np.prod(2 * chosen - 1, axis=1) if states == 2 else (chosen == chosen[:, :1]).all(axis=1).astype(float)


def test_hand_worked() -> None:
    # ⟨σσσ⟩: +1 and −1 against +1 and +1.
    found = higher_correlation([[1, 1, 1], [-1, -1, -1]], [[1, 1, 1], [1, -1, -1]])
    assert found == pytest.approx((1.0, 1.0))
    # All three agree in one row of two, against none.
    assert higher_correlation([[0, 0, 0], [0, 1, 2]], [[0, 0, 1], [2, 1, 1]]).mean_abs == 0.5


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_it_agrees_with_a_loop_over_groups(space: Space, order: int) -> None:
    first, second = draw(space, oracles.random_law(space, 1), 70, 0), draw(space, oracles.random_law(space, 2), 45, 1)
    every = list(itertools.combinations(range(space.sites), order))
    gaps = np.array([group(first, g, space.states).mean() - group(second, g, space.states).mean() for g in every])
    found = higher_correlation(first, torch.from_numpy(second), order=order)
    assert found == pytest.approx((np.abs(gaps).mean(), np.sqrt((gaps**2).mean())), rel=1e-12)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_a_perfect_model_scores_the_floor_and_the_known_mean_square(space: Space) -> None:
    n, reference, draws = 300, 900, 100
    law = oracles.random_law(space, 3)
    rows = np.array(oracles.configurations(space))
    quantities = [group(rows, g, space.states) for g in itertools.combinations(range(space.sites), 3)]
    exact = np.mean([law @ q**2 - (law @ q) ** 2 for q in quantities]) * (1 / n + 1 / reference)
    runs = [
        higher_correlation(draw(space, law, n, k), draw(space, law, reference, k + 1000), seed=k) for k in range(draws)
    ]
    squares = np.array([run.rms**2 for run in runs])
    assert abs(squares.mean() - exact) < 5 * squares.std(ddof=1) / np.sqrt(draws)
    for score in ("mean_abs", "rms"):
        gap = np.array([float(getattr(run, score)) - getattr(run, score).floor for run in runs])
        assert abs(gap.mean()) < 5 * gap.std(ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_the_spread_of_new_draws(space: Space) -> None:
    draws, model, truth = 100, oracles.random_law(space, 4), oracles.random_law(space, 5)
    runs = [higher_correlation(draw(space, model, 400, k), draw(space, truth, 300, k + 1000)) for k in range(draws)]
    ratio = np.sqrt(np.mean([run.rms.error**2 for run in runs])) / np.std([run.rms for run in runs], ddof=1)
    # A spread of 100 numbers is known to 1/√200 = 7 %: five times that.
    assert ratio == pytest.approx(1, abs=0.36)


@pytest.mark.parametrize("number", [8, 10, 40], ids=["drawn", "chosen of all", "all"])
def test_groups_are_distinct_and_uniform(number: int) -> None:
    sites, order, draws = 7, 3, 1500  # 35 groups
    seen: dict[tuple[int, ...], int] = dict.fromkeys(itertools.combinations(range(sites), order), 0)
    for seed in range(draws):
        groups = draw_groups(sites, order, number, generator=torch.Generator().manual_seed(seed)).tolist()
        assert len({*map(tuple, groups)}) == len(groups) == min(number, 35)
        for sites_of in groups:
            seen[tuple(sites_of)] += 1  # ascending, or a KeyError
    chance = min(number, 35) / 35
    # Six standard deviations of a binomial count, for 35 groups.
    assert np.abs(np.array([*seen.values()]) - draws * chance).max() <= 6 * np.sqrt(draws * chance * (1 - chance))


@pytest.mark.parametrize("states", [2, 3])
def test_sums_are_the_same_in_pieces(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.from_numpy(np.random.default_rng(0).integers(0, states, (30, 6)).astype(np.uint8))
    groups, masses = torch.tensor([*itertools.combinations(range(6), 3)]), torch.rand(30, dtype=torch.float64)
    whole = [sums_over(x, groups, states), sums_over(x, groups, states, masses)]
    expected = np.stack([group(x.numpy().astype(int), tuple(g), states) for g in groups.tolist()])
    np.testing.assert_allclose(whole[0], expected.sum(axis=1))
    np.testing.assert_allclose(whole[1], expected @ masses.numpy())
    monkeypatch.setattr("neurise.batching.MEMORY_BUDGET", 500)
    assert torch.equal(sums_over(x, groups, states), whole[0])


def test_a_part_of_the_groups_is_the_same_for_a_seed() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (80, 12))
    runs = [higher_correlation(rows[:30], rows[30:], groups=20, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_counts_and_other_rows() -> None:
    space = SPACES[1]
    law = oracles.random_law(space, 7)
    samples, reference, counts = draw(space, law, 60, 0), draw(space, law, 30, 1), np.arange(30) % 5
    repeated = np.repeat(reference, counts, axis=0)
    weighted = higher_correlation(samples, reference, reference_weights=counts)
    assert weighted == higher_correlation(samples, repeated)
    found = higher_correlation(samples, repeated, other=samples[:20])
    scale = np.sqrt((1 / 60 + 1 / 60) / (1 / 20 + 1 / 60))
    assert found.rms.floor == pytest.approx(scale * higher_correlation(samples[:20], repeated).rms)


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ([[0, 1, 1]], [[0, 1]], {}, "samples has 3 sites, and reference has 2"),
        ([[0, 1]], [[0, 1]], {}, "from 3 to the number of sites, 2; got 3"),
        ([[0, 1, 1]], [[0, 1, 0]], {"order": 2}, "for pairs use cross_correlation"),
        ([[0, 1, 1]], [[0, 1, 0]], {"groups": 0}, "groups must be a positive whole number, got 0"),
        (np.zeros((0, 3)), [[0, 1, 0]], {}, "samples is empty"),
        ([["a", "b", "a"]], [[0, 1, 0]], {}, "one holds letters"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: Any, second: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        higher_correlation(first, second, **options)


def test_single_rows_have_no_error() -> None:
    found = higher_correlation([[0, 1, 1]], [[0, 1, 0]])
    assert (found.rms.error, found.rms.floor) == (None, None)
