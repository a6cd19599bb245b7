"""What is on the page: models of the same rows, the data, and how they are laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from neurise import exact
from neurise._version import __version__
from neurise.columns import Columns
from neurise.dataset import Dataset
from neurise.modeling import by_tokens
from neurise.modeling.model import Model
from neurise.player.kept_rows import MOST_KEPT, KeptRows, kept_places
from neurise.player.layouts import Layout, choose

ENUMERABLE = 2**18
"""Configurations up to which laws are written out."""


@dataclass(frozen=True)
class Actor:
    """A model under the name that the page gives it."""

    name: str
    model: Model

    @cached_property
    def cannot(self) -> dict[str, str]:
        """What this model cannot do, and why."""
        found = dict[str, str]()
        trials: dict[str, Callable[[], Any]] = {
            "hold": lambda: self.model.check_clamp(by_tokens.request_of(self.model, 1, self._some_clamp(), None, 0)),
            "watch": lambda: by_tokens.begin(self.model, 1, {}, None, 0),
            "noise": lambda: by_tokens.begin_noising(self.model, np.zeros((1, self.model.space_.sites)), 0),
        }
        for what, trial in trials.items():
            try:
                trial()
            except NotImplementedError as error:
                found[what] = str(error)
        return found

    def _some_clamp(self) -> dict[int, int]:
        schema = self.model.schema_
        return {schema.order[0]: max(0, int(schema.constant[0]))}

    def exact_law(self, label: int | None) -> np.ndarray | None:
        """Return the exact law of what it samples, (p^q,), computed once; None where it cannot be written out."""
        if label not in self._laws:
            try:
                small = self.model.space_.size <= ENUMERABLE
                y = None if label is None else self.model.schema_.labels.classes[label]  # type: ignore[union-attr]
                self._laws[label] = exact.law(self.model, y).cpu().numpy() if small else None
            except (NotImplementedError, ValueError):
                self._laws[label] = None
        return self._laws[label]

    @cached_property
    def _laws(self) -> dict[int | None, np.ndarray | None]:
        return {}


@dataclass
class Stage:
    """Everything that the page shows."""

    actors: Sequence[Actor]
    data: Dataset | None = None
    title: str = ""
    asked_layout: str | None = None
    shape: tuple[int, ...] | None = None
    feed: Any = None  # a TrainingFeed while a model is trained
    source: str = ""  # the Python that opens the first model
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        if self.actors:
            self.layout = choose(self.schema, self.data, self.shape, self.asked_layout)
            for actor in self.actors[1:]:
                self._check_alike(actor)

    def _check_alike(self, actor: Actor) -> None:
        first, other = self.symbols, symbols_of(actor.model)
        if first != other:
            raise ValueError(
                f"{actor.name} was fitted to {len(other)} sites of other symbols than {self.actors[0].name} "
                f"({len(first)} sites): models are shown side by side if they know the same rows"
            )
        if labels_of(actor.model) != labels_of(self.actors[0].model):
            raise ValueError(
                f"{actor.name} was fitted to other labels than {self.actors[0].name}, or to none: models are shown side by "
                "side if they know the same ones"
            )

    @property
    def schema(self) -> Any:
        """What the models know of the data."""
        return self.actors[0].model.schema_

    @cached_property
    def symbols(self) -> list[list[str]]:
        """The symbols of every site, as they are written."""
        return symbols_of(self.actors[0].model)

    @cached_property
    def names(self) -> list[str]:
        """The names of the sites."""
        alphabet = self.schema.alphabet
        return (
            list(map(str, alphabet.names))
            if isinstance(alphabet, Columns)
            else list(map(str, range(len(self.symbols))))
        )

    def actor(self, name: Any) -> Actor:
        """Find a model by its name."""
        for actor in self.actors:
            if actor.name == name:
                return actor
        raise LookupError(
            f"there is no model {name!r} here; there are: {', '.join(actor.name for actor in self.actors)}"
        )

    @property
    def rows(self) -> np.ndarray | None:
        """Rows of the data as tokens, (N, sites), at most so many; None without data."""
        return None if self.kept is None else self.kept.rows

    @cached_property
    def kept(self) -> KeptRows | None:
        """Rows of the data with their labels, in no order, a row as often as its weight says."""
        if self.data is None:
            return None
        rows = self.data.train
        if rows is None and self.data.draw is not None:
            rows = self.data.sample(MOST_KEPT // 4, seed=0)
        if rows is None:
            return None
        weights = self.data.weights if rows is self.data.train else None
        labels = self.data.labels if rows is self.data.train else None
        places = kept_places(len(rows), weights)
        needed, again = np.unique(places, return_inverse=True)  # each is encoded once
        tokens = self.schema.encode(rows[needed]).numpy()[:, np.argsort(self.schema.order)]
        names = None if labels is None else np.asarray(labels)[places].astype(str)
        return KeptRows(tokens[again.reshape(-1)], names)

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Different rows of the data, and how often each occurs; there are data."""
        rows: Any = self.rows
        found = np.unique(rows, axis=0, return_counts=True)
        return found[0], found[1]

    @cached_property
    def truth(self) -> np.ndarray | None:
        """The true law over configurations, first site most significant, in the tokens of the models; None if unknown."""
        data = self.data
        if (
            data is None
            or data.law is None
            or self.schema.space.size > ENUMERABLE
            or data.space.size != self.schema.space.size
        ):
            return None
        pmf, known = data.pmf, [str(symbol) for symbol in data.symbols.tolist()]
        if pmf is None or not all(sorted(own) == sorted(known) for own in self.symbols):
            return None
        places = [known.index(symbol) for symbol in self.symbols[0]]
        grid = np.asarray(pmf).reshape((len(known),) * len(self.symbols))
        return grid[np.ix_(*[places] * len(self.symbols))].reshape(-1)

    def about(self) -> dict[str, Any]:
        """Describe everything in JSON's types."""
        if not self.actors:
            return {"version": __version__, "title": self.title, "training": True, "models": []}
        return {
            "version": __version__,
            "title": self.title,
            "models": [
                {
                    "name": actor.name,
                    "kind": type(actor.model).__name__,
                    "cannot": actor.cannot,
                    "likelihood": actor.model.has_likelihood,
                }
                for actor in self.actors
            ],
            "names": self.names,
            "symbols": self.symbols,
            "labels": labels_of(self.actors[0].model),
            "layout": self.layout.to_dict(),
            "data": None
            if self.data is None
            else {"name": self.data.name, "rows": 0 if self.rows is None else len(self.rows)},
            "truth": self.truth is not None,
            "couplings": self.data is not None and self.data.couplings is not None,
            "training": self.feed is not None,
            "source": self.source,
        }


def symbols_of(model: Model) -> list[list[str]]:
    """List the symbols of every site, as they are written."""
    alphabet, schema = model.schema_.alphabet, model.schema_
    if not isinstance(alphabet, Columns):
        return [list(map(str, alphabet.symbols.tolist()))] * schema.space.sites
    places = np.argsort(schema.order)
    return [
        [str(schema.symbol(int(place), token)) for token in range(size)]
        for place, size in zip(places, alphabet.sizes, strict=True)
    ]


def labels_of(model: Model) -> list[str]:
    """List the labels that a model knows, as they are written."""
    labels = model.schema_.labels
    return [] if labels is None else [str(label) for label in labels.classes.tolist()]
