"""The contract of every network that answers for a whole row: what it may see, how it is made again, and its walk."""

import json
from math import log

import pytest
import torch
from torch import Tensor

from neurise import discovery, networks
from neurise.deadline import Work
from neurise.networks.base import RowNetwork
from neurise.networks.parts.stack import Stack
from neurise.networks.parts.walk import relative
from neurise.rows import Rows
from neurise.space import Space

SPACES = [Space(sites=3, states=4), Space(sites=5, states=2), Space(sites=1, states=3)]
CLASSES = 3
OFFERED = {name: discovery.find("neurise.networks", name) for name in discovery.names("neurise.networks")}
NAMES = [name for name, kind in OFFERED.items() if issubclass(kind, RowNetwork)]

every = pytest.mark.parametrize("name", NAMES)
in_spaces = pytest.mark.parametrize("space", SPACES, ids=str)


def make(
    name: str, space: Space, *, width: int = 8, depth: int = 2, seed: int = 0, classes: int = CLASSES
) -> RowNetwork:
    """Make a network, draw its weights and move all of them, in float64: an output of zero would hide everything."""
    network: RowNetwork = OFFERED[name](space, space.sites, width=width, depth=depth, classes=classes)
    generator = torch.Generator().manual_seed(seed)
    network.reset(generator)
    x = space.uniform(400, generator=generator)
    x[:, :-1] = torch.where(torch.rand(400, 1, generator=generator) < 0.7, x[:, 1:], x[:, :-1])
    y = torch.arange(400) % classes if classes else None
    network.begin(Rows(x, y), None, torch.ones(space.sites, dtype=torch.bool), Work())
    for parameter in network.parameters():
        if parameter.is_floating_point():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return network.double().requires_grad_(False)


def looks_everywhere(network: RowNetwork) -> bool:
    """Whether a network looks at all sites that it may: one that keeps numbers of sites looks at some of them."""
    return all(parameter.is_floating_point() for parameter in network.parameters())


def rows(space: Space, n: int = 6) -> tuple[Tensor, Tensor]:
    return space.uniform(n, generator=torch.Generator().manual_seed(1)), torch.arange(n) % CLASSES


def test_the_folder_offers_row_networks() -> None:
    assert "masked" in NAMES


@every
@in_spaces
def test_a_site_is_answered_for_from_the_sites_after_it(name: str, space: Space) -> None:
    network, (x, y) = make(name, space), rows(space)
    before = network(x, y)
    assert before.shape == (6, space.sites, space.states)
    for site in range(space.sites):
        changed = x.clone()
        changed[:, site] = (changed[:, site] + 1) % space.states
        moved = (network(changed, y) - before).log_softmax(-1).sub(-log(space.states)).abs().amax((0, 2)) > 1e-9
        assert not bool(moved[site:].any())
        assert bool(moved[:site].all()) or not looks_everywhere(network)


@every
def test_labels_are_seen_at_every_site(name: str) -> None:
    space = SPACES[0]
    network, (x, y) = make(name, space), rows(space)
    moved = (network(x, y).log_softmax(-1) - network(x, (y + 1) % CLASSES).log_softmax(-1)).abs().amax((0, 2))
    assert bool((moved > 1e-9).all())


@every
@in_spaces
def test_the_product_of_the_conditionals_is_a_law(name: str, space: Space) -> None:
    network, x = make(name, space), space.configurations()
    for label in range(CLASSES):
        law = network(x, torch.full((len(x),), label)).log_softmax(-1)
        total = law.gather(-1, x.long()[..., None]).sum((1, 2)).exp().sum()
        torch.testing.assert_close(total, torch.ones_like(total))


@every
@in_spaces
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("labels", [False, True])
def test_a_walk_answers_as_the_pass_does(name: str, space: Space, depth: int, labels: bool) -> None:
    network, (x, y) = make(name, space, depth=depth, classes=CLASSES if labels else 0), rows(space)
    own = y if labels else None
    walk = network.walk(torch.zeros_like(x.T), own, precision="float32")
    if walk is None:
        pytest.skip("this network is asked anew for every site")
    expected = network(x, own)
    for u in reversed(range(space.sites)):
        torch.testing.assert_close(walk.logits(u), relative(expected[:, u]), atol=1e-5, rtol=1e-5)
        walk.put(u, x[:, u])


@every
def test_every_conditional_starts_uniform_whatever_the_seed(name: str) -> None:
    space = SPACES[0]
    network = OFFERED[name](space, space.sites, width=8, depth=2)
    for parameter in network.parameters():
        if parameter.is_floating_point():
            parameter.data.fill_(torch.nan)  # a weight that is not given a value shows
    network.reset(torch.Generator().manual_seed(3))
    logits = network(rows(space)[0])
    torch.testing.assert_close(logits - logits[..., :1], torch.zeros_like(logits))


@every
def test_the_same_seed_draws_the_same_weights(name: str) -> None:
    first, second, other = (make(name, SPACES[0], seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


@every
def test_a_network_is_made_again_from_its_description(name: str) -> None:
    network, (x, y) = make(name, SPACES[0]), rows(SPACES[0])
    description = json.loads(json.dumps(network.description()))
    again = networks.build(description, SPACES[0], SPACES[0].sites, CLASSES).double()
    again.load_state_dict(network.state_dict())
    assert torch.equal(again(x, y), network(x, y))


@every
def test_stacked_networks_answer_as_each_of_them(name: str) -> None:
    members, (x, y) = [make(name, SPACES[0], seed=seed) for seed in (0, 1)], rows(SPACES[0])
    together = Stack(members)(x, y)
    for place, member in enumerate(members):
        torch.testing.assert_close(together[..., place, :], member(x, y))


@every
def test_memory_grows_with_the_row_and_with_training(name: str) -> None:
    small, wide = make(name, SPACES[2]), make(name, SPACES[0])
    assert 0 < small.bytes_per_row(training=False) < wide.bytes_per_row(training=False)
    assert wide.bytes_per_row(training=False) < wide.bytes_per_row(training=True)


@every
@in_spaces
def test_a_walk_need_not_be_asked_for_every_site(name: str, space: Space) -> None:
    """Sites that never vary are answered for by others."""
    network, (x, y) = make(name, space), rows(space)
    walk = network.walk(torch.zeros_like(x.T), y, precision="float32")
    if walk is None:
        pytest.skip("this network is asked anew for every site")
    for u in reversed(range(1, space.sites)):
        walk.put(u, x[:, u])
    torch.testing.assert_close(walk.logits(0), relative(network(x, y)[:, 0]), atol=1e-5, rtol=1e-5)
