"""What is particular to the masked perceptron: its masks, and a walk that goes through several blocks of sites."""

import pytest
import torch

from neurise.networks import _masked_walk
from neurise.networks.masked import Masked
from neurise.networks.parts.walk import relative
from neurise.space import Space

SIZES = [(7, 3, 5), (7, 3, 40), (12, 2, 11), (1, 2, 3), (2, 4, 1)]
"""Sites, states and width: fewer units than sites, more, as many as sites but one, and hardly any."""


def stirred(network: Masked) -> Masked:
    generator = torch.Generator().manual_seed(0)
    network.reset(generator)
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return network.double().requires_grad_(False)


@pytest.mark.parametrize(("sites", "states", "width"), SIZES)
def test_units_look_at_the_sites_that_the_docstring_says(sites: int, states: int, width: int) -> None:
    network = Masked(Space(sites, states), sites, width=width, depth=2)
    masks, features = network.connections(torch.device("cpu")), states - 1
    for unit in range(width):
        first = min(sites - 1, 1 + unit * (sites - 1) // width)
        assert masks.first[unit].tolist() == [site >= first for site in range(sites) for _ in range(features)]
        assert masks.last[:, unit].tolist() == [first > site for site in range(sites) for _ in range(features)]
        for site in range(sites + 1):
            assert (unit >= network.units_from(site)) == (first >= site)


@pytest.mark.parametrize("block", [1, 3, 32])
@pytest.mark.parametrize(("sites", "states", "width"), SIZES)
def test_a_walk_through_blocks_answers_as_the_pass_does(
    sites: int, states: int, width: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_masked_walk, "BLOCK", block)
    space = Space(sites, states)
    network = stirred(Masked(space, sites, width=width, depth=3, classes=2))
    x, y = space.uniform(4, generator=torch.Generator().manual_seed(2)), torch.tensor([0, 1, 1, 0])
    expected, walk = network(x, y), network.walk(torch.zeros_like(x.T), y, precision="float32")
    for u in reversed(range(sites)):
        torch.testing.assert_close(walk.logits(u), relative(expected[:, u]))
        walk.put(u, x[:, u])


def test_short_products_are_near() -> None:
    space = Space(70, 2)
    network = stirred(Masked(space, 70, width=50, depth=2)).float()
    x = space.uniform(3, generator=torch.Generator().manual_seed(2))
    exact, short = (network.walk(x.T, None, precision=precision) for precision in ("float32", "bfloat16"))
    for u in reversed(range(space.sites)):
        near, truth = short.logits(u), exact.logits(u)
        torch.testing.assert_close(near, truth, atol=0.2, rtol=0.05)
        for walk in (exact, short):
            walk.put(u, x[:, u])
