"""A step moves what is learnt, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Generator, Tensor, nn

from neurise.networks.parts.stack import Stack
from neurise.rows import Batch, Rows
from neurise.training.settings import Settings
from neurise.training.stacked import ManyObjective, ManyRows
from neurise.training.state import TrainingState
from neurise.training.step import Step, clip_, optimizer

SETTINGS = Settings(
    batch_size=8,
    learning_rate=0.05,
    weight_decay=0.5,
    warmup=0.0,
    clip_norm=0.3,
    average_decay=0.9,
    patience=1,
    precision="float32",
    max_steps=5,
    max_seconds=None,
)


class Sum(nn.Module):
    """A learnt and a fixed map of the same rows, added up."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.fixed = nn.Parameter(torch.randn(3, generator=generator), requires_grad=False)
        self.learnt = nn.Parameter(torch.randn(3, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        """Return (n,)."""
        return x @ (self.learnt + self.fixed)


@dataclass(frozen=True)
class Squares:
    """The mean square of what the network says; nothing is drawn but the rows."""

    network: nn.Module
    bytes_per_example: int = 1
    noisings: int = 1

    def draw(self, batch: Batch, *, generator: Generator) -> tuple[Tensor]:
        return (batch.x,)

    def losses(self, network: Any, drawn: Any) -> Tensor:
        values: Tensor = network(drawn[0]).square()
        return values

    scores = losses


def rows(seed: int) -> Rows:
    return Rows(torch.randn(1, 3, generator=torch.Generator().manual_seed(seed)))  # every draw is this row


def stepped(objective: Any, source: Any, models: int | None = None) -> TrainingState:
    network = objective.network
    state = TrainingState(network, optimizer(network, SETTINGS), torch.Generator().manual_seed(0), models=models)
    for average in state.average.values():
        average += 1
    step = Step(objective, source, state, SETTINGS)
    for k in range(5):
        step(k / 5)
    return state


def by_hand(seed: int) -> tuple[Tensor, Tensor]:
    """The learnt weights and their average after five steps, by AdamW on them alone."""
    network, x = Sum(seed), rows(seed).x
    average = network.learnt.detach() + 1
    adam = torch.optim.AdamW([network.learnt], lr=0.05, weight_decay=0.5)
    for k in range(5):
        adam.param_groups[0]["lr"] = 0.05 * 0.5 * (1 + torch.cos(torch.tensor(torch.pi * k / 5))).item()
        adam.zero_grad()
        network(x).square().mean().backward()
        nn.utils.clip_grad_norm_([network.learnt], 0.3)  # its own norm: a frozen weight has no part in it
        adam.step()
        average += (1 - min(0.9, (2 + k) / (11 + k))) * (network.learnt.detach() - average)
    return network.learnt.detach(), average


def test_only_what_is_not_frozen_is_learnt() -> None:
    alone, stacked = Sum(0), Stack([Sum(0), Sum(1)])
    for network, learnt in ((alone, alone.learnt), (stacked, stacked.pattern.learnt)):
        (group,) = optimizer(network, SETTINGS).param_groups
        (parameter,) = group["params"]
        assert parameter is learnt


@pytest.mark.parametrize("seed", [0, 1])
def test_a_frozen_weight_is_moved_neither_by_the_optimiser_nor_in_the_average(seed: int) -> None:
    network = Sum(seed)
    state = stepped(Squares(network), rows(seed))
    assert torch.equal(network.fixed, Sum(seed).fixed)
    assert torch.equal(state.average["fixed"], Sum(seed).fixed + 1)  # where it was put, though the weight is elsewhere
    learnt, average = by_hand(seed)
    # Five steps of AdamW in the same float32, a few roundings of numbers of the order of 1.
    torch.testing.assert_close(network.learnt.detach(), learnt, rtol=0, atol=2e-6)
    torch.testing.assert_close(state.average["learnt"], average, rtol=0, atol=2e-6)
    assert (learnt - Sum(seed).learnt).abs().min() > 0.01


def test_frozen_weights_of_stacked_networks_stay_and_the_others_learn_as_alone() -> None:
    networks = [Sum(seed) for seed in (0, 1)]
    stacked = Stack(networks)
    objective = ManyObjective(Squares(networks[0]), stacked)
    state = stepped(objective, ManyRows.of([rows(seed) for seed in (0, 1)]), models=2)
    for k in (0, 1):
        weights = stacked.networks()[k].state_dict()
        assert torch.equal(weights["fixed"], Sum(k).fixed)
        assert torch.equal(state.average["pattern.fixed"][k], Sum(k).fixed + 1)
        learnt, average = by_hand(k)
        torch.testing.assert_close(weights["learnt"], learnt, rtol=0, atol=2e-6)
        torch.testing.assert_close(state.average["pattern.learnt"][k], average, rtol=0, atol=2e-6)


def source() -> Generator:
    return torch.Generator().manual_seed(0)


def gradients(models: int | None = None) -> list[Tensor]:
    shape = () if models is None else (models,)
    return [torch.randn((*shape, *own), generator=source()) for own in ((4, 3), (5,), (0, 2))]


def test_every_model_is_clipped_by_its_own_norm() -> None:
    parts = gradients(3)
    for part in parts:
        part[1] *= 1000
        part[2] *= 1e-3
    expected = []
    for k in range(3):
        alone = [nn.Parameter(torch.zeros_like(part[k])) for part in parts]
        for parameter, part in zip(alone, parts, strict=True):
            parameter.grad = part[k].clone()
        nn.utils.clip_grad_norm_(alone, 0.7)
        expected.append([parameter.grad for parameter in alone])
    clip_(parts, 0.7, stacked=True)
    for k, ours in enumerate(expected):
        for part, own in zip(parts, ours, strict=True):
            torch.testing.assert_close(part[k], own)


@pytest.mark.parametrize("norm", [0.7, 1e9, float("inf")])
def test_one_model_is_clipped_as_torch_does(norm: float) -> None:
    parts, parameters = gradients(), [nn.Parameter(torch.zeros_like(part)) for part in gradients()]
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.clone()
    nn.utils.clip_grad_norm_(parameters, norm)
    clip_(parts, norm)
    assert all(torch.equal(part, parameter.grad) for part, parameter in zip(parts, parameters, strict=True))
