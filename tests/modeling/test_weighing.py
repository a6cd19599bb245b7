"""What each kind of answer is worth, by rows held back: against sums by hand, and the rules on ties."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from neurise.modeling.weighing import ERRORS, Judges, are_behind, find_shares, mixed
from neurise.rows import Rows

SITES, STATES = 2, 3


def judges(n: int = 400, *, weights: Tensor | None = None, constant: tuple[int, ...] = (-1, -1)) -> Judges:
    """Rows whose second site holds token 0 mostly, and whose first is fair."""
    generator = torch.Generator().manual_seed(0)
    x = torch.stack([torch.randint(3, (n,), generator=generator), (torch.rand(n, generator=generator) < 0.3).long()], 1)
    return Judges.of(Rows(x.to(torch.uint8), weights=weights), torch.tensor(constant), STATES)


def answer(n: int, *laws: list[float]) -> Tensor:
    """The same law of each site in every row, (n, sites, states)."""
    return torch.tensor(laws, dtype=torch.float64).log().expand(n, -1, -1)


TRUE = ([1 / 3, 1 / 3, 1 / 3], [0.7, 0.3 - 1e-6, 1e-6])
NEAR = ([1 / 3, 1 / 3, 1 / 3], [0.68, 0.32 - 1e-6, 1e-6])
FAR = ([0.1, 0.1, 0.8], [0.1, 0.2, 0.7])


def test_scores_means_and_errors_are_those_by_hand() -> None:
    weights = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
    own = Judges.of(
        Rows(torch.tensor([[0, 1], [2, 0], [1, 1]], dtype=torch.uint8), weights=weights), torch.tensor([-1, -1]), 3
    )
    scores = own.scores(answer(3, *TRUE))
    byhand = [-math.log(TRUE[0][a] * TRUE[1][b]) for a, b in ((0, 1), (2, 0), (1, 1))]
    torch.testing.assert_close(scores, torch.tensor(byhand, dtype=torch.float64))
    every = [byhand[0]] + 3 * [byhand[1]] + 2 * [byhand[2]]
    mean = sum(every) / 6
    error = math.sqrt(sum((one - mean) ** 2 for one in every)) / 6
    assert own.mean_and_error(scores) == pytest.approx((mean, error))


def test_a_site_that_never_varies_is_not_looked_at() -> None:
    own = judges(constant=(-1, 0))
    assert own.answers(_Fixed(answer(len(own.rows), *FAR))).shape == (400, 1, STATES)


class _Fixed:
    """Conditionals that say the same of all rows."""

    def __init__(self, said: Tensor) -> None:
        self.said = said

    def blocks(self, n: int, *, cached: bool) -> list[slice]:
        return [slice(0, n // 2), slice(n // 2, n)]

    def log_conditionals(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self.said[: len(x)]


def test_what_is_better_is_taken_and_what_is_as_good_with_fewer_parameters() -> None:
    own = judges()
    true, near, far = (answer(400, *law) for law in (TRUE, NEAR, FAR))
    assert find_shares(own, [far, true], [5, 50]) == [0.0, 1.0]
    assert find_shares(own, [true, near], [50, 5]) == [0.0, 1.0]  # cannot be told apart by 400 rows
    assert find_shares(own, [true, near], [5, 50]) == [1.0, 0.0]
    assert find_shares(own, [far, near, true], [1, 5, 50]) == [0.0, 1.0, 0.0]


def test_two_that_each_know_one_site_answer_together() -> None:
    own = judges()
    first, second = answer(400, TRUE[0], [1 / 3] * 3), answer(400, [0.02, 0.49, 0.49], TRUE[1])
    sharper = answer(400, TRUE[0], [0.97, 0.02, 0.01])
    shares = find_shares(own, [second, sharper], [9, 9])
    assert 0 < shares[1] < 1
    assert own.is_as_good(own.scores(mixed([second, sharper], shares)), own.scores(second), 0.0)
    assert find_shares(own, [first], [9]) == [1.0]


def test_a_set_that_a_smaller_one_beats_is_not_taken() -> None:
    """Of few rows a large kind may be as good as the best mix, within errors, and still worse than a small kind."""
    own = judges(12)
    small, large = answer(12, *NEAR), answer(12, [0.3, 0.3, 0.4], [0.5, 0.45, 0.05])
    shares = find_shares(own, [large, small], [100, 1])
    assert own.mean_and_error(own.scores(small))[0] < own.mean_and_error(own.scores(large))[0]
    assert shares[0] < 1


def test_networks_are_given_up_only_where_they_are_worse_and_add_nothing() -> None:
    own = judges()
    solved, far = answer(400, *TRUE), answer(400, *FAR)
    assert are_behind(own, far, solved)
    assert not are_behind(own, solved, solved)  # not worse
    half_known = answer(400, [1 / 3] * 3, [0.98, 0.01, 0.01])
    complement = answer(400, [0.05, 0.05, 0.9], [0.45, 0.45, 0.1])
    assert not own.is_as_good(own.scores(complement), own.scores(half_known), ERRORS)
    assert not are_behind(own, complement, half_known)  # worse, and still worth something
