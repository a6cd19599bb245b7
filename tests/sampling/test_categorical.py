import math

import oracles
import pytest
import torch

from neurise.categorical import draw, uniforms


def test_tokens_are_the_intervals_of_the_cumulative_sum() -> None:
    log_probs = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log()
    level = torch.tensor([0.0, 0.199, 0.201, 0.699, 0.701, 1 - 2**-53], dtype=torch.float64)
    assert draw(log_probs.expand(6, 3), level).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("only", [0, 1, 2])
def test_what_is_impossible_is_never_drawn(only: int) -> None:
    log_probs = torch.full((3,), -math.inf, dtype=torch.float64)
    log_probs[only] = 0.0
    level = torch.tensor([0.0, 0.5, 1 - 2**-53], dtype=torch.float64)
    assert draw(log_probs.expand(3, 3), level).tolist() == [only] * 3


@pytest.mark.parametrize("states", [1, 2, 5])
def test_shares_follow_the_probabilities(states: int) -> None:
    n, generator = 50_000, torch.Generator().manual_seed(0)
    probs = torch.rand(states, generator=generator, dtype=torch.float64).softmax(-1)
    drawn = draw(probs.log().expand(n, -1), uniforms(n, generator=generator))
    shares = torch.bincount(drawn.long(), minlength=states).numpy() / n
    assert oracles.tv(shares, probs) <= oracles.sampled_tv_tolerance(probs.numpy(), n)


def test_rare_tokens_are_not_rounded_away() -> None:
    # A token of probability 1e-9 at the upper end is out of reach of float32 uniforms, whose spacing there is 6e-8.
    log_probs = torch.tensor([1 - 1e-9, 1e-9], dtype=torch.float64).log()
    assert int(draw(log_probs, torch.tensor(1 - 1e-10, dtype=torch.float64))) == 1
    assert uniforms(3, generator=torch.Generator().manual_seed(0)).dtype == torch.float64
