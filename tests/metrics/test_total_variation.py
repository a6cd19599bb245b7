from collections import Counter

import numpy as np
import oracles
import pytest
import torch
from multinomial import jackknife, moments
from oracles import draw
from scipy import stats

from neurise.datasets import edwards_anderson
from neurise.metrics import total_variation
from neurise.metrics._binomial import expected_distance
from neurise.space import Space, row_ids

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]
IDS = ["p=2", "p=3"]


def test_hand_worked_laws() -> None:
    assert total_variation(np.array([0.5, 0.5]), np.array([0.8, 0.2])) == pytest.approx(0.3)
    exact = total_variation(torch.tensor([1.0, 0.0]), [0.0, 1.0])
    assert (exact, exact.error, exact.floor) == (1.0, 0.0, 0.0)


def test_hand_worked_samples() -> None:
    rows = np.array([[0, 0], [0, 1], [0, 1], [2, 2]])  # two sites, three states
    pmf = np.zeros(9)
    pmf[[0, 1, 3]] = [0.25, 0.25, 0.5]  # 00, 01, 10
    assert total_variation(rows, pmf, alphabet=[0, 1, 2]) == pytest.approx(0.5 * (0.25 + 0.5 + 0.25))
    assert total_variation(pmf, rows, alphabet=[0, 1, 2]) == pytest.approx(0.5)


def test_hand_worked_rows() -> None:
    # 00: 1/2 against 1/4; 01: 1/2 against 1/2; 11: 0 against 1/4.
    found = total_variation([[0, 0], [0, 1]], [[0, 0], [0, 1], [0, 1], [1, 1]])
    assert found == pytest.approx(0.25)
    assert found.floor is None


def test_letters_and_order_of_the_alphabet() -> None:
    rows, pmf = np.array([["b"], ["b"], ["a"], ["b"]]), np.array([0.25, 0.75])
    assert total_variation(rows, pmf) == 0
    assert total_variation(rows, pmf, alphabet="ba") == pytest.approx(0.5)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_floor_is_the_mean_over_everything_that_can_be_drawn(space: Space) -> None:
    law = oracles.random_law(space, 1, zeros=0.3)
    alphabet = range(space.states)
    mean, _ = moments(space, law, 4, lambda x: total_variation(x, law, alphabet=alphabet))
    for rows in (draw(space, law, 4, seed=0), draw(space, law[::-1], 4, seed=0)):
        assert total_variation(rows, law, alphabet=alphabet).floor == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 17, 3000])
def test_de_moivre_agrees_with_the_binomial_sum(n: int) -> None:
    law = np.array([0.0, 1e-9, 1 / 3000, 1 / n - 1e-9 if n > 2 else 0.1, 0.2, 0.7])
    law[-1] += 1 - law.sum()
    k = np.arange(n + 1)
    expected = sum(0.5 * (stats.binom.pmf(k, n, mu) * np.abs(k / n - mu)).sum() for mu in law)
    assert expected_distance(torch.from_numpy(law), n) == pytest.approx(expected, rel=1e-10)
    assert expected_distance(torch.tensor([0.0, 1.0], dtype=torch.float64), n) == 0


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_that_of_leaving_out_each_row(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 2), range(space.states)
    rows, others = draw(space, law, 23, seed=1), draw(space, law, 31, seed=2)
    found = total_variation(rows, law, alphabet=alphabet).error
    assert found == pytest.approx(jackknife(rows, lambda x: total_variation(x, law, alphabet=alphabet)), rel=1e-10)
    ours = jackknife(rows, lambda x: total_variation(x, others))
    theirs = jackknife(others, lambda x: total_variation(rows, x))
    assert total_variation(rows, others).error == pytest.approx(np.hypot(ours, theirs), rel=1e-10)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_never_too_narrow_on_average(space: Space) -> None:
    """Efron and Stein: the sum over what is left out, n/(n − 1) V_n, is on average at least the variance of n − 1 rows."""
    law, alphabet = oracles.random_law(space, 3), range(space.states)
    mean, _ = moments(space, law, 4, lambda x: total_variation(x, law, alphabet=alphabet).error ** 2)
    _, variance = moments(space, law, 3, lambda x: total_variation(x, law, alphabet=alphabet))
    assert variance <= mean * 4 / 3


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_the_spread_of_new_draws(space: Space) -> None:
    n, draws = 2000, 200
    truth = oracles.random_law(space, 4)
    for law, widest in ((np.roll(truth, 1), 1.0), (truth, (1 - 2 / np.pi) ** -0.5)):
        found = [
            total_variation(draw(space, law, n, seed), truth, alphabet=range(space.states)) for seed in range(draws)
        ]
        ratio = np.mean([value.error for value in found]) / np.std(found, ddof=1)
        # The spread of 200 nearly normal numbers is known to 1/√400 = 5 %: five times that.
        assert 1 - 0.25 <= ratio <= widest * (1 + 0.25)


