"""Many networks of one kind, trained as one: their parameters, their rows and their objective, stacked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from neurise.training.batches import Rows
from neurise.training.objective import Network, Objective

BELOW_ONE = 1 - 2.0**-40
"""The greatest level of a draw among many data sets: one nearer to 1 could round up into the next of them."""


class Stacked(nn.Module):
    """K networks as one: every parameter gets a first axis that counts them, and every layer is one batched product."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.models = len(networks)
        parameters, buffers = stack_module_state(list(networks))
        if buffers:
            raise ValueError(f"a network with buffers cannot be stacked: it has {', '.join(buffers)}")
        self.pattern = copy.deepcopy(networks[0])
        for name, parameter in parameters.items():
            place, _, own = name.rpartition(".")
            learnt = networks[0].get_parameter(name).requires_grad
            stacked = nn.Parameter(parameter.detach().clone(), requires_grad=learnt)
            setattr(self.pattern.get_submodule(place), own, stacked)

    def forward(self, compute: Callable[[Network, Any], Tensor], drawn: Any) -> Tensor:
        """Compute something of each network and its own part of what was drawn, (n, K, ...) each: (n, K)."""
        axes = tuple(None if part is None else 0 for part in drawn)
        parts = tuple(None if part is None else part.transpose(0, 1).contiguous() for part in drawn)

        def one(parameters: dict[str, Tensor], own: Any) -> Tensor:
            return compute(lambda *inputs: functional_call(self.pattern, parameters, inputs), own)

        parameters: dict[str, Tensor] = dict(self.pattern.named_parameters())
        values: Tensor = vmap(one, in_dims=(0, axes), out_dims=1)(parameters, parts)
        return values

    def weights_of(self, model: int) -> dict[str, Tensor]:
        """Return the parameters of one network, by the names that they have there."""
        return {name: parameter[model].detach().clone() for name, parameter in self.pattern.named_parameters()}


@dataclass(frozen=True)
class ManyRows:
    """The rows of K data sets, which may differ in size, one after another."""

    rows: Rows  # without weights
    first: Tensor  # (K,): where each data set begins
    count: Tensor  # (K,)
    cumulative: Tensor | None  # (rows,): k plus the share of its weight that data set k has up to here

    @classmethod
    def of(cls, parts: Sequence[Rows]) -> ManyRows:
        """Put data sets together; either all of them have labels, or none, and the same with weights."""
        count = torch.tensor([len(part) for part in parts])
        y = None if parts[0].y is None else torch.cat([part.y for part in parts if part.y is not None])
        sums = [part.weights.cumsum(0) for part in parts if part.weights is not None]
        cumulative = torch.cat([k + total / total[-1] for k, total in enumerate(sums)]) if sums else None
        return cls(Rows(torch.cat([part.x for part in parts]), y), count.cumsum(0) - count, count, cumulative)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.rows.device

    @property
    def num_bytes(self) -> int:
        """How much memory the rows take on the device."""
        return self.rows.num_bytes

    def advance(self, step: int) -> None:
        """Do nothing: the rows are always ready."""

    def to(self, device: torch.device) -> ManyRows:
        """Move everything to a device."""
        cumulative = None if self.cumulative is None else self.cumulative.to(device)
        return ManyRows(self.rows.to(device), self.first.to(device), self.count.to(device), cumulative)

    def draw(self, n: int, *, generator: Generator) -> tuple[Tensor, Tensor | None]:
        """Draw n rows of each data set with replacement, (n, K, sites), each with probability proportional to its weight."""
        shape = (n, len(self.count))
        return self.at(torch.rand(shape, generator=generator, device=self.device, dtype=torch.float64))

    def spread(self, n: int, *, generator: Generator) -> tuple[Tensor, Tensor | None]:
        """Repeat the rows of each data set to make n of them, each as often as its weight says to within one."""
        device = self.device
        orders = [torch.randperm(n, generator=generator, device=device) for _ in range(len(self.count))]
        return self.at((torch.stack(orders, dim=1).double() + 0.5) / n)

    def at(self, level: Tensor) -> tuple[Tensor, Tensor | None]:
        """Pick the rows at given levels in [0, 1) of each data set's cumulative weight, (n, K)."""
        if self.cumulative is None:
            index = (level * self.count).long()
        else:
            every = torch.arange(len(self.count), device=level.device)
            level = every + level.clamp(max=BELOW_ONE)
            index = torch.searchsorted(self.cumulative, level, right=True) - self.first
        index = self.first + torch.minimum(index, self.count - 1)
        return self.rows.x[index], None if self.rows.y is None else self.rows.y[index]


@dataclass(frozen=True)
class ManyObjective:
    """The objective of one network, for K of them: drawn examples are (n, K, ...), and so are losses and scores, (n, K)."""

    one: Objective
    network: Stacked

    @property
    def bytes_per_example(self) -> int:
        """As much as K examples of one network."""
        return self.network.models * self.one.bytes_per_example

    def draw(self, x: Tensor, y: Tensor | None, *, generator: Generator) -> tuple[Any, ...]:
        """Noise the rows x (n, K, sites) of all models in one go.

        What is drawn for n · K examples is stratified: example i of each model gets the i-th of n strata of times, and the
        K models take its K parts in an order that is drawn anew for every i. So a model's times are those that it would
        draw alone.
        """
        n, models = x.shape[:2]
        device = x.device
        turn = (
            torch.randint(models, (n, 1), generator=generator, device=device)
            if models > 1
            else x.new_zeros(n, 1).long()
        )
        every = torch.arange(models, device=device)
        row = models * torch.arange(n, device=device)[:, None]
        there = (row + (every - turn) % models).flatten()
        back = row.T + (every[:, None] + turn.T) % models  # (K, n): the layout that the stack reads
        mixed = None if y is None else y.flatten()[there]
        drawn = self.one.draw(x.flatten(0, 1)[there], mixed, generator=generator)
        return tuple(None if part is None else part[back].transpose(0, 1) for part in drawn)

    def losses(self, network: Network, drawn: Any) -> Tensor:
        """Return the training losses, (n, K); ``network`` is a :class:`Stacked`, or a function like one."""
        return network(self.one.losses, drawn)

    def scores(self, network: Network, drawn: Any) -> Tensor:
        """Return what the validation compares, (n, K)."""
        return network(self.one.scores, drawn)
