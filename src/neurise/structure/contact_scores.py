r"""Pairs of sites ranked by how strongly they are coupled, as residues in contact are sought in protein families."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from neurise.structure.recovery import Structure
from neurise.structure.sources import pairs_of


@dataclass(frozen=True, eq=False)
class Contacts:
    """Pairs of sites, the most strongly coupled first, and the numbers that they are ranked by.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> ranked = neurise.structure.contacts(found)
    >>> ranked.pairs.shape, ranked.scores.shape
    ((6, 2), (4, 4))
    """

    pairs: np.ndarray  # (pairs, 2), i < j
    scores: np.ndarray  # (sites, sites) Frobenius norms with the average product taken off; NaN where nothing is known
    norms: np.ndarray  # (sites, sites) Frobenius norms themselves
    min_separation: int

    def to_dict(self) -> dict[str, Any]:
        """Give the ranked pairs in JSON's types."""
        first, second = self.pairs.T
        return {
            "min_separation": self.min_separation,
            "pairs": self.pairs.tolist(),
            "scores": self.scores[first, second].tolist(),
            "norms": self.norms[first, second].tolist(),
        }


def contacts(
    found: Structure, *, min_separation: int = 1, leave_out: Collection[Any] = (), sites: Collection[int] | None = None
) -> Contacts:
    r"""Rank pairs by the Frobenius norm of their couplings with the average-product correction (APC).

    With :math:`D_{ij}` the table of a pair in the zero-sum gauge,

    .. math:: F_{ij} = \sqrt{\textstyle\sum_{ab} D_{ij}(a, b)^2}, \qquad
       S_{ij} = F_{ij} - \frac{F_{i\cdot}\,F_{\cdot j}}{F_{\cdot\cdot}},

    a dot for the mean over the other sites, and over all pairs. The correction takes off what a site has in common with all
    others: how much it varies, and how sequences are related. Pairs that involve a site that never varies are left out.

    Args:
        found: what :func:`neurise.structure.recover` gave.
        min_separation: the least distance :math:`|i - j|` of the pairs to rank; neighbours along a sequence are trivially close.
            The correction is made of all pairs.
        leave_out: symbols that are left out of the norms (not of the gauge), the gap of an alignment say.
        sites: rank pairs of these sites only.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> neurise.structure.contacts(found).pairs.shape            # ranked, the strongest first
    (6, 2)
    """
    count = len(found.tables)
    if isinstance(min_separation, bool) or min_separation != int(min_separation) or min_separation < 1:
        raise ValueError(f"min_separation must be a whole number, 1 or more, got {min_separation!r}")
    unknown = [symbol for symbol in leave_out if symbol not in found.symbols.tolist()]
    if unknown:
        raise ValueError(f"leave_out names {unknown[0]!r}, which is none of the symbols {found.symbols.tolist()[:25]}")
    chosen = np.arange(count) if sites is None else np.array(sorted(set(sites)), dtype=int)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
        raise ValueError(f"sites must be whole numbers from 0 to {count - 1}, got {list(sites or ())[:10]}")
    kept = np.array([symbol not in leave_out for symbol in found.symbols.tolist()])
    norms = np.sqrt((found.tables[..., kept, :][..., kept] ** 2).sum(axis=(-2, -1)))
    norms = np.triu(norms, 1) + np.triu(norms, 1).T  # the same to the last bit on both sides
    np.fill_diagonal(norms, np.nan)
    scores = corrected(norms)
    first, second = pairs_of(count).T
    wanted = (second - first >= min_separation) & np.isfinite(scores[first, second])
    wanted &= np.isin(first, chosen) & np.isin(second, chosen)
    first, second = first[wanted], second[wanted]
    order = np.argsort(-scores[first, second], kind="stable")
    for matrix in (norms, scores):
        np.fill_diagonal(matrix, 0.0)
    return Contacts(np.stack([first[order], second[order]], axis=1), scores, norms, int(min_separation))


def corrected(norms: np.ndarray) -> np.ndarray:
    """Take the average product off norms, (sites, sites), which are NaN on the diagonal and where nothing is known."""
    known = np.isfinite(norms)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(known, norms, 0.0).sum(axis=1) / known.sum(axis=1)
        average = np.where(known, norms, 0.0).sum() / known.sum()
        product = np.outer(means, means) / average
    return norms - np.where(average > 0, product, 0.0)
