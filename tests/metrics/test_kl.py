import numpy as np
import oracles
import pytest
import torch
from multinomial import jackknife, moments
from oracles import draw
from scipy import stats

from neurise.metrics import kl
from neurise.metrics._binomial import expected_divergence
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]
IDS = ["p=2", "p=3"]


def test_hand_worked() -> None:
    found = kl([0.5, 0.5, 0.0], [0.25, 0.25, 0.5])
    assert (found, found.error, found.floor, found.units) == (pytest.approx(np.log(2)), 0.0, 0.0, "nats")
    rows = [[0], [0], [0], [1]]
    assert kl(rows, [0.5, 0.5]) == pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5))


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_it_is_the_relative_entropy(space: Space) -> None:
    first, second = (oracles.random_law(space, seed) for seed in (1, 2))
    assert kl(first, second) == pytest.approx(stats.entropy(first, second))
    assert kl(second, second) == pytest.approx(0, abs=1e-15)
    rows = draw(space, first, 50, 0)
    shares = oracles.empirical(space, torch.from_numpy(rows))
    assert kl(rows, second, alphabet=range(space.states)) == pytest.approx(stats.entropy(shares, second))


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_floor_is_the_mean_over_everything_that_can_be_drawn(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 3, zeros=0.3), range(space.states)
    mean, _ = moments(space, law, 4, lambda x: kl(x, law, alphabet=alphabet))
    assert kl(draw(space, law, 4, 0), law, alphabet=alphabet).floor == pytest.approx(mean, rel=1e-11)


@pytest.mark.parametrize("n", [1, 3, 90, 20_000])
@pytest.mark.parametrize("mean", [1e-4, 0.009, 0.3, 0.999, 2.5, 20.0, 63.0, 65.0, 300.0, 19_999.0])
def test_every_cell_agrees_with_the_binomial_sum(n: int, mean: float) -> None:
    mean = min(mean, 0.999 * n)
    mu = mean / n
    k = np.arange(1, n + 1)
    expected = (stats.binom.pmf(k, n, mu) * k / n * np.log(k / (n * mu))).sum()
    found = expected_divergence(torch.tensor([mu], dtype=torch.float64), n)
    # The sum itself cancels: terms of size μ log λ, each right to about 1e-13. Beyond λ = 64 the series leaves out λ⁻³/5n.
    series = mean**-3 / (5 * n) if mean > 64 else 0.0
    assert found == pytest.approx(expected, abs=1e-12 * mu * (1 + abs(np.log(mean))) + series)


def test_certain_and_impossible_cells_add_nothing() -> None:
    assert expected_divergence(torch.tensor([0.0, 1.0], dtype=torch.float64), 10) == 0


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_that_of_leaving_out_each_row(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 4), range(space.states)
    rows = draw(space, oracles.random_law(space, 5), 30, seed=1)
    expected = jackknife(rows, lambda x: kl(x, law, alphabet=alphabet))
    assert kl(rows, law, alphabet=alphabet).error == pytest.approx(expected, rel=1e-9)


def test_the_error_is_the_spread_of_new_draws() -> None:
    space, n, draws = SPACES[1], 2000, 400
    truth = np.full(space.size, 1 / space.size)
    for law, widest in ((oracles.random_law(space, 6), 1.0), (truth, 2**0.5)):
        found = [kl(draw(space, law, n, seed), truth, alphabet=range(3)) for seed in range(draws)]
        ratio = np.mean([value.error**2 for value in found]) ** 0.5 / np.std(found, ddof=1)
        # A variance of 400 numbers whose kurtosis is at most that of χ²₈, 4.5, is known to √(3.5/400) = 9.4 %: five times
        # half of that for the spread.
        assert 1 - 0.235 <= ratio <= widest * (1 + 0.235)


def test_what_the_law_rules_out_makes_it_infinite() -> None:
    assert kl([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert kl([1.0, 0.0], [0.5, 0.5]) == pytest.approx(np.log(2))
    found = kl([[0], [0], [1]], [1.0, 0.0])
    assert (found, found.error) == (np.inf, None)
    assert found.floor == 0


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([[0], [1]], [[0], [1]], "kl needs the probabilities .* use total_variation"),
        ([0.5, 0.5], [0.9, 0.9], "sums to"),
        ([1.5, -0.5], [0.5, 0.5], "the first law has -0.5"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], "3 entries"),
        (np.eye(90, dtype=int), [0.5, 0.5], r"2\^90; .* total_variation"),
        ([[0, 1, 2]], [0.25] * 4, r"3\^3 = 27"),
        (np.zeros((0, 1)), [0.5, 0.5], "samples is empty"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: object, second: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kl(first, second)


def test_a_single_row_has_no_error() -> None:
    found = kl([[1]], [0.25, 0.75], alphabet=[0, 1])
    assert (found, found.error) == (pytest.approx(-np.log(0.75)), None)
