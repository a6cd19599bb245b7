"""Several networks of one shape as one: their weights are stacked, and every layer is one batched product."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap


class Stack(nn.Module):
    """K networks whose parameters have a first axis that counts them. A stack of stacks is one, too.

    ``stack(*inputs)`` shows all networks the same inputs, and their answers (..., K, states) stand side by side: the members
    of a committee learn so. ``stack.each(compute, drawn)`` gives each network its own part of the inputs: models with data
    of their own learn so.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.size = len(networks)
        parameters, buffers = stack_module_state(list(networks))
        if buffers:
            raise ValueError(f"a network with buffers cannot be stacked: it has {', '.join(buffers)}")
        self.pattern = copy.deepcopy(networks[0])
        for name, parameter in parameters.items():
            learnt = networks[0].get_parameter(name).requires_grad
            self._put(self.pattern, name, nn.Parameter(parameter.detach().clone(), requires_grad=learnt))

    @staticmethod
    def _put(network: nn.Module, name: str, parameter: nn.Parameter) -> None:
        place, _, own = name.rpartition(".")
        setattr(network.get_submodule(place), own, parameter)

    def networks(self) -> list[Any]:
        """Return the networks by themselves. They share their memory with the stack."""
        return [self._network(place) for place in range(self.size)]

    def _network(self, place: int) -> nn.Module:
        network = copy.copy(self.pattern)  # the parameters are replaced, so that only the structure is copied
        _copy_structure(network)
        for name, parameter in self.pattern.named_parameters():
            self._put(network, name, nn.Parameter(parameter.data[place], requires_grad=parameter.requires_grad))
        return network

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights of each network in turn."""
        for network in self.networks():
            network.reset(generator)

    def forward(self, *inputs: Any, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the answers of every network to the same inputs, (..., K, states).

        ``weights`` take the place of the stack's own parameters, by the names that they have in the stack.
        """
        own: dict[str, Tensor] = dict(self.pattern.named_parameters())
        for name, parameter in own.items():
            chosen = parameter if weights is None else weights[f"pattern.{name}"]
            own[name] = chosen[0] if self.size == 1 else chosen
        if self.size == 1:
            answer: Tensor = functional_call(self.pattern, own, inputs)
            return answer.unsqueeze(-2)
        if not self._side_by_side:
            return torch.stack([functional_call(self.pattern, each, inputs) for each in self._taken_apart(own)], dim=-2)
        answers: Tensor = vmap(partial(functional_call, self.pattern), in_dims=(0, None), out_dims=-2)(own, inputs)
        return answers

    def each(
        self,
        compute: Callable[[Callable[..., Tensor], Any], Tensor],
        drawn: Any,
        *,
        weights: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Compute something of each network and its own part of what was drawn, (n, K, ...) each: (n, K).

        ``weights`` take the place of the stack's own parameters, by the names that they have in the stack.
        """
        axes = tuple(None if part is None else 0 for part in drawn)
        parts = tuple(None if part is None else part.transpose(0, 1).contiguous() for part in drawn)

        def one(parameters: dict[str, Tensor], own: Any) -> Tensor:
            return compute(lambda *inputs: functional_call(self.pattern, parameters, inputs), own)

        own: dict[str, Tensor] = dict(self.pattern.named_parameters())
        if weights is not None:
            own = {name: weights[f"pattern.{name}"] for name in own}
        if not self._side_by_side:
            each = [tuple(None if part is None else part[place] for part in parts) for place in range(self.size)]
            drawn_by = zip(self._taken_apart(own), each, strict=True)
            return torch.stack([one(mine, seen) for mine, seen in drawn_by], dim=1)
        values: Tensor = vmap(one, in_dims=(0, axes), out_dims=1)(own, parts)
        return values

    @property
    def _side_by_side(self) -> bool:
        """Whether one batched product serves all networks; else each is asked by itself."""
        return bool(getattr(self.pattern, "side_by_side", True))

    def _taken_apart(self, own: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Return the weights of each network by itself."""
        parts = {name: weights.unbind(0) for name, weights in own.items()}
        return [{name: part[place] for name, part in parts.items()} for place in range(self.size)]


def _copy_structure(module: nn.Module) -> None:
    """Give a shallow copy of a module its own tree of submodules, without copying any tensor."""
    module._parameters = dict(module._parameters)
    module._modules = {name: copy.copy(child) for name, child in module._modules.items()}
    for child in module._modules.values():
        if child is not None:
            _copy_structure(child)
