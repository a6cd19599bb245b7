r"""Effective temperature of an annealer: learnt couplings against programmed ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neurise import shown
from neurise.dataset import Dataset

ZERO = 1e-9
"""Couplings that are smaller than this share of the strongest are 0, but for rounding."""
MOST_UNSEEN = 0.1
"""The share of programmed couplings that may be missing without a warning."""


@dataclass(frozen=True)
class Temperature:
    """The slope β of learnt against programmed couplings, and what follows from it.

    >>> import neurise, numpy as np
    >>> learnt, errors = np.array([[0, 0.5], [0.5, 0]]), np.full((2, 2), 0.1)
    >>> found = neurise.structure.effective_temperature(learnt, errors, np.array([[0, 1.0], [1.0, 0]]))
    >>> found.slope, found.pairs
    (0.5, 1)
    """

    slope: float  # an inverse temperature
    error: float  # standard error of the slope, of which the scatter about the line is a part
    scatter: float  # root of χ² per degree of freedom: 1 where errors alone scatter the couplings
    pairs: int  # couplings that it was found from

    def __repr__(self) -> str:
        return shown.record(self)

    @property
    def value(self) -> float:
        """Effective temperature, 1/β, in units of the programmed couplings."""
        return 1 / self.slope if self.slope else math.inf

    @property
    def value_error(self) -> float:
        """Standard error of the temperature."""
        return self.error / self.slope**2 if self.slope else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's types."""
        return {**asdict(self), "temperature": self.value, "temperature_error": self.value_error}


def effective_temperature(
    couplings: np.ndarray, errors: np.ndarray, programmed: Any, *, labels: Sequence[Hashable] | None = None
) -> Temperature:
    r"""Fit :math:`J^\text{learnt}_{ij} = \beta J^\text{programmed}_{ij}` over the pairs that were programmed.

    .. math:: \beta = \frac{\sum w_{ij} J_{ij} \tilde J_{ij}}{\sum w_{ij} \tilde J_{ij}^2}, \qquad
       \operatorname{var} \beta = \frac{\max(1, \chi^2/(n-1))}{\sum w_{ij} \tilde J_{ij}^2}, \qquad w = 1/\sigma^2.

    Where the couplings lie further from the line than their errors allow, the error of β grows with the scatter: a machine has
    biases of its own, and a learnt model has others.

    Args:
        couplings: learnt ones, (sites, sites).
        errors: their standard errors, (sites, sites); a pair without a finite positive one is left out.
        programmed: a data set with ``edges`` and ``couplings``, a symmetric (sites, sites) matrix, or ``{(i, j): J}``; in the
            sign of :math:`\mu \propto \exp(\sum J\sigma\sigma)`, which is the opposite of a machine's E = Σ J s s.
        labels: what a dictionary calls the sites; by default 0, 1, ….

    >>> import neurise, numpy as np
    >>> learnt, errors = np.array([[0, 0.5], [0.5, 0]]), np.full((2, 2), 0.1)
    >>> found = neurise.structure.effective_temperature(learnt, errors, np.array([[0, 1.0], [1.0, 0]]))
    >>> found.slope, found.pairs
    (0.5, 1)
    """
    told = programmed_matrix(programmed, len(couplings), labels)
    usable = np.triu(np.isfinite(couplings) & np.isfinite(errors) & (errors > 0) & (told != 0), 1)
    count = int(usable.sum())
    if not count:
        raise ValueError(
            f"none of the {int(np.triu(told != 0, 1).sum())} programmed couplings was learnt with an error, so that there is "
            "nothing to take a temperature from"
        )
    x, y, weight = told[usable], couplings[usable], 1 / errors[usable] ** 2
    whole = int(np.triu(told != 0, 1).sum())
    unseen = whole - count + int((np.abs(y) <= ZERO * np.abs(y).max()).sum())
    if unseen > MOST_UNSEEN * whole:
        warnings.warn(
            f"{unseen:,} of {whole:,} programmed couplings were not learnt: they are 0, or have no error. Those that were are "
            "the stronger ones, so that the slope is biased; learn on the graph of the programmed couplings "
            "(NeurISE(graph=…), Pairwise(edges=…)), or from more reads",
            stacklevel=2,
        )
    power = float((weight * x * x).sum())
    slope = float((weight * x * y).sum()) / power
    chi_square = float((weight * (y - slope * x) ** 2).sum())
    scatter = math.sqrt(chi_square / (count - 1)) if count > 1 else math.nan
    widened = scatter if scatter > 1 else 1.0  # NaN is not: one pair says nothing about scatter
    return Temperature(slope, widened / math.sqrt(power), scatter, count)


def programmed_matrix(programmed: Any, sites: int, labels: Sequence[Hashable] | None = None) -> np.ndarray:
    """Return programmed couplings as a symmetric matrix, (sites, sites); a pair that is there twice adds up."""
    matrix = np.zeros((sites, sites))
    if isinstance(programmed, Dataset):
        if programmed.edges is None or programmed.couplings is None:
            raise ValueError(f"{programmed.name} has no couplings; programmed must have some")
        if programmed.space.sites != sites:
            raise ValueError(f"{programmed.name} has {programmed.space.sites} sites; the structure has {sites}")
        for (i, j), value in zip(programmed.edges.tolist(), np.asarray(programmed.couplings).tolist(), strict=True):
            matrix[i, j] += value
            matrix[j, i] += value
        return matrix
    if isinstance(programmed, Mapping):
        place = {label: site for site, label in enumerate(range(sites) if labels is None else labels)}
        for pair, value in programmed.items():
            if not isinstance(pair, tuple) or len(pair) != 2 or any(end not in place for end in pair):
                known = ", ".join(map(str, list(place)[:5])) + (", …" if sites > 5 else "")
                raise ValueError(f"programmed has the key {pair!r}; keys are pairs of the sites {known}")
            i, j = (place[end] for end in pair)
            if i == j or not np.isfinite(value):
                raise ValueError(f"programmed has {value!r} at {pair!r}; a finite number between two sites is needed")
            matrix[i, j] += float(value)
            matrix[j, i] += float(value)
        return matrix
    try:
        given = np.asarray(programmed, dtype=float)
    except (TypeError, ValueError) as error:
        kind = type(programmed).__name__
        raise ValueError(f"programmed must be a data set, a matrix or a dictionary by pairs, got {kind}") from error
    if given.shape != (sites, sites) or not np.isfinite(given).all() or not np.array_equal(given, given.T):
        raise ValueError(
            f"programmed must be a symmetric matrix of ({sites}, {sites}) numbers; its shape is {given.shape}"
        )
    return given
