import numpy as np
import oracles
import pytest
import torch
from multinomial import jackknife, moments
from oracles import draw
from scipy import stats

from neurise.metrics import chi2
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]
IDS = ["p=2", "p=3"]


def test_hand_worked() -> None:
    found = chi2([0.5, 0.5, 0.0], [0.25, 0.25, 0.5])
    assert (found, found.error, found.floor) == (pytest.approx(0.25 + 0.25 + 0.5), 0.0, 0.0)
    rows = chi2([[0], [0], [0], [1]], [0.5, 0.5])
    assert (rows, rows.floor) == (pytest.approx(2 * 0.0625 / 0.5), 1 / 4)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_it_is_the_statistic_of_the_test_over_n(space: Space) -> None:
    law, rows = oracles.random_law(space, 1), draw(space, oracles.random_law(space, 2), 60, 0)
    counts = 60 * oracles.empirical(space, torch.from_numpy(rows))
    expected = stats.chisquare(counts, 60 * law).statistic / 60
    assert chi2(rows, law, alphabet=range(space.states)) == pytest.approx(expected)
    assert chi2(counts / 60, law) == pytest.approx(expected)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_floor_is_the_mean_over_everything_that_can_be_drawn(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 3, zeros=0.3), range(space.states)
    mean, _ = moments(space, law, 4, lambda x: chi2(x, law, alphabet=alphabet))
    assert chi2(draw(space, law, 4, 0), law, alphabet=alphabet).floor == pytest.approx(mean, rel=1e-10)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_that_of_leaving_out_each_row(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 4), range(space.states)
    rows = draw(space, oracles.random_law(space, 5), 30, seed=1)
    expected = jackknife(rows, lambda x: chi2(x, law, alphabet=alphabet))
    assert chi2(rows, law, alphabet=alphabet).error == pytest.approx(expected, rel=1e-9)


def test_the_error_is_the_spread_of_new_draws() -> None:
    space, n, draws = SPACES[1], 2000, 400
    truth = np.full(space.size, 1 / space.size)
    for law, widest in ((oracles.random_law(space, 6), 1.0), (truth, 2**0.5)):
        found = [chi2(draw(space, law, n, seed), truth, alphabet=range(3)) for seed in range(draws)]
        ratio = np.mean([value.error**2 for value in found]) ** 0.5 / np.std(found, ddof=1)
        # A variance of 400 numbers whose kurtosis is at most that of χ²₈, 4.5, is known to √(3.5/400) = 9.4 %: five times
        # half of that for the spread.
        assert 1 - 0.235 <= ratio <= widest * (1 + 0.235)


def test_what_the_law_rules_out_makes_it_infinite() -> None:
    assert chi2([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert chi2([1.0, 0.0, 0.0], [0.5, 0.5, 0.0]) == pytest.approx(1)
    found = chi2([[0], [0], [1]], [1.0, 0.0])
    assert (found, found.error, found.floor) == (np.inf, None, 0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([[0], [1]], [[0], [1]], "chi2 needs the probabilities .* use total_variation"),
        ([0.5, 0.5], [0.9, 0.9], "sums to"),
        ([0.5, 0.5], [1.5, -0.5], "has -0.5"),
        (np.eye(90, dtype=int), [0.5, 0.5], r"2\^90; .* total_variation"),
        (np.zeros((0, 1)), [0.5, 0.5], "samples is empty"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: object, second: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chi2(first, second)


def test_a_single_row_has_no_error() -> None:
    assert chi2([[1]], [0.25, 0.75], alphabet=[0, 1]).error is None
