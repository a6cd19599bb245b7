"""Several networks of one kind that answer together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap


class Committee(nn.Module):
    r"""M networks that start from different weights and see the same examples: their logits, (..., M, states).

    Each member learns by itself. What they say together is the geometric mean,
    :math:`\log \mu(a) = \frac1M \sum_m \log \mu_m(a) + \text{const}`: what each has learnt by heart averages out. All members
    are one batched computation.
    """

    def __init__(self, make: Callable[[], nn.Module], members: int) -> None:
        super().__init__()
        self.size = members
        networks = [make() for _ in range(members)]
        self.pattern = networks[0]
        self.members = nn.ParameterDict(
            {_key(name): nn.Parameter(tensor) for name, tensor in stack_module_state(networks)[0].items()}
        )
        self.names = [name for name, _ in self.pattern.named_parameters()]
        # Its own weights are not used, only its shape: they must not be counted, moved or saved.
        self.pattern.requires_grad_(False)
        object.__setattr__(self, "pattern", self._modules.pop("pattern"))

    @property
    def free_steps(self) -> bool:
        """Whether any (t, u) can be asked for."""
        return bool(self.pattern.free_steps)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights of each member in turn."""
        place = self.members[_key(self.names[0])].device
        self.pattern.to_empty(device=place)
        for member in range(self.size):
            self.pattern.reset(generator)  # type: ignore[operator]
            with torch.no_grad():
                for name, parameter in self.pattern.named_parameters():
                    self.members[_key(name)][member] = parameter

    def forward(self, *inputs: Any) -> Tensor:
        """Return the logits of every member, (..., M, states)."""
        weights = {name: self.members[_key(name)] for name in self.names}

        def one(own: dict[str, Tensor]) -> Tensor:
            logits: Tensor = functional_call(self.pattern, own, inputs)
            return logits

        logits: Tensor = vmap(one, out_dims=-2)(weights)
        return logits


def _key(name: str) -> str:
    """Parameters may not have dots in their names."""
    return name.replace(".", "/")


def agreed(log_probs: Tensor) -> Tensor:
    """Put the logarithms of the members' conditionals, (..., M, states), into one, (..., states)."""
    return torch.log_softmax(log_probs.mean(dim=-2), dim=-1)
