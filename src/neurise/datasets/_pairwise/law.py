"""Pairwise models as data sets."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from neurise.datasets._known_law import KnownLaw
from neurise.energies.elimination import Elimination
from neurise.energies.elimination_order import EliminationPlan, find_plan
from neurise.enumeration import pairwise_law
from neurise.interactions import Interactions


class PairwiseLaw(KnownLaw):
    """A pairwise model, whose sites are eliminated where its graph is narrow."""

    model: Interactions

    @cached_property
    def plan(self) -> EliminationPlan | None:
        """How to eliminate the sites, where that is possible."""
        return find_plan(self.model)

    @property
    def narrow(self) -> bool:
        """Whether there is a plan."""
        return self.plan is not None

    def _eliminate(self) -> Elimination:
        assert self.plan is not None
        return Elimination(self.model, self.plan)

    def _write_out(self) -> tuple[np.ndarray, float]:
        return pairwise_law(self.model)
