"""The contract of every network of the folder that answers for a whole row at once."""

import json

import pytest
import torch
from torch import Tensor, nn

from neurise import discovery, networks
from neurise.deadline import Work
from neurise.networks.base import RowNetwork
from neurise.networks.parts.stack import Stack
from neurise.rows import Rows
from neurise.space import Space
from neurise.walks import log_law

SPACES = {"bits": Space(sites=5, states=2), "three": Space(sites=4, states=3)}
OFFERED = {name: discovery.find("neurise.networks", name) for name in discovery.names("neurise.networks")}
NAMES = [name for name, kind in OFFERED.items() if issubclass(kind, RowNetwork)]

every = pytest.mark.parametrize("name", NAMES)
everywhere = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def fresh(name: str, space: Space, *, classes: int = 0) -> RowNetwork:
    made: RowNetwork = OFFERED[name](space, space.sites, width=8, depth=2, classes=classes)
    return made


def make(name: str, space: Space, *, seed: int = 0, classes: int = 0) -> RowNetwork:
    """Draw the weights, show rows, and move all weights, in float64: an output of zero would hide everything."""
    network, generator = fresh(name, space, classes=classes), torch.Generator().manual_seed(seed)
    network.reset(generator)
    x = space.uniform(200, generator=generator)
    x[:150] = x[:150, :1]  # sites that depend on each other
    network.take(network.begin(Rows(x, labels(200, classes)), None, torch.ones(space.sites, dtype=torch.bool), Work()))
    for parameter in network.parameters():
        if parameter.is_floating_point():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return network.double().requires_grad_(False)


def weights(network: RowNetwork) -> Tensor:
    return torch.cat([parameter.detach().double().flatten() for parameter in network.parameters()])


def labels(n: int, classes: int) -> Tensor | None:
    return torch.arange(n) % classes if classes else None


def test_the_folder_offers_these_networks() -> None:
    assert {"causal", "masked", "sparse"} <= set(NAMES)


@pytest.mark.parametrize("classes", [0, 2])
@everywhere
@every
def test_the_product_of_the_conditionals_is_a_law(name: str, space: Space, classes: int) -> None:
    network, x = make(name, space, classes=classes), space.configurations()
    for label in range(max(1, classes)):
        y = torch.full((len(x),), label) if classes else None
        log_conditionals = network(x, y).log_softmax(-1).gather(-1, x.long()[..., None])
        torch.testing.assert_close(log_conditionals.sum((1, 2)).exp().sum().item(), 1.0)


@everywhere
@every
def test_a_site_looks_at_later_sites_alone(name: str, space: Space) -> None:
    network, x = make(name, space), space.configurations()[::7]
    before = network(x)
    for site in range(space.sites):
        changed = x.clone()
        changed[:, site] = (changed[:, site] + 1) % space.states
        moved = (network(changed) - before).abs().amax((0, 2)) > 1e-12
        assert not moved[site:].any()


@everywhere
@every
def test_labels_matter(name: str, space: Space) -> None:
    network, x = make(name, space, classes=2), space.configurations()[:6]
    assert not torch.allclose(network(x, torch.zeros(6).long()), network(x, torch.ones(6).long()))


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("unasked", [(), (1,), (0, 3)])
@everywhere
@every
def test_a_walk_answers_as_a_pass_does(name: str, space: Space, unasked: tuple[int, ...], classes: int) -> None:
    network, x = make(name, space, classes=classes), space.configurations()[::5]
    y = labels(len(x), classes)
    expected, walk = network(x, y), network.walk(x.T.contiguous() * 0, y, precision="float32")
    if walk is None:
        pytest.skip("no walk of its own")
    for u in reversed(range(space.sites)):
        if u not in unasked:  # a site whose answer is known is put without having been asked for
            torch.testing.assert_close(log_law(walk.logits(u), space.states), expected[:, u].log_softmax(-1))
        walk.put(u, x[:, u])


@pytest.mark.parametrize("classes", [0, 2])
@everywhere
@every
def test_many_networks_run_as_one(name: str, space: Space, classes: int) -> None:
    alone, x = [make(name, space, seed=seed, classes=classes) for seed in range(3)], space.configurations()[:12]
    stack, y = Stack(alone), labels(12, classes)
    torch.testing.assert_close(stack(x, y), torch.stack([network(x, y) for network in alone], dim=-2))
    drawn = (x.reshape(4, 3, -1), None if y is None else y.reshape(4, 3))
    found = stack.each(lambda network, mine: network(*mine).square().sum((1, 2)), drawn)
    for k, network in enumerate(alone):
        own = network(drawn[0][:, k], None if drawn[1] is None else drawn[1][:, k])
        torch.testing.assert_close(found[:, k], own.square().sum((1, 2)))


@every
def test_reset_gives_every_weight_a_value_and_conditionals_start_uniform(name: str) -> None:
    found, space = [], SPACES["three"]
    for rubbish in (float("nan"), 5.0):
        network = fresh(name, space, classes=2)
        assert not list(network.buffers())
        for parameter in network.parameters():
            nn.init.constant_(parameter, rubbish if parameter.is_floating_point() else 1)
        network.reset(torch.Generator().manual_seed(0))
        found.append(weights(network))
        assert not network(space.configurations(), labels(space.size, 2)).any()
    assert found[0].isfinite().all()
    assert torch.equal(*found)
    network.reset(torch.Generator().manual_seed(1))
    assert not torch.equal(found[0], weights(network))


@every
def test_a_network_is_made_again_from_its_description(name: str) -> None:
    space = SPACES["bits"]
    network, x = make(name, space, classes=2), space.configurations()
    described = json.loads(json.dumps(network.description()))
    with torch.device("meta"):
        again = networks.build(described, space, space.sites, 2)
    assert again.description() == described
    again = again.double().to_empty(device="cpu")
    again.load_state_dict(network.state_dict())
    y = labels(len(x), 2)
    torch.testing.assert_close(again(x, y), network(x, y), rtol=0, atol=0)


@every
def test_no_network_has_fewer_numbers_than_it_says_at_least(name: str) -> None:
    space = SPACES["three"]
    for width, depth in ((8, 1), (16, 3)):
        with torch.device("meta"):
            made = OFFERED[name](space, space.sites, width=width, depth=depth)
        assert 0 < OFFERED[name].least_numbers(space, space.sites, width, depth) <= weights(made).numel()


@every
def test_training_takes_more_memory_than_answering(name: str) -> None:
    with torch.device("meta"):
        network = fresh(name, Space(100, 2))
    assert 0 < network.bytes_per_row(training=False) < network.bytes_per_row(training=True)
