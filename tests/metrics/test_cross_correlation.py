import itertools
import math
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from oracles import draw

from neurise.metrics import cross_correlation
from neurise.metrics.cross_correlation import correlations
from neurise.space import Space

SPACES = [Space(sites=4, states=2), Space(sites=4, states=3)]
IDS = ["p=2", "p=3"]


def pair(rows: np.ndarray, i: int, j: int, states: int) -> float:
    agree = np.mean(rows[:, i] == rows[:, j])
    return 2 * agree - 1 if states == 2 else agree


def test_spins_are_multiplied() -> None:
    rows = np.array([[1, 1, -1], [1, -1, -1], [-1, -1, 1], [1, 1, 1]])
    np.testing.assert_allclose(correlations(rows), rows.T @ rows / 4)


def test_zeros_and_ones_count_as_spins() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (50, 3))
    np.testing.assert_allclose(correlations(rows), correlations(2 * rows - 1))


def test_larger_alphabets_count_agreement() -> None:
    rows = np.array([[0, 0, 2], [1, 0, 1], [2, 2, 2], [0, 1, 2]])
    expected = [[np.mean(rows[:, i] == rows[:, j]) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(correlations(rows), expected)


def test_hand_worked_error() -> None:
    error = cross_correlation(np.array([[1, 1, 1], [-1, -1, 1]]), np.array([[1, 1, 1], [1, -1, 1]]))
    # C_01: 1 against 0; C_02: 0 against 1; C_12: 0 against 0.
    assert error.mean_abs == pytest.approx(2 / 3)
    assert error.rms == pytest.approx((2 / 3) ** 0.5)
    assert error.frobenius == pytest.approx(4**0.5 / 9)


def test_the_alphabet_is_that_of_both() -> None:
    first, second = np.array([[0, 1], [1, 0]]), np.array([[0, 2], [2, 1]])
    assert cross_correlation(first, second).mean_abs == 0  # never equal in either


@pytest.mark.parametrize("couplers", [None, [[0, 1], [3, 1], [1, 0], [2, 3]]], ids=["all", "some"])
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_it_agrees_with_a_loop_over_pairs(space: Space, couplers: Any) -> None:
    first, second = draw(space, oracles.random_law(space, 1), 70, 0), draw(space, oracles.random_law(space, 2), 45, 1)
    pairs = [(0, 1), (1, 3), (2, 3)] if couplers else list(itertools.combinations(range(4), 2))
    gaps = np.array([pair(first, i, j, space.states) - pair(second, i, j, space.states) for i, j in pairs])
    found = cross_correlation(first, torch.from_numpy(second), couplers=couplers)
    expected = (np.abs(gaps).mean(), np.sqrt((gaps**2).mean()), np.sqrt(2 * (gaps**2).sum()) / 16)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("space", "couplers"), [(SPACES[0], None), (SPACES[1], [[0, 1], [2, 3]])], ids=IDS)
def test_a_perfect_model_scores_the_floor_and_the_known_mean_square(space: Space, couplers: Any) -> None:
    n, reference, draws = 300, 900, 100
    law = oracles.random_law(space, 3)
    runs = [
        cross_correlation(draw(space, law, n, k), draw(space, law, reference, k + 1000), couplers=couplers, seed=k)
        for k in range(draws)
    ]
    rows = np.array(oracles.configurations(space))
    variances = []
    for i, j in couplers or itertools.combinations(range(4), 2):
        agree = law[rows[:, i] == rows[:, j]].sum()
        variances.append((4 if space.states == 2 else 1) * agree * (1 - agree))
    squares = np.array([run.rms**2 for run in runs])
    exact = np.mean(variances) * (1 / n + 1 / reference)  # the variance of a difference of two means
    assert abs(squares.mean() - exact) < 5 * squares.std(ddof=1) / np.sqrt(draws)
    for score in ("mean_abs", "rms", "frobenius"):
        gap = np.array([float(getattr(run, score)) - getattr(run, score).floor for run in runs])
        assert abs(gap.mean()) < 5 * gap.std(ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_the_spread_of_new_draws(space: Space) -> None:
    draws, model, truth = 100, oracles.random_law(space, 4), oracles.random_law(space, 5)
    runs = [cross_correlation(draw(space, model, 400, k), draw(space, truth, 300, k + 1000)) for k in range(draws)]
    for score in ("mean_abs", "rms", "frobenius"):
        values = [getattr(run, score) for run in runs]
        ratio = np.sqrt(np.mean([value.error**2 for value in values])) / np.std(values, ddof=1)
        # A spread of 100 numbers is known to 1/√200 = 7 %, the mean of as many squared errors, each of 38 degrees of
        # freedom, to √(2/38)/2/10 = 1 %: five times both together.
        assert ratio == pytest.approx(1, abs=0.36)


def test_other_rows_give_the_floor_rescaled_to_the_size_of_the_samples() -> None:
    space = SPACES[1]
    law = oracles.random_law(space, 6)
    samples, reference, other = draw(space, law, 400, 0), draw(space, law, 200, 1), draw(space, law, 100, 2)
    scale = np.sqrt((1 / 400 + 1 / 200) / (1 / 100 + 1 / 200))
    found = cross_correlation(samples, reference, other=other)
    assert [score.floor for score in found] == pytest.approx([scale * s for s in cross_correlation(other, reference)])


def test_counts_are_as_good_as_repeated_rows() -> None:
    space = SPACES[1]
    law = oracles.random_law(space, 7)
    samples, reference, counts = draw(space, law, 60, 0), draw(space, law, 30, 1), np.arange(30) % 5
    weighted = cross_correlation(samples, reference, reference_weights=counts)
    repeated = cross_correlation(samples, np.repeat(reference, counts, axis=0))
    for mine, theirs in zip(weighted, repeated, strict=True):
        assert (mine, mine.error, mine.floor) == (theirs, theirs.error, theirs.floor)


@pytest.mark.parametrize("couplers", [None, [[0, 2], [1, 3]]], ids=["all", "some"])
@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_importances_weigh_the_reference(space: Space, couplers: Any) -> None:
    law = oracles.random_law(space, 8)
    samples, reference = draw(space, law, 60, 0), draw(space, law, 30, 1)
    weights = np.random.default_rng(0).random(30)
    gaps = [
        pair(samples, i, j, space.states)
        - np.average((1 + (space.states == 2)) * (reference[:, i] == reference[:, j]), weights=weights)
        + (space.states == 2)
        for i, j in couplers or itertools.combinations(range(4), 2)
    ]
    found = cross_correlation(samples, reference, reference_weights=weights, couplers=couplers)
    assert found.mean_abs == pytest.approx(np.abs(gaps).mean(), rel=1e-9)
    assert found.mean_abs.floor > 0


def test_a_seed_gives_the_same_bits_and_one_row_no_error() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (50, 5))
    runs = [cross_correlation(rows[:20], rows[20:], seed=seed) for seed in (3, 3, 4)]
    assert (runs[0].rms.error, runs[0].rms.floor) == (runs[1].rms.error, runs[1].rms.floor)
    assert runs[0].rms.error != runs[2].rms.error
    assert runs[0] == pytest.approx(runs[2])
    single = cross_correlation(rows[:1], rows)
    assert single.rms.error is None
    assert single.rms.floor is not None
    assert cross_correlation(rows, rows[:1]).rms.floor is None


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        (np.ones((2, 2), int), np.ones((2, 3), int), {}, "samples has 2 sites, and reference has 3"),
        (np.ones((2, 1), int), np.ones((2, 1), int), {}, "two sites"),
        (np.zeros((0, 2)), [[0, 1]], {}, "samples is empty"),
        ([["a", "b"]], [[0, 1]], {}, "one holds letters"),
        ([[0, 1]], [[0, 2]], {"alphabet": [0, 1]}, "reference has the symbol 2 at row 0, column 1"),
        ([[0, 1]], [[0, 1]], {"couplers": [[0, 2]]}, "couplers names the site 2; sites are numbered 0 to 1"),
        ([[0, 1]], [[0, 1]], {"couplers": [[0, 1], [1, 1]]}, r"couplers names a site twice in row 1: \[1, 1\]"),
        ([[0, 1]], [[0, 1]], {"couplers": [0, 1]}, r"2 a row; the shape is \(2,\)"),
        ([[0, 1]], [[0, 1]], {"couplers": [[0.0, 1.0]]}, "of type float64"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: Any, second: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cross_correlation(first, second, **options)


def pairs_of_spins(n: int, agree: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.choice([-1, 1], n)
    return np.stack([first, np.where(rng.random(n) < agree, first, -first)], axis=1)


@pytest.mark.parametrize(("n", "reference"), [(20_000, 400), (400, 20_000)])
def test_the_error_is_that_of_the_smaller_set(n: int, reference: int) -> None:
    # One pair: the score is |C − C'|, and the variance of a correlation C of n rows is (1 − C²)/n, with C = 2·agree − 1.
    found = cross_correlation(pairs_of_spins(n, 0.9, 0), pairs_of_spins(reference, 0.3, 1)).mean_abs
    expected = math.sqrt((1 - 0.8**2) / n + (1 - 0.4**2) / reference)
    # An error bar of 20 blocks is known to 1/√38 = 16 %: four times that.
    assert found.error == pytest.approx(expected, rel=0.65)


def test_the_floor_from_halves_is_that_of_the_sizes_at_hand() -> None:
    rng, sites, n, reference = np.random.default_rng(0), 12, 200, 20_000
    rows = rng.choice([-1, 1], (reference, sites))
    found = cross_correlation(rng.choice([-1, 1], (n, sites)), rows).mean_abs
    # Independent spins: Δ of a pair is normal with the variance 1/n + 1/N, so that |Δ| is √(2/π) of its root on average,
    # and varies by 0.75 of that: 66 pairs know it to 9 %, of which five.
    assert found.floor == pytest.approx(math.sqrt(2 / math.pi * (1 / n + 1 / reference)), rel=0.46)


def test_what_sets_two_real_sets_apart_does_not_grow_when_fewer_samples_are_taken() -> None:
    reference, other = pairs_of_spins(40_000, 0.5, 0), pairs_of_spins(40_000, 0.7, 1)
    floor = cross_correlation(pairs_of_spins(400, 0.5, 2), reference, other=other).mean_abs.floor
    # C of the two is 0 and 0.4; 400 rows know a correlation to 1/√400 at most, of which five.
    assert floor == pytest.approx(0.4, abs=0.25)
