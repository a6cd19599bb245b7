r"""Networks that an energy teaches: rows drawn from it are mixed into those that they learn from.

With rows of the mass M and a share s, the rows that are drawn weigh :math:`M s / (1 - s)`, so that networks learn the law

.. math:: (1 - s)\, \hat\mu + s\, \mu_\theta ,

of the empirical law of the data and the law of the energy. A short run with each share tells, by rows held back, which
is best; it is 0 unless another is clearly better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.modeling.solving.base import Teacher
from neurise.modeling.weighing import ERRORS, Judges
from neurise.rows import MOST_FOLDS, Rows

SHARES = (0.5, 0.9)
"""Shares that are tried beside none."""
ROWS, TOKENS = 50_000, 2**25
"""Rows that are drawn, and tokens of all of them at most."""
FOLD = MOST_FOLDS - 1
"""The fold of rows that were drawn: no member of a committee is kept from them."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """Rows of a teacher, and their share of what is learnt from."""

    rows: Rows
    share: float

    def mixed_into(self, rows: Rows, folds: int) -> Rows:
        """Mix them into rows; where these have so many folds, each member of a committee learns from all but one of them."""
        mass = torch.ones(len(rows), dtype=torch.float64) if rows.weights is None else rows.weights.double()
        taught = self.rows.to(rows.x.device)
        assert taught.weights is not None
        total = float(mass.sum()) * self.share / (1 - self.share)
        if folds:
            total *= (folds - 1) / folds
        weights = torch.cat([mass.to(rows.x.device), total * taught.weights])
        x = torch.cat([rows.x, taught.x.to(rows.x.dtype)])
        y = None if rows.y is None or taught.y is None else torch.cat([rows.y, taught.y.to(rows.y.dtype)])
        fold = None
        if rows.fold is not None:
            fold = torch.cat([rows.fold, torch.full((len(taught),), FOLD, dtype=torch.uint8, device=rows.x.device)])
        return replace(rows, x=x, y=y, weights=weights, fold=fold)


def name_of(share: float, networks: str) -> str:
    """Return what networks are called that are taught in this share."""
    return f"{networks} taught in {share:.0%} of their rows" if share else networks


def best(judges: Judges, answers: Mapping[float, Tensor]) -> float:
    """Return the share whose networks know rows held back best; 0 unless another is better by two standard errors."""
    scores = {share: judges.scores(own) for share, own in answers.items()}
    found = min(scores, key=lambda share: judges.mean_and_error(scores[share])[0])
    return 0.0 if 0.0 in scores and judges.is_as_good(scores[0.0], scores[found], ERRORS) else found


class Kind(NamedTuple):
    """Networks that learn from the rows alone, or that are taught besides."""

    name: str
    lessons: Lessons | None = None


def kinds(networks: str, teachers: Mapping[str, Teacher], sites: int, seed: int, work: Work) -> list[Kind]:
    """Draw rows of the first teacher, and return the networks that learn from them in each share."""
    if not work.left():
        return []
    rows = next(iter(teachers.values())).draw(max(1, min(ROWS, TOKENS // sites)), seed, work)
    return [Kind(name_of(share, networks), Lessons(rows, share)) for share in SHARES]


def told(teachers: Mapping[str, Teacher], chosen: Kind) -> dict[str, str]:
    """Say what came of each teacher."""
    why = "it teaches the networks nothing that held-back rows ask for"
    if chosen.lessons is not None:
        why = f"it teaches the networks: {chosen.lessons.share:.0%} of what they learn from are rows drawn from it"
    return {name: f"{own.words}; too many sums for conditionals of its own: {why}" for name, own in teachers.items()}
