"""What is drawn from a corrected conditional has the moments that were asked for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neurise.energies import moments

OUTCOMES = pytest.mark.parametrize("outcomes", [1, 3])


def case(outcomes: int, n: int = 200) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, features with a constant first, and moments that some other law of the same rows has."""
    generator = torch.Generator().manual_seed(outcomes)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    features = torch.cat([torch.ones(n, 1, dtype=torch.float64), draw(n, 4)], dim=1)
    return draw(n, outcomes), features, features.T @ law(draw(n, outcomes)) / n


def law(logits: Tensor) -> Tensor:
    return torch.sigmoid(logits) if logits.shape[-1] == 1 else torch.softmax(logits, dim=-1)


def loss(weights: Tensor, logits: Tensor, features: Tensor, wanted: Tensor, share: Tensor, shrink: float) -> Tensor:
    """The problem as the module states it."""
    full = logits + features @ weights
    full = torch.cat([torch.zeros_like(full), full], dim=-1) if full.shape[-1] == 1 else full
    return torch.logsumexp(full, -1) @ share - (wanted * weights).sum() + shrink / 2 * weights.pow(2).sum()


@OUTCOMES
def test_the_moments_are_those_asked_for_but_for_what_the_penalty_keeps_back(outcomes: int) -> None:
    logits, features, wanted = case(outcomes)
    for shrink in (1e-9, 0.1):
        found = moments.correction(logits, features, wanted, shrink=shrink, iterations=60)
        have = features.T @ law(logits + features @ found) / len(features)
        torch.testing.assert_close(have, wanted - shrink * found, rtol=0, atol=1e-9)


@OUTCOMES
def test_it_is_the_minimum_of_the_problem_with_weighted_rows(outcomes: int) -> None:
    logits, features, wanted = case(outcomes)
    share = torch.rand(len(logits), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    share /= share.sum()
    wanted = features.T @ (share[:, None] * law(logits.flip(0)))  # over the states they add up to the mean features
    found = moments.correction(logits, features, wanted, shrink=0.01, weight=share, iterations=60).requires_grad_()
    loss(found, logits, features, wanted, share, 0.01).backward()
    assert found.grad is not None
    assert float(found.grad.abs().max()) < 1e-9


def test_one_log_odds_is_two_logits() -> None:
    logits, features, wanted = case(1)
    one = moments.correction(logits, features, wanted, shrink=0.02, iterations=40)
    pair = torch.cat([torch.zeros_like(logits), logits], dim=1)
    both = torch.cat([features.mean(0)[:, None] - wanted, wanted], dim=1)  # of either state
    two = moments.correction(pair, features, both, shrink=0.04, iterations=40)
    # λ‖w‖² of one weight is that of two halves with 2λ.
    torch.testing.assert_close(two[:, 1:] - two[:, :1], one)


@OUTCOMES
def test_moments_out_of_reach_do_not_upset_it(outcomes: int) -> None:
    # A site that is to agree with two others that do not always agree with each other.
    spins = torch.tensor([[1.0, 1], [-1, -1], [1, -1], [-1, 1]], dtype=torch.float64)
    features = torch.cat([torch.ones(4, 1, dtype=torch.float64), spins], dim=1)
    wanted = torch.zeros(3, outcomes, dtype=torch.float64)
    wanted[:, -1] = torch.tensor([0.5, 0.5, 0.5])
    wanted[0, 0] = 0.5
    found = moments.correction(torch.zeros(4, outcomes, dtype=torch.float64), features, wanted, shrink=1e-3)
    assert bool(found.isfinite().all())
    assert float(found.abs().max()) <= 0.5 / 1e-3  # no more than a moment over λ


@OUTCOMES
def test_problems_side_by_side_are_solved_as_each_by_itself(outcomes: int) -> None:
    logits, features, wanted = case(outcomes)
    shrink = torch.tensor([0.3, 1e-3], dtype=torch.float64)
    pair, seen = torch.stack([logits, logits.flip(0)]), torch.stack([features, features.flip(0)])
    # Two steps: near the minimum, the length of a step depends on the last bits.
    both = moments.correction(pair, seen, wanted, shrink=shrink, iterations=2)
    first = moments.correction(logits, features, wanted, shrink=0.3, iterations=2)
    second = moments.correction(logits.flip(0), features.flip(0), wanted, shrink=1e-3, iterations=2)
    torch.testing.assert_close(both, torch.stack([first, second]), rtol=1e-9, atol=1e-12)


@OUTCOMES
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_features_that_repeat_each_other_are_solved_as_one(outcomes: int, dtype: torch.dtype) -> None:
    # The curvature is singular but for a ridge below the rounding of single precision.
    logits, features, wanted = (part.to(dtype) for part in case(outcomes))
    twice = torch.cat([features, features[:, 1:], torch.zeros(len(features), 1, dtype=dtype)], dim=1)
    both = torch.cat([wanted, wanted[1:], torch.zeros(1, outcomes, dtype=dtype)])
    found = moments.correction(logits, twice, both, shrink=1e-9, iterations=60).double()
    have = features.double().T @ law(logits.double() + twice.double() @ found) / len(features)
    # A hundred last bits of sums whose terms are of size 1.
    torch.testing.assert_close(have, wanted.double(), rtol=0, atol=max(1e-8, 100 * torch.finfo(dtype).eps))
    assert not found[-1].any()


@OUTCOMES
def test_a_problem_without_curvature_changes_nothing_and_leaves_its_neighbour_alone(outcomes: int) -> None:
    logits, features, wanted = case(outcomes)
    shrink = torch.tensor([0.0, 0.0], dtype=torch.float64)
    pair = torch.stack([torch.zeros_like(features), features])
    found = moments.correction(torch.stack([logits] * 2), pair, wanted, shrink=shrink)
    assert torch.equal(found[0], torch.zeros_like(found[0]))
    torch.testing.assert_close(found[1], moments.correction(logits, features, wanted, shrink=0.0))
