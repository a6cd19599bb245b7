"""What is searched for: a kind of model on rows that are split once, with an equal budget for each trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from neurise import checks, devices, discovery
from neurise.dataset import Dataset
from neurise.modeling.estimator import plain
from neurise.modeling.search_space import SearchSpace
from neurise.modeling.trained import TrainedModel
from neurise.rows import digest, split
from neurise.schema import learn_schema

HELD_BACK = 0.1
"""The share of the rows that scores trials, where the data comes without validation rows."""
SCORED = 2048
"""At most so many validation rows are scored at the end of a trial."""


class Part(NamedTuple):
    """Rows with what belongs to them."""

    x: np.ndarray
    y: np.ndarray | None = None
    weights: np.ndarray | None = None

    def first(self, n: int) -> Part:
        """Return n of the rows, spread evenly over all of them."""
        index = np.unique(np.linspace(0, len(self.x) - 1, min(n, len(self.x))).round().astype(int))
        return Part(*(None if entries is None else entries[index] for entries in self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Task:
    """A search: trials differ in the parameters of ``space`` alone. The test rows of the data are not even here."""

    model: str
    fixed: Mapping[str, Any]  # parameters that no trial changes
    space: SearchSpace
    train: Part
    held: Part
    data: str  # tells data sets apart
    max_steps: int | None
    max_seconds: float | None
    seed: int
    device: str | None

    @property
    def kind(self) -> type[TrainedModel]:
        """Return the class of the model."""
        found: type[TrainedModel] = discovery.find("neurise.models", self.model)
        return found

    def identity(self) -> dict[str, Any]:
        """What two runs must share for their trials to be comparable, in JSON's types."""
        return {
            "model": self.model,
            "data": self.data,
            "fixed parameters": plain(dict(self.fixed)),
            "search space": {name: repr(domain) for name, domain in self.space.items()},
            "steps a trial": self.max_steps,
            "seconds a trial": self.max_seconds,
            "seed": self.seed,
        }

    def fit(self, model: TrainedModel, callback: Any = None) -> None:
        """Train a model of a trial, within the budget that all have."""
        model.fit(
            self.train.x,
            self.train.y,
            weights=self.train.weights,
            validation=tuple(self.held),
            seed=self.seed,
            device=self.device,
            max_steps=self.max_steps,
            max_seconds=self.max_seconds,
            verbose=False,
            callback=callback,
        )

    def score(self, model: TrainedModel, rows: int = SCORED, draws: int = 4) -> float:
        r"""Mean of :math:`-\log p(x)` over validation rows, or of a bound on it, in nats per row: lower is better.

        The score that the training loop stops by will not do here: it is the mean cross-entropy of the *noised*
        conditionals, which falls when there is less noise, whatever the samples are like. The bound counts the noise
        that is left at the start, so that it compares models of different noise. Where a model has neither likelihood nor
        bound (and no noise), the loop's score is what there is.
        """
        held = self.held.first(rows)
        try:
            nats = -model.log_prob(held.x, held.y)
        except NotImplementedError:
            try:
                nats = -model.elbo(held.x, held.y, seed=0, draws=draws).value
            except NotImplementedError:
                return min(record["validation"] for record in model.history_)
        return float(np.average(nats, weights=held.weights))


def make_task(
    data: Dataset,
    model: str,
    fixed: Mapping[str, Any] | None = None,
    *,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    device: str | None = None,
) -> Task:
    """Check what is wanted and split the data: the data's own validation rows, or a tenth of its training rows.

    A parameter in ``fixed`` is not searched.
    """
    kind, fixed = discovery.find("neurise.models", model), dict(fixed or {})
    if not issubclass(kind, TrainedModel):
        raise ValueError(f"the model {model} is counted, not trained: it has nothing to search for")
    if data.train is None:
        raise ValueError(f"{data.name} has no rows to learn from")
    limits = checks.limits(max_steps, max_seconds)
    kind().set_params(**fixed).settings(*limits)  # a wrong parameter is found now
    devices.resolve(device)
    space = {name: domain for name, domain in kind.search_space.items() if name not in fixed}
    if not space:
        raise ValueError(f"every parameter of the search space of {model} is fixed: nothing is left to search for")
    fixed.setdefault("alphabet", plain(data.symbols))  # the part that is learnt from may lack a symbol
    if limits == (None, None):
        limits = (kind().set_params(**fixed).chosen().steps, None)
    train, held, identity = _split(data, fixed, seed)
    return Task(model, fixed, space, train, held, identity, *limits, checks.seed(seed), device)


def _split(data: Dataset, fixed: Mapping[str, Any], seed: int) -> tuple[Part, Part, str]:
    own = None
    if data.validation is not None:
        own = Part(data.validation, data.validation_labels, data.validation_weights)
    schema, rows, held = learn_schema(data.train, data.labels, data.weights, own, alphabet=fixed["alphabet"])
    if own is not None:
        return Part(data.train, data.labels, data.weights), own, digest(rows, held)  # type: ignore[arg-type]
    kept, cut = split(rows, HELD_BACK, generator=torch.Generator().manual_seed(seed))
    if cut is None:
        raise ValueError(f"{data.name} has {len(rows)} rows, too few to hold some back: trials are compared by those")
    parts = []
    for part in (kept, cut):
        labels = None if part.y is None or schema.labels is None else schema.labels.classes[part.y.numpy()]
        weights = None if part.weights is None else part.weights.numpy()
        parts.append(Part(np.asarray(schema.decode(part.x)), labels, weights))
    return parts[0], parts[1], digest(kept, cut)
