"""Compare models of different methods at equal numbers of parameters."""

from __future__ import annotations

import bisect
import copy

import torch

from neurise.alphabet import Alphabet
from neurise.labels import Labels
from neurise.modeling.trained import TrainedModel
from neurise.schema import Schema
from neurise.space import Space

WIDEST = 2**14
TOLERANCE = 0.1
"""Parameter counts of a fair comparison agree to within this share."""


def count_parameters(model: TrainedModel, space: Space, classes: int = 0) -> int:
    """Count the parameters that a model would learn on such data, without training it or taking its memory."""
    draft = copy.copy(model)
    names = Alphabet(tuple(range(space.states)), "<i8")
    labels = Labels.of(torch.arange(classes).numpy(), None) if classes else None
    free = torch.full((space.sites,), -1)
    draft.schema_ = Schema(names, space, tuple(range(space.sites)), free, labels)
    draft.begin_fit(torch.device("cpu"))  # of what is no weight; weights are shapes alone
    draft.check()
    with torch.device("meta"):
        network = draft._build().network
    return sum(parameter.numel() for parameter in network.parameters())


def match_width(model: TrainedModel, target: int, space: Space, classes: int = 0) -> TrainedModel:
    """Return an unfitted copy of a model, of the width that brings it closest to ``target`` parameters.

    Refuses what cannot be brought to within a tenth, because figures of such models should not stand side by side.
    """
    if "width" not in model.parameters():
        raise ValueError(f"a {type(model).__name__} has no width to match {target:,} parameters with")

    def at(width: int) -> TrainedModel:
        return type(model)(**{**model.get_params(deep=False), "width": width})

    def count(width: int) -> int:
        return count_parameters(at(width), space, classes)

    above = bisect.bisect_left(range(1, WIDEST), target, key=count) + 1
    width = min((max(1, above - 1), above), key=lambda width: abs(count(width) - target))
    if abs(count(width) / target - 1) > TOLERANCE:
        raise ValueError(
            f"a {type(model).__name__} of width {width} has {count(width):,} parameters on {space.sites} sites of "
            f"{space.states} states, which is not within a tenth of {target:,}; choose another depth"
        )
    return at(width)
