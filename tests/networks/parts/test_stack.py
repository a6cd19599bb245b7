"""A stack of networks does what the networks do one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from neurise.networks.local_mlp import LocalMLP
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.networks.site_mlp import SiteMLP
from neurise.space import Space

SPACE, STEPS, CLASSES = Space(sites=3, states=4), 6, 2
SIZE: dict[str, Any] = {"width": 5, "depth": 2, "classes": CLASSES}


def with_terms() -> nn.Module:
    terms = PairwiseTerms(SPACE, STEPS, classes=CLASSES, clean=True)
    terms.requires_grad_(False)
    return Sum([terms, SiteMLP(SPACE, STEPS, heads="site", residual=True, **SIZE)])


MAKES: dict[str, Callable[[], nn.Module]] = {
    "site_mlp": lambda: SiteMLP(SPACE, STEPS, **SIZE),
    "local_mlp": lambda: LocalMLP(SPACE, STEPS, residual=True, **SIZE),
    "a sum with frozen terms": with_terms,
}
every = pytest.mark.parametrize("name", MAKES)
counts = pytest.mark.parametrize("count", [1, 3])
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def made(name: str, count: int, seed: int = 0) -> list[Any]:
    """Networks in float64 with weights that leave nothing equal by chance."""
    generator = torch.Generator().manual_seed(seed)
    networks = [MAKES[name]().double() for _ in range(count)]
    for network in networks:
        for parameter in network.parameters():
            nn.init.normal_(parameter, generator=generator)
    return networks


def inputs(*shape: int) -> tuple[Tensor, ...]:
    """t, u, x, hidden and y of examples, with the axes that they are counted by."""
    generator = torch.Generator().manual_seed(9)
    n = int(torch.tensor(shape).prod())
    t = torch.randint(STEPS, (n,), generator=generator)
    x, hidden = SPACE.uniform(n, generator=generator), torch.rand(n, SPACE.sites, generator=generator) < 0.3
    y = torch.randint(CLASSES, (n,), generator=generator)
    return tuple(part.reshape(*shape, *part.shape[1:]) for part in (t, t % SPACE.sites, x, hidden, y))


@every
@counts
def test_shown_the_same_each_network_answers_as_it_does_alone(name: str, count: int) -> None:
    networks, shown = made(name, count), inputs(7)
    answers = Stack(networks)(*shown)
    assert answers.shape == (7, count, SPACE.states)
    for k, network in enumerate(networks):
        torch.testing.assert_close(answers[:, k], network(*shown), **CLOSE)
    assert count == 1 or not torch.allclose(answers[:, 0], answers[:, 1])


def values(network: Callable[..., Tensor], drawn: Any) -> Tensor:
    """Something of an answer that has one number per example."""
    return (network(*drawn) * torch.arange(SPACE.states)).sum(-1)


@every
@counts
def test_each_network_may_have_inputs_of_its_own(name: str, count: int) -> None:
    networks, drawn = made(name, count), inputs(7, count)
    stack = Stack(networks)
    found = stack.each(values, drawn)
    assert found.shape == (7, count)
    others = Stack(made(name, count, seed=1))
    weights = dict(others.named_parameters())
    replaced = stack.each(values, drawn, weights=weights)
    torch.testing.assert_close(replaced, others.each(values, drawn), **CLOSE)
    for k, network in enumerate(networks):
        own = tuple(part[:, k] for part in drawn)
        torch.testing.assert_close(found[:, k], values(network, own), **CLOSE)
    assert not torch.allclose(found, replaced)


def test_what_was_not_drawn_is_left_out() -> None:
    networks = [SiteMLP(SPACE, STEPS, width=5, depth=1).double() for _ in range(2)]
    for k, network in enumerate(networks):
        for parameter in network.parameters():
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(k))
    drawn = (*inputs(7, 2)[:4], None)
    found = Stack(networks).each(values, drawn)
    for k, network in enumerate(networks):
        own = tuple(None if part is None else part[:, k] for part in drawn)
        torch.testing.assert_close(found[:, k], values(network, own), **CLOSE)


@every
@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("outer", [1, 3])
def test_a_stack_of_stacks_is_one(name: str, inner: int, outer: int) -> None:
    stacks = [Stack(made(name, inner, seed=k)) for k in range(outer)]
    whole, shown, drawn = Stack(stacks), inputs(7), inputs(7, outer)
    answers = whole(*shown)
    assert answers.shape == (7, inner, outer, SPACE.states)
    found = whole.each(lambda network, own: values(network, own).sum(-1), drawn)
    for k, stack in enumerate(stacks):
        torch.testing.assert_close(answers[:, :, k], stack(*shown), **CLOSE)
        own = tuple(part[:, k] for part in drawn)
        torch.testing.assert_close(found[:, k], values(stack, own).sum(-1), **CLOSE)
    for k, stack in enumerate(whole.networks()):
        assert isinstance(stack, Stack)
        for j, network in enumerate(stack.networks()):
            torch.testing.assert_close(network(*shown), answers[:, j, k], **CLOSE)


@every
@counts
def test_a_stack_gives_its_networks_back_without_a_copy(name: str, count: int) -> None:
    networks = made(name, count)
    stack = Stack(networks)
    for k, (given, back) in enumerate(zip(networks, stack.networks(), strict=True)):
        assert type(back) is type(given)
        assert back.state_dict().keys() == given.state_dict().keys()
        for own, weight in back.named_parameters():
            assert torch.equal(weight, given.get_parameter(own))
            assert weight.data_ptr() == stack.pattern.get_parameter(own)[k].data_ptr()
            assert weight.data_ptr() != given.get_parameter(own).data_ptr()  # the stack took a copy
    shown, first = inputs(7), stack.networks()[0]
    with torch.no_grad():
        for weight in first.parameters():
            weight += 0.3
    torch.testing.assert_close(stack(*shown)[:, 0], first(*shown), **CLOSE)
    assert not torch.allclose(stack(*shown)[:, 0], networks[0](*shown))


@counts
def test_frozen_parameters_stay_frozen(count: int) -> None:
    stack = Stack(made("a sum with frozen terms", count))
    for network in (stack.pattern, *stack.networks(), Stack([stack, stack]).networks()[1].pattern):
        for name, parameter in network.named_parameters():
            assert parameter.requires_grad == (not name.startswith("parts.0."))
    stack.each(values, inputs(7, count)).sum().backward()
    learnt = {name for name, parameter in stack.named_parameters() if parameter.grad is not None}
    assert learnt
    assert not any(name.startswith("pattern.parts.0.") for name in learnt)


@every
def test_weights_are_drawn_one_network_after_another(name: str) -> None:
    with torch.device("meta"):
        stack = Stack([MAKES[name]() for _ in range(3)])
    stack.to_empty(device="cpu").reset(torch.Generator().manual_seed(4))
    generator = torch.Generator().manual_seed(4)
    for back in stack.networks():
        alone = MAKES[name]()
        alone.reset(generator)  # type: ignore[operator]
        assert all(torch.equal(back.get_parameter(own), weight) for own, weight in alone.named_parameters())


def test_a_network_with_buffers_is_refused() -> None:
    with pytest.raises(ValueError, match="with buffers cannot be stacked: it has running_mean"):
        Stack([nn.BatchNorm1d(2), nn.BatchNorm1d(2)])
