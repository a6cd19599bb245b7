import itertools
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from multinomial import jackknife, moments
from oracles import draw

from neurise.metrics import coverage
from neurise.metrics.coverage import _likeliest
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]
IDS = ["p=2", "p=3"]


def test_hand_worked() -> None:
    pmf = [0.5, 0.3, 0.15, 0.05]  # 00, 01, 10, 11
    found = coverage([[0, 0], [1, 1], [0, 0]], pmf, mass=0.9)  # the modes are 00, 01 and 10
    assert found == pytest.approx((1 / 3, 0.5 / 0.95))
    assert found.modes.floor == pytest.approx((0.875 + 1 - 0.7**3 + 1 - 0.85**3) / 3)
    assert coverage([[0, 0], [1, 1]], pmf, modes=np.int64(1)).modes == 1
    assert coverage([[0, 0], [1, 1]], pmf, modes=[[1, 1], [1, 0], [1, 1]]) == pytest.approx((1 / 2, 0.05 / 0.2))


def test_the_modes_are_the_fewest_that_carry_the_mass_and_their_equals() -> None:
    law = torch.tensor([0.1, 0.3, 0.2, 0.2 * (1 + 1e-15), 0.2, 0.0], dtype=torch.float64)
    assert _likeliest(law, 0.3, None).tolist() == [1]
    assert _likeliest(law, 0.4, None).tolist() == [1, 2, 3, 4]
    assert _likeliest(law, 0.9, None).tolist() == [1, 2, 3, 4]
    assert _likeliest(law, 1.0, None).tolist() == _likeliest(law, 0.5, 6).tolist() == [0, 1, 2, 3, 4]
    assert _likeliest(law, 0.5, 2).tolist() == [1, 2, 3, 4]


def test_a_large_law_is_searched_far_enough() -> None:
    law = np.random.default_rng(0).dirichlet(np.full(2**18, 0.3))
    order = np.argsort(-law)
    needed = int((law[order].cumsum() < 0.99).sum()) + 1
    assert needed > 2**16  # more than what is looked at first
    assert sorted(order[:needed].tolist()) == _likeliest(torch.from_numpy(law), 0.99, None).tolist()


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_floor_is_the_mean_over_everything_that_can_be_drawn(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 1, zeros=0.2), range(space.states)
    for score in ("modes", "mass"):
        mean, _ = moments(space, law, 4, lambda x, s=score: getattr(coverage(x, law, mass=0.8, alphabet=alphabet), s))
        found = coverage(draw(space, law, 4, 0), law, mass=0.8, alphabet=alphabet)
        assert getattr(found, score).floor == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_that_of_leaving_out_each_row(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 2), range(space.states)
    rows = draw(space, law, 9, seed=4)
    found = coverage(rows, law, mass=0.95, alphabet=alphabet)
    for score in ("modes", "mass"):
        expected = jackknife(rows, lambda x, s=score: getattr(coverage(x, law, mass=0.95, alphabet=alphabet), s))
        assert expected > 0
        assert getattr(found, score).error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_error_is_never_too_narrow_on_average(space: Space) -> None:
    law, alphabet = oracles.random_law(space, 4), range(space.states)
    mean, _ = moments(space, law, 4, lambda x: coverage(x, law, alphabet=alphabet).modes.error ** 2)
    _, variance = moments(space, law, 3, lambda x: coverage(x, law, alphabet=alphabet).modes)
    assert 0 < variance <= mean * 4 / 3  # Efron and Stein


def test_frequent_rows_are_the_modes_of_rows() -> None:
    reference = [[0, 0]] * 5 + [[1, 2]] * 3 + [[2, 2]] * 2 + [[0, 1]]
    found = coverage([[0, 0], [0, 1], [2, 2], [2, 1]], reference)
    assert found == pytest.approx((2 / 3, 7 / 10))
    shares = np.array([5, 3, 2]) / 11
    assert found.modes.floor == pytest.approx((1 - (1 - shares) ** 4).mean())
    assert coverage([[0, 1], [0, 0]], reference, mass=0.6).modes == 0.5
    assert coverage([[0, 1], [2, 2]], reference, modes=1).modes == 0
    assert coverage([[0, 1], [2, 2]], reference, modes=[[0, 1]]).modes == 1


def test_wide_rows_are_told_apart() -> None:
    rows = np.zeros((4, 300), int)
    rows[1, 299], rows[2, 0] = 1, 1
    assert coverage(rows[[0, 1]], rows[[0, 0, 1, 1, 2, 2, 3]], mass=1).modes == pytest.approx(2 / 3)


@pytest.mark.parametrize(("mine", "others"), [(4, 7), (7, 4)], ids=["more others", "fewer others"])
def test_other_rows_give_the_floor_at_the_smaller_size(mine: int, others: int) -> None:
    space = SPACES[1]
    law = oracles.random_law(space, 6)
    samples, other, reference = (
        draw(space, law, mine, 1),
        draw(space, law, others, 2),
        draw(space, law, 60, 3),
    )
    found = coverage(samples, reference, other=other, mass=0.8)

    def mean_over_choices(rows: np.ndarray) -> float:
        choices = itertools.combinations(range(len(rows)), min(mine, others))
        return float(np.mean([coverage(rows[list(chosen)], reference, mass=0.8).mass for chosen in choices]))

    assert found.mass == pytest.approx(mean_over_choices(samples))
    assert found.mass.floor == pytest.approx(mean_over_choices(other))
    assert found.mass.error >= 0


def test_a_collapsed_sampler_is_seen() -> None:
    space = SPACES[0]
    law = np.full(8, 1 / 8)
    found = coverage(np.zeros((1000, 3), int), law, alphabet=[0, 1], mass=1)
    assert (found.modes, found.mass) == (1 / 8, 1 / 8)
    assert found.modes.floor == pytest.approx(1)
    assert coverage(draw(space, law, 1000, 0), law, mass=1).modes == 1


@pytest.mark.parametrize(
    ("samples", "reference", "options", "message"),
    [
        ([[0], [1]], [0.5, 0.5], {"mass": 0}, r"in \(0, 1\]; got 0"),
        ([[0], [1]], [0.5, 0.5], {"modes": 0}, "got 0"),
        ([[0], [1]], [[0], [1]], {}, "no row of the reference occurs twice among 2"),
        ([[0], [1]], [0.9, 0.9], {}, "sums to"),
        ([[0], [1]], [1.5, -0.5], {}, "has -0.5"),
        ([[0, 1]], [0.5, 0.5], {}, r"need 2\^2 = 4; .* alphabet="),
        ([[0, 1]], [[0, 1, 1]], {}, "samples has 2 sites, and reference has 3"),
        ([[0]], [0.0, 1.0], {"modes": [[0]], "alphabet": [0, 1]}, "none of the modes has any probability"),
        (np.zeros((0, 1)), [0.5, 0.5], {}, "samples is empty"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    samples: Any, reference: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        coverage(samples, reference, **options)


def test_a_single_row_has_no_error() -> None:
    assert coverage([[1]], [0.25, 0.75], alphabet=[0, 1]).modes.error is None
