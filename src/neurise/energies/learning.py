"""Learn a pairwise energy from rows: which pairs interact, how strongly, and how certain that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import chain_fit
from neurise.energies.chain_fit import ChainFit
from neurise.energies.choosing import GRAPH, Setting, choose, given
from neurise.energies.family import Family
from neurise.energies.maximum_likelihood import Aim, Fit
from neurise.energies.solved import ExactLaws
from neurise.interactions import Interactions
from neurise.rows import Rows
from neurise.space import Space

GIVEN = "that were given"
MOST_REGRESSED = 300
"""Columns up to which every site is regressed on all others at once."""
MOST_NUMBERS = 100
"""Couplings of a pair up to which a graph is looked for: no pair alone is worth more of them."""


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
class Sampled:
    """An energy whose moments Markov chains have matched: its sum over all configurations is not known."""

    found: ChainFit
    words: str  # how it was chosen

    @property
    def family(self) -> Family:
        """The graph and the meaning of the parameters."""
        return self.found.family

    @property
    def theta(self) -> Tensor:
        """The parameters, (size,) float64."""
        return self.found.theta


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
    chains: bool = False,
    judged: bool = False,
) -> Learnt | Sampled | Declined:
    """Learn an energy from rows, on a ``graph`` of pairs (pairs, 2) if it is known, or say why there is none.

    With ``chains``, Markov chains take the place of sums that cannot be done; where they do not mix there is no energy, unless
    it is ``judged`` later, by rows held back.

    >>> import torch
    >>> from neurise.rows import Rows
    >>> from neurise.space import Space
    >>> x = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25, dtype=torch.uint8)
    >>> learnt = learn(Rows(x), Space(3, 2))
    >>> learnt.graph.tolist()
    [[0, 1]]
    """
    if rows.missing is not None or len(rows) < 2:
        return Declined("there are fewer than two rows" if rows.missing is None else "rows have gaps")
    aim = Aim.of(replace(rows, fold=None, stream=None), classes)
    setting = Setting(space, classes, device, seed, work or Work(), chains)
    many = _too_many(space) if graph is None else ""
    found = dict[str, Fit]()
    if graph is not None:
        name, one = GIVEN, given(aim, setting, graph)
        found = {} if one is None else {GIVEN: one}
    elif not many:
        name, found = choose(aim, setting, held)
    if not found and chains:
        return _by_chains(aim, setting, graph, many, judged=judged)
    if not found:
        return Declined(
            many or f"too many pairs of sites interact: sums over all {space.count} configurations cannot be done"
        )
    chosen = found[name]
    words = (
        f"maximum likelihood on {len(chosen.family.edges)} of {space.sites * (space.sites - 1) // 2} pairs "
        f"{name}, {chosen.family.size} parameters"
    )
    return Learnt(chosen, found.get(GRAPH, chosen), aim.shares, words)


def _too_many(space: Space) -> str:
    """Say why a graph is not looked for by regressions of every site on all others; nothing is the empty text."""
    numbers = sorted(states - 1 for states in space.digits)[-2:]
    if math.prod(numbers) > MOST_NUMBERS:
        return f"the table of a pair has {math.prod(numbers)} numbers, and a graph is looked for up to {MOST_NUMBERS}"
    columns = sum(space.digits) - space.sites
    if columns > MOST_REGRESSED:
        return f"there are {columns} numbers in a row, and the limit is {MOST_REGRESSED}"
    return ""


def _by_chains(aim: Aim, setting: Setting, graph: np.ndarray | None, many: str, *, judged: bool) -> Sampled | Declined:
    """Match moments by Markov chains, on a graph that is cut from candidates if none is given.

    Chains that start at the rows have the weights of distant valleys from there. Where they do not mix, their law is still that
    of the energy within each valley, so that it is of use to who can tell how good it is.
    """
    space, rule = setting.space, setting.extended(aim)
    columns = sum(space.digits) - space.sites
    if max(columns * max(1, setting.classes), space.sites**2 // 50) > chain_fit.MOST_PARAMETERS:
        return Declined(f"rows of {space.sites} sites with {columns} numbers are too long for Markov chains")
    if graph is None:
        costs = chain_fit.information(aim, space.states) if many else aim.regressed(space.states).costs
        family = chain_fit.candidates(Family.dense(space, setting.classes), rule, costs)
    else:
        family = Family(space, graph, setting.classes)
    most = chain_fit.MOST_UNASKED if judged else chain_fit.MOST_PARAMETERS
    if family.size > most:
        return Declined(
            f"{len(family.edges)} pairs have {family.size} parameters, and Markov chains match up to {most}; "
            "a graph of fewer pairs may be given"
        )
    if graph is None:
        found, name = chain_fit.select(family, aim, rule, setting.device), GRAPH
    else:
        options: dict[str, Any] = {"device": setting.device, "seed": setting.seed, "work": setting.work}
        found, name = chain_fit.fit(family, aim, prior=rule.prior, **options), GIVEN
    slow = f"the Markov chains do not mix: {'; '.join(found.problems)}" if found.problems else ""
    if slow and not judged:
        return Declined(slow)
    words = (
        f"maximum likelihood by {found.chains} Markov chains on {len(found.family.edges)} of "
        f"{space.sites * (space.sites - 1) // 2} pairs {name}, {found.family.size} parameters"
    )
    return Sampled(found, f"{words}; {slow}" if slow else words)