def test_the_floor_of_the_spin_glass() -> None:
    data, n = edwards_anderson(side=5, seed=0), 100_000
    found = total_variation(data.sample(n, seed=11), data.pmf, alphabet=data.symbols)
    assert found.floor == pytest.approx(0.048, abs=0.003)
    assert found == pytest.approx(0.048, abs=0.003)
    # One row more or less moves the distance by 1/n at most: McDiarmid, for a chance of 1e-9 on either side.
    assert abs(found - found.floor) < np.sqrt(np.log(2e9) / (2 * n))
    assert 0.3 / np.sqrt(n) < found.error < 0.5 / np.sqrt(n - 1)


@pytest.mark.parametrize("states", [2, 3])
def test_rows_of_any_length_are_compared(states: int) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, states, (5, 150))
    kinds[1:] = kinds[0]
    kinds[1, 0], kinds[2, 75], kinds[3, 149] = ((kinds[0, site] + 1) % states for site in (0, 75, 149))
    first, second = kinds[rng.integers(0, 5, 40)], kinds[rng.integers(0, 4, 60)]
    ours, theirs = (Counter(map(tuple, rows.tolist())) for rows in (first, second))
    expected = 0.5 * sum(abs(ours[row] / 40 - theirs[row] / 60) for row in ours | theirs)
    assert total_variation(first, second) == pytest.approx(expected)
    mine, its = row_ids(torch.tensor(first), torch.tensor(second), states=states)
    assert len(set(mine.tolist()) | set(its.tolist())) == len(ours | theirs)


def test_rows_that_differ_in_one_site_each_are_all_distinct() -> None:
    rows = np.eye(150, dtype=np.uint8)
    (ids,) = row_ids(torch.from_numpy(rows), states=2)
    assert len(set(ids.tolist())) == 150
    assert total_variation(rows[:70], rows[70:]) == pytest.approx(1)


def test_counts_are_as_good_as_repeated_rows() -> None:
    space = SPACES[1]
    law = oracles.random_law(space, 5)
    rows, reference, counts = draw(space, law, 20, 0), draw(space, law, 12, 1), np.arange(12) % 4
    weighted = total_variation(rows, reference, reference_weights=counts)
    repeated = total_variation(rows, np.repeat(reference, counts, axis=0))
    assert (weighted, weighted.error) == pytest.approx((repeated, repeated.error))
    weighted = total_variation(law, reference, reference_weights=counts, alphabet=[0, 1, 2])
    repeated = total_variation(law, np.repeat(reference, counts, axis=0), alphabet=[0, 1, 2])
    assert (weighted, weighted.error, weighted.floor) == pytest.approx((repeated, repeated.error, repeated.floor))


def test_importances_weigh_the_reference() -> None:
    found = total_variation([[0], [1]], [[0], [1], [1]], reference_weights=[0.5, 0.25, 0.75])
    assert found == pytest.approx(abs(1 / 2 - 1 / 3))
    assert found.error is not None


def test_other_rows_give_the_floor_at_the_same_size() -> None:
    space, n, draws = SPACES[1], 200, 60
    law = oracles.random_law(space, 6)
    reference = draw(space, law, 500, 0)
    same = draw(space, law, n, 1)
    assert total_variation(same, reference, other=draw(space, law, n, 2)).floor == total_variation(
        draw(space, law, n, 2), reference
    )
    # Five times the rows on either side: a part as large as the other set is taken, so that both score alike.
    for mine, other in ((n, 5 * n), (5 * n, n)):
        pairs = [
            total_variation(
                draw(space, law, mine, 2 * k),
                reference,
                other=draw(space, law, other, 2 * k + 1),
                seed=k,
            )
            for k in range(100, 100 + draws)
        ]
        gap = np.array([float(pair) - pair.floor for pair in pairs])
        assert abs(gap.mean()) < 5 * gap.std(ddof=1) / np.sqrt(draws)


def test_a_single_row_has_no_error() -> None:
    assert total_variation([[0, 1]], np.full(4, 0.25)).error is None
    assert total_variation([[0, 1]], [[0, 1]]).error is None


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        (np.ones((3, 2), int), np.full(4, 0.25), {}, "alphabet="),
        (
            np.eye(90, dtype=int),
            np.full(4, 0.25),
            {},
            r"2\^90; .* hold the samples against rows of the law, with total_va",
        ),
        ([0.5, 0.5], [0.9, 0.9], {}, "sums to"),
        ([0.5, 0.5], [1.5, -0.5], {}, "has -0.5 at index 1"),
        ([0.5, 0.3, 0.2], [0.5, 0.5], {}, "2 entries"),
        ([[0, 1]], [[0, 1, 1]], {}, "samples has 2 sites, and reference has 3"),
        ([["a"]], [[0]], {}, "one holds letters"),
        (np.zeros((0, 2)), [[0, 1]], {}, "samples is empty"),
        ([[0, 1]], np.full(4, 0.25), {"reference_weights": [1]}, "the reference is a pmf"),
        ([[0]], [[0], [1]], {"reference_weights": [1, -1]}, "reference_weights has -1.0 at position 1"),
        ([[0]], [[0], [1]], {"reference_weights": [1]}, "one number for each of the 2 rows"),
        ([[0]], [[0], [1]], {"reference_weights": [0, 0]}, "all zero"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: object, second: object, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        total_variation(first, second, **options)
