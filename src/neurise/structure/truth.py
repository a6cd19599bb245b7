"""Recovered couplings against the true ones: edges, signs, sizes, and the receiver operating characteristic."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from neurise.dataset import Dataset
from neurise.interactions import Interactions
from neurise.structure.gauge import couplings_of, scores_of, zero_sum
from neurise.structure.recovery import Structure


class Roc(NamedTuple):
    """Share of false and of true positives as the threshold falls, from (0, 0) to (1, 1), and the area under the curve.

    >>> import neurise
    >>> found = neurise.structure.roc([0.9, 0.1, 0.8], [True, True, False])
    >>> found.area, found.true_positive.tolist()
    (0.5, [0.0, 0.5, 0.5, 1.0])
    """

    false_positive: np.ndarray
    true_positive: np.ndarray
    area: float


class Truth(NamedTuple):
    """A known pairwise law in the conventions of :class:`Structure`."""

    couplings: np.ndarray  # (sites, sites)
    scores: np.ndarray  # (sites, sites)
    fields: np.ndarray  # (sites,) for two states, else (sites, states)


@dataclass(frozen=True)
class Comparison:
    """How much of the true structure was recovered. Pairs without a recovered coupling are left out, and counted.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> neurise.structure.compare(found, data).wrong_signs
    ()
    """

    pairs: int
    undefined: int
    true_edges: int
    found_edges: int
    missed: tuple[tuple[int, int], ...]
    false: tuple[tuple[int, int], ...]
    wrong_signs: tuple[tuple[int, int], ...]
    area: float
    """Area under the ROC curve of the scores; NaN where all pairs or none are edges."""
    rms: float
    """Root mean square error of the couplings, over all pairs."""
    rms_edges: float
    """The same over the true edges."""
    slope: float
    """Least-squares factor from the true couplings to the recovered ones, an inverse temperature where that is unknown."""
    rms_fields: float

    @property
    def perfect(self) -> bool:
        """Whether every true edge was found with its sign, and no other."""
        return not (self.missed or self.false or self.wrong_signs or self.undefined)

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's types."""
        plain = {
            key: [list(pair) for pair in value] if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }
        return {**plain, "perfect": self.perfect}


def roc(scores: Any, positive: Any) -> Roc:
    r"""Receiver operating characteristic of scores, (n,), for finding what is ``positive``, (n,) booleans.

    Equal scores fall together, so the area is the probability that a positive scores higher than a negative, a tie counting
    half.

    >>> import neurise
    >>> neurise.structure.roc([0.9, 0.8, 0.1], [True, True, False]).area
    1.0
    """
    values, labels = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    if values.ndim != 1 or values.shape != labels.shape:
        raise ValueError(
            f"scores and positive must be two vectors of one length; got {values.shape} and {labels.shape}"
        )
    if np.isnan(values).any():
        raise ValueError(f"scores has a NaN at index {int(np.isnan(values).argmax())}; leave out what has no score")
    order = np.argsort(-values, kind="stable")
    last_of_equals = np.append(np.diff(values[order]) != 0, True) if len(values) else np.array([], dtype=bool)
    found = np.append(0, labels[order].cumsum()[last_of_equals])
    mistaken = np.append(0, (~labels[order]).cumsum()[last_of_equals])
    if not found[-1] or not mistaken[-1]:
        return Roc(mistaken / max(mistaken[-1], 1), found / max(found[-1], 1), float("nan"))
    fpr, tpr = mistaken / mistaken[-1], found / found[-1]
    return Roc(fpr, tpr, float((np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2).sum()))


def true_structure(data: Dataset) -> Truth:
    """Bring the couplings and fields of a data set into the zero-sum gauge; a pair that is there twice adds up."""
    if data.edges is None or data.couplings is None:
        raise ValueError(f"the couplings of {data.name} are not known, so there is nothing to compare with")
    sites, states = data.space.sites, data.space.states
    fields = np.zeros(sites) if data.fields is None else np.asarray(data.fields, dtype=float)
    if fields.ndim == 1 and states != 2:
        raise ValueError(f"{data.name} has {states} states and fields for spins; its couplings cannot be compared")
    make = Interactions.ising if fields.ndim == 1 else Interactions.potts
    model = make(data.edges, np.asarray(data.couplings, dtype=float), fields)
    tables = zero_sum(model.tables)
    couplings, scores = np.zeros((sites, sites)), np.zeros((sites, sites))
    for matrix, values in ((couplings, couplings_of(tables)), (scores, scores_of(tables))):
        first, second = model.edges.T
        matrix[first, second] = matrix[second, first] = values
    centred = model.fields - model.fields.mean(axis=1, keepdims=True)
    return Truth(couplings, scores, centred[:, 1] if states == 2 else centred)


def compare(structure: Structure, data: Dataset) -> Comparison:
    """Compare a recovered structure with the couplings and fields of a data set.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> neurise.structure.compare(found, data).true_edges
    3
    """
    truth = true_structure(data)
    if structure.scores.shape != truth.scores.shape or structure.states != data.space.states:
        raise ValueError(
            f"the structure has {len(structure.scores)} sites of {structure.states} states; {data.name} has "
            f"{data.space.sites} of {data.space.states}"
        )
    first, second = np.triu_indices(len(truth.scores), 1)
    known = np.isfinite(structure.scores[first, second])
    first, second = first[known], second[known]
    edge, found = truth.scores[first, second] > 0, structure.adjacency[first, second]
    true, recovered = truth.couplings[first, second], structure.couplings[first, second]
    power = float((true**2).sum())

    def listed(which: np.ndarray) -> tuple[tuple[int, int], ...]:
        return tuple(zip(first[which].tolist(), second[which].tolist(), strict=True))

    return Comparison(
        pairs=len(first),
        undefined=int((~known).sum()),
        true_edges=int(edge.sum()),
        found_edges=int(found.sum()),
        missed=listed(edge & ~found),
        false=listed(found & ~edge),
        wrong_signs=listed(edge & (true * recovered < 0)),
        area=roc(structure.scores[first, second], edge).area,
        rms=_rms(recovered - true),
        rms_edges=_rms((recovered - true)[edge]),
        slope=float((true * recovered).sum()) / power if power else float("nan"),
        rms_fields=_rms((structure.fields - truth.fields)[np.isfinite(structure.fields)]),
    )


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt((errors**2).mean())) if errors.size else float("nan")
