"""Conditionals that answer together say the geometric mean of what each says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import conditionals, exact
from neurise.conditionals.base import Frame
from neurise.conditionals.committee import Committee, Together, find_shares
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.losses import cross_entropy
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Batch
from neurise.space import Space

SPACE, WEIGHTS = Space(sites=4, states=3), [0.5, 0.2, 0.3]
CHAINS = pytest.mark.parametrize("keep_prob", [0.0, 0.4])


def members(keep_prob: float = 0.0, *, planned: bool = True) -> list[NetworkConditionals]:
    """Three conditionals of different kinds, in float64; one of them has no plan unless all are to have one."""
    noise = RoundRobin(SPACE, keep_prob, 2)
    size: dict[str, Any] = {"width": 5, "depth": 2}
    steps = noise.num_steps
    networks = [
        SiteMLP(SPACE, steps, heads="site", residual=True, **size),
        Sum([PairwiseTerms(SPACE, steps), SiteMLP(SPACE, steps, width=4, depth=1)]),
        SiteMLP(SPACE, steps, **size) if planned else LocalMLP(SPACE, steps, **size),
    ]
    generator = torch.Generator().manual_seed(1)
    for network in networks:
        for parameter in network.double().requires_grad_(False).parameters():
            torch.nn.init.normal_(parameter, generator=generator)
    frame = Frame(noise, 0, torch.full((SPACE.sites,), -1))
    return [NetworkConditionals(network, frame, hide_noised=True) for network in networks]


@CHAINS
def test_together_they_say_the_weighted_geometric_mean(keep_prob: float) -> None:
    own = members(keep_prob, planned=False)
    whole, x = Committee(own, WEIGHTS), SPACE.configurations()
    for step in range(whole.noise.num_steps):
        t, u = torch.tensor([step]), torch.tensor([step % 4])
        probs = np.stack([member.log_conditional(t, u, x).exp().numpy() for member in own])
        product = np.prod(probs ** np.array(WEIGHTS)[:, None, None], axis=0)
        expected = product / product.sum(-1, keepdims=True)
        np.testing.assert_allclose(whole.log_conditional(t, u, x).exp(), expected, rtol=1e-12)
        assert torch.equal(whole.hidden(t), own[0].hidden(t))
    assert whole.is_autoregressive == (keep_prob == 0)


@CHAINS
@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("sweep", [False, True])
def test_a_walk_answers_as_the_conditionals_do(keep_prob: float, planned: bool, sweep: bool) -> None:
    whole = Committee(members(keep_prob, planned=planned), WEIGHTS)
    generator = torch.Generator().manual_seed(2)
    rows = SPACE.uniform(6, generator=generator)
    walk = whole.walk(rows.T.contiguous(), None, torch.zeros(1, dtype=torch.int64), sweep=sweep)
    assert isinstance(walk, Together) != planned
    if sweep and not planned:
        return  # a local network has only ever seen its own step
    for u in reversed(range(SPACE.sites)):
        t = torch.tensor([0 if sweep else u])
        expected = whole.log_conditional(t, torch.tensor([u]), rows)
        torch.testing.assert_close(walk.logits(u).log_softmax(-1), expected, rtol=0, atol=1e-10)
        rows[:, u] = torch.randint(SPACE.states, (6,), generator=generator, dtype=torch.uint8)
        walk.put(u, rows[:, u])


def test_a_committee_is_made_again_from_its_description() -> None:
    whole = Committee(members(planned=False), WEIGHTS)
    described = json.loads(json.dumps(whole.description()))
    again = conditionals.build(described, Frame(whole.noise, 0, torch.full((SPACE.sites,), -1)))
    again.double().load_state_dict(whole.state_dict())
    assert again.description() == described
    assert torch.equal(exact.chain_law(again), exact.chain_law(whole))


def test_a_member_that_is_certain_of_a_token_is_not_outvoted() -> None:
    certain = torch.tensor([[0.0, -torch.inf]])

    class Says(NetworkConditionals):
        def log_conditional(self, *_: Any) -> torch.Tensor:
            return certain

    frame = Frame(RoundRobin(Space(1, 2), 0.0), 0, torch.tensor([-1]))
    own = [Says(SiteMLP(Space(1, 2), 1, width=2, depth=1), frame, hide_noised=True) for _ in range(2)]
    zero = torch.zeros(1, dtype=torch.int64)
    assert torch.equal(Committee(own, [0.5, 0.5]).log_conditional(zero, zero, zero[None]), certain)


def test_each_network_of_a_stack_learns_as_if_it_were_alone() -> None:
    own = [member.network for member in members()]
    stack = Stack([own[0], own[0]])
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    stack.requires_grad_(True)
    noise = RoundRobin(SPACE, 0.0, 2)
    frame = Frame(noise, 0, torch.full((SPACE.sites,), -1))

    whole = RoundRobinObjective(stack, frame, cross_entropy, hide_noised=True)
    x = SPACE.uniform(50, generator=torch.Generator().manual_seed(0))
    drawn = whole.draw(Batch(x), generator=torch.Generator().manual_seed(1))
    whole.losses(stack, drawn).mean().backward()
    for number, network in enumerate(stack.networks()):
        lone = RoundRobinObjective(Stack([network]), frame, cross_entropy, hide_noised=True)
        lone.losses(lone.network, drawn).mean().backward()
        for name, parameter in lone.network.pattern.named_parameters():
            mine = stack.pattern.get_parameter(name).grad
            assert (mine is None) == (parameter.grad is None)
            if mine is None or parameter.grad is None:  # without classes there are no labels to learn
                assert name == "label"
                continue
            torch.testing.assert_close(2 * mine[number], parameter.grad[0], rtol=1e-9, atol=1e-12)


def test_a_committee_starts_from_different_weights_and_a_seed_gives_the_same(tmp_path: Path) -> None:
    one, two = (tiny.model(members=2).fit(tiny.spins(), max_steps=20) for _ in range(2))
    assert tiny.same_weights(one, two)
    first, second = one.conditionals_.members  # type: ignore[attr-defined]
    assert not torch.allclose(first.network.token, second.network.token)
    assert one.num_parameters_ == 2 * tiny.model().fit(tiny.spins(), max_steps=1).num_parameters_
    one.save(tmp_path / "model")
    law = exact.law(one)
    assert torch.equal(exact.law(neurise.load(tmp_path / "model")), law)
    # The law of the samples is that of the agreed conditionals, so it sums to one.
    assert abs(float(law.sum()) - 1) < 1e-12


def test_shares_go_to_who_knows_and_are_equal_where_nobody_can_tell() -> None:
    observed = torch.arange(400) % 2
    knows = torch.where(observed[:, None] == torch.arange(2), 0.9, 0.1).log()
    wrong = knows.flip(-1)
    assert find_shares([knows], observed, [1]) == [1.0]
    assert find_shares([knows, wrong], observed, [1, 1]) == [1.0, 0.0]
    assert find_shares([wrong, knows], observed, [1, 1]) == [0.0, 1.0]
    assert find_shares([knows, knows], observed, [1, 1]) == pytest.approx([0.5, 0.5])
    # One in three is not on the grid; the kind with fewer parameters gets the larger of two that are equally near.
    shares = find_shares([knows, knows, knows], observed, [1, 1, 1])
    assert sum(shares) == pytest.approx(1)
    assert max(abs(share - 1 / 3) for share in shares) <= 1 / 20
