"""Tables of a pairwise model by maximum likelihood."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from neurise.deadline import Work
from neurise.energies.learning import Declined, Learnt, Sampled, learn
from neurise.models._pairwise.tables import PairwiseTables
from neurise.rows import Rows
from neurise.space import Space


def maximise(
    network: PairwiseTables,
    rows: Rows,
    held: Rows | None,
    varies: np.ndarray,
    *,
    classes: int,
    known: bool,
    device: torch.device,
    seed: int,
    work: Work,
) -> list[Learnt] | list[Sampled] | Declined:
    """Give the tables their most likely values, one energy for all classes or one for each; or say why not.

    ``varies`` are the sites that are not constant, and ``known`` says that just the pairs of the network interact. Classes
    share their couplings unless own ones are worth what they cost, which only sums can tell.
    """
    space = Space.of([network.space.digits[site] for site in varies])
    here = np.searchsorted(varies, network.pairs) if known else None
    options: dict[str, Any] = {"graph": here, "device": device, "seed": seed, "work": work, "chains": True}
    own, judge = _seen(rows, varies), None if held is None else _seen(held, varies)
    shared = learn(own, space, classes=classes, held=judge, **options)
    if isinstance(shared, Declined):
        return shared
    if isinstance(shared, Sampled):
        for kind in range(max(1, classes)):
            network.adopt(kind, shared.family, shared.theta, kind, varies)
        return [shared]
    found = [shared]
    if classes > 1 and rows.y is not None and work.left():
        alone = [
            learn(_of_class(own, kind), space, held=None if judge is None else _of_class(judge, kind), **options)
            for kind in range(classes)
        ]
        separate = [one for one in alone if isinstance(one, Learnt)]
        if len(separate) == classes and sum(map(_height, separate)) > _height(shared):
            found = separate
    for kind in range(max(1, classes)):
        one = found[0] if len(found) == 1 else found[kind]
        network.adopt(kind, one.family, one.theta, kind if len(found) == 1 else 0, varies)
    return found


def _height(learnt: Learnt) -> float:
    """Return the log-likelihood of all rows less the Bayesian price of the parameters, in nats."""
    found = learnt.found
    return found.count * found.value - 0.5 * found.family.size * float(np.log(max(2.0, found.count)))


def _seen(rows: Rows, varies: np.ndarray) -> Rows:
    """Return rows of the sites that vary."""
    gaps = None if rows.missing is None else rows.missing[:, torch.from_numpy(varies)]
    return replace(rows, x=rows.x[:, torch.from_numpy(varies)], missing=gaps, fold=None, stream=None)


def _of_class(rows: Rows, kind: int) -> Rows:
    """Return the rows of a class, without their label."""
    assert rows.y is not None
    return replace(rows.take(torch.nonzero(rows.y == kind).flatten()), y=None)
