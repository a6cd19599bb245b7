"""How the numbers that a network gives stand for scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

LEAST = 1e-12
"""What a sampler takes for a score that is not positive."""
FAR = -20.0
"""Below this, log softplus(z) is z to within 10⁻⁹."""


class Form(ABC):
    """A map from a network's output z to a score s, up to a scale that is known. s(0) = 1: all forms start from one score."""

    @abstractmethod
    def log(self, z: Tensor) -> Tensor:
        """Return log s, not a number where s is negative."""

    def number(self, z: Tensor) -> Tensor:
        """Return s itself."""
        return self.log(z).exp()

    def usable(self, z: Tensor) -> Tensor:
        """Return outputs whose scores are all positive, as a sampler needs them."""
        return z


class Log(Form):
    r""":math:`s = e^z`: the network gives log-scores."""

    def log(self, z: Tensor) -> Tensor:
        """Return z."""
        return z


class Softplus(Form):
    r""":math:`s = \log(1 + e^{z + c})` with :math:`e^c = e - 1`: a last layer that makes scores positive."""

    def log(self, z: Tensor) -> Tensor:
        """Return log softplus(z + c)."""
        shifted = z + math.log(math.expm1(1))
        near = functional.softplus(shifted.clamp(min=FAR)).log()
        return torch.where(shifted < FAR, shifted, near)


class Raw(Form):
    r""":math:`s = 1 + z`: the network gives the scores themselves, and nothing keeps them positive."""

    def log(self, z: Tensor) -> Tensor:
        """Return log(1 + z)."""
        return self.number(z).log()

    def number(self, z: Tensor) -> Tensor:
        """Return 1 + z, which may be negative; 0 for a state that a site does not have, z = −∞."""
        return (1 + z).masked_fill(z == -torch.inf, 0.0)

    def usable(self, z: Tensor) -> Tensor:
        """Return outputs that are large enough for a positive score."""
        return z.clamp(min=LEAST - 1).masked_fill(z == -torch.inf, -torch.inf)


FORMS: dict[str, Form] = {"log": Log(), "softplus": Softplus(), "raw": Raw()}
