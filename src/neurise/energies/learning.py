"""Learn a pairwise energy from rows: which pairs interact, how strongly, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies.choosing import GRAPH, Setting, choose, given
from neurise.energies.family import Family
from neurise.energies.maximum_likelihood import Aim, Fit
from neurise.energies.solved import ExactLaws
from neurise.interactions import Interactions
from neurise.rows import Rows
from neurise.space import Space

GIVEN = "that were given"
MOST_REGRESSED = 2000
"""Columns up to which every site is regressed on all others at once."""


@dataclass(frozen=True)
class Learnt:
    """An energy, where it comes from, and what is known of it."""

    found: Fit
    selected: Fit  # on the graph of the extended Bayesian criterion: the same, or what tells the structure
    shares: Tensor  # (kinds,): of the classes
    words: str  # how it was chosen

    @property
    def family(self) -> Family:
        """The graph and the meaning of the parameters."""
        return self.found.family

    @property
    def theta(self) -> Tensor:
        """The parameters, (size,) float64."""
        return self.found.theta

    @property
    def laws(self) -> ExactLaws:
        """How its sums are done."""
        return self.found.laws

    @property
    def graph(self) -> np.ndarray:
        """The pairs that interact, (pairs, 2), i < j."""
        return self.family.edges

    @property
    def mean_log_likelihood(self) -> float:
        """Nats per row that it was learnt from, given the label."""
        return self.found.value

    def covariance(self) -> Tensor:
        """Return the covariance of the estimated parameters given the graph, (size, size)."""
        return self.found.covariance()

    def interactions(self, kind: int = 0) -> Interactions:
        """Return the law of a class as fields and tables."""
        return self.family.interactions(self.theta, kind)

    def log_prob(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logarithm of the probability of rows of tokens given their labels, (n,) float64."""
        return self.found.log_prob(x, y)

    def draw(self, n: int, kind: int = 0, *, seed: int) -> Tensor:
        """Draw independent rows of a class, (n, sites) tokens."""
        return self.found.solved[kind].draw(n, np.random.default_rng(seed))


@dataclass(frozen=True)
class Declined:
    """Why no energy was learnt."""

    reason: str


def learn(
    rows: Rows,
    space: Space,
    *,
    classes: int = 0,
    graph: np.ndarray | None = None,
    held: Rows | None = None,
    device: torch.device | None = None,
    seed: int = 0,
    work: Work | None = None,
) -> Learnt | Declined:
    """Learn an energy from rows, on a ``graph`` of pairs (pairs, 2) if it is known, or say why there is none.

    >>> import torch
    >>> from neurise.rows import Rows
    >>> from neurise.space import Space
    >>> x = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25, dtype=torch.uint8)
    >>> learnt = learn(Rows(x), Space(3, 2))
    >>> learnt.graph.tolist()
    [[0, 1]]
    """
    obstacle = _obstacle(rows, space, graph is None)
    if obstacle:
        return Declined(obstacle)
    aim = Aim.of(replace(rows, fold=None, stream=None), classes)
    setting = Setting(space, classes, device, seed, work or Work())
    if graph is None:
        name, found = choose(aim, setting, held)
    else:
        name, one = GIVEN, given(aim, setting, graph)
        found = {} if one is None else {GIVEN: one}
    if not found:
        return Declined(f"too many pairs of sites interact: sums over all {space.count} configurations cannot be done")
    chosen = found[name]
    words = (
        f"maximum likelihood on {len(chosen.family.edges)} of {space.sites * (space.sites - 1) // 2} pairs "
        f"{name}, {chosen.family.size} parameters"
    )
    return Learnt(chosen, found.get(GRAPH, chosen), aim.shares, words)


def _obstacle(rows: Rows, space: Space, search: bool) -> str:
    """Say what stands in the way from the start; nothing is the empty text."""
    if rows.missing is not None:
        return "rows have gaps"
    if len(rows) < 2:
        return "there are fewer than two rows"
    columns = sum(space.digits) - space.sites
    if search and columns > MOST_REGRESSED:
        return f"there are {columns} numbers in a row, and the limit is {MOST_REGRESSED}"
    return ""
