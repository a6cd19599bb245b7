"""Noise on all sites at once: its kernels compose, and one-shot draws follow them."""

from typing import Any

import chi_square
import pytest
import torch

from neurise import discovery
from neurise.space import Space

SPACE = Space(sites=2, states=3)
NAMES = ["uniform", "absorbing"]


@pytest.fixture(params=NAMES)
def noise(request: pytest.FixtureRequest) -> Any:
    return discovery.find("neurise.noise", request.param)(SPACE)


def test_kernels_are_stochastic_and_compose(noise: Any) -> None:
    first, second = torch.tensor(0.7, dtype=torch.float64), torch.tensor(0.2, dtype=torch.float64)
    kernel = noise.kernel(first)
    assert kernel.shape == (noise.tokens, noise.tokens)
    torch.testing.assert_close(kernel.sum(-1), torch.ones(noise.tokens, dtype=torch.float64))
    torch.testing.assert_close(kernel @ noise.kernel(second), noise.kernel(first * second))


def test_the_ends_are_data_and_pure_noise(noise: Any) -> None:
    ends = noise.kernel(torch.tensor([1.0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(ends[0], torch.eye(noise.tokens, dtype=torch.float64))
    torch.testing.assert_close(ends[1], noise.start_law().expand(noise.tokens, -1))


def test_hand_worked_kernels() -> None:
    half = torch.tensor(0.4, dtype=torch.float64)
    uniform = discovery.find("neurise.noise", "uniform")(SPACE).kernel(half)
    assert uniform[0].tolist() == pytest.approx([0.6, 0.2, 0.2])
    absorbing = discovery.find("neurise.noise", "absorbing")(SPACE).kernel(half)
    assert absorbing[1].tolist() == pytest.approx([0, 0.4, 0, 0.6])
    assert absorbing[3].tolist() == [0, 0, 0, 1]


def test_draws_follow_the_kernel(noise: Any) -> None:
    n, generator = 40_000, torch.Generator().manual_seed(0)
    x_0 = torch.tensor([[0, 2]], dtype=torch.uint8).expand(n, -1)
    x = noise.corrupt(x_0, torch.full((n,), 0.3), generator=generator)
    kernel = noise.kernel(torch.tensor(0.3, dtype=torch.float64))
    joint = (kernel[0][:, None] * kernel[2][None, :]).flatten()
    space = Space(SPACE.sites, noise.tokens)
    chi_square.assert_drawn_from(space.index(x).numpy(), joint.numpy())


def test_every_row_has_its_own_level(noise: Any) -> None:
    n, generator = 1000, torch.Generator().manual_seed(0)
    x_0 = torch.zeros(n, SPACE.sites, dtype=torch.uint8)
    x = noise.corrupt(x_0, (torch.arange(n) < n // 2).float(), generator=generator)
    assert (x[: n // 2] == 0).all()
    changed = (x[n // 2 :] != 0).double().mean()
    expected = 1 - noise.start_law()[0]
    assert abs(float(changed - expected)) < 5 / n**0.5  # n values of a variance of at most 1/4; ten standard deviations


def test_pure_noise(noise: Any) -> None:
    n, generator = 40_000, torch.Generator().manual_seed(1)
    law = noise.start_law()
    space = Space(SPACE.sites, noise.tokens)
    places = space.index(noise.start(n, generator=generator)).numpy()
    joint = (law[:, None] * law[None, :]).flatten().numpy()
    if joint.max() == 1:
        assert (joint[places] == 1).all()
    else:
        chi_square.assert_drawn_from(places, joint)
