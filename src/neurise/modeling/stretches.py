"""Steps of a chain that are learnt together, from one row that follows the chain through them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Stretches(NamedTuple):
    """Steps that are learnt together, (stretches, K), and what each counts, one on average."""

    steps: Tensor
    weight: Tensor


def stretches_of(steps: Tensor, length: int) -> Stretches:
    """Cut steps into stretches of about so many, all of the same length; where two overlap, a step counts half in each."""
    number = max(1, round(len(steps) / length))
    size = -(-len(steps) // number)
    first = torch.linspace(0, len(steps) - size, number, dtype=torch.float64, device=steps.device).round().long()
    place = first[:, None] + torch.arange(size, device=steps.device)
    times = torch.bincount(place.flatten(), minlength=len(steps))
    return Stretches(steps[place], (place.numel() / len(steps) / times[place]).float())
