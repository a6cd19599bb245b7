"""Open models and data for the page, and ``neurise.play`` for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.loading import load
from neurise.modeling.model import Model
from neurise.player import references
from neurise.player.server import Page, serve
from neurise.player.stage import Actor, Stage

FRAMES = "'self' http://localhost:* http://127.0.0.1:*"
"""Pages that may show this one inside: notebooks of this machine."""


def play(
    model: Model | Sequence[Model] | Mapping[str, Model],
    data: Any = None,
    *,
    layout: str | None = None,
    port: int = 0,
    height: int = 720,
) -> Any:
    """Show a local page to watch the model sample, hold sites, compare models and score rows.

    ``model`` is a fitted model, several of the same rows, or a dict of them by name; ``data`` are rows (N, sites) or a data
    set. In a notebook the page appears below the cell; elsewhere the page that is returned has a ``url``. Either way it is
    served by this process until ``stop()``, and to this machine alone.

    >>> import neurise
    >>> page = neurise.play(neurise.Independent().fit([[0, 1], [1, 0]]), [[0, 1], [1, 0]])
    >>> page.url.startswith('http://127.0.0.1')
    True
    >>> page.stop()
    """
    stage = stage_of(model, data, layout=layout)
    page = serve(stage, port=port, frames=FRAMES)
    return NotebookPage(page, height)


def stage_of(model: Any, data: Any = None, *, layout: str | None = None, source: str = "") -> Stage:
    """Put models and data together."""
    named = model if isinstance(model, Mapping) else _named([model] if isinstance(model, Model) else list(model))
    if not named:
        raise ValueError("there is no model to show")
    for name, one in named.items():
        if not isinstance(one, Model):
            raise ValueError(
                f"{name} is a {type(one).__name__}, and not a model; fit one, or load it with neurise.load"
            )
        if not one.__sklearn_is_fitted__():
            raise ValueError(f"{name} is not fitted yet; call fit(X) first")
    if data is not None and not isinstance(data, Dataset):
        first = next(iter(named.values()))
        rows = np.asarray(data)
        first.schema_.encode(data)  # an error that shows the first wrong symbol
        data = Dataset("data", first.space_, np.unique(rows), train=rows)
    actors = [Actor(str(name), one) for name, one in named.items()]
    return Stage(actors, data, " and ".join(map(str, named)), layout, source=source)


def opened(models: Sequence[str], data: Dataset | None, *, layout: str | None, device: str | None = None) -> Stage:
    """Open folders of models, or those that are shipped, by their names."""
    if len(models) == 1 and not Path(models[0]).exists() and models[0] in references.names():
        return shipped(models[0], data, layout=layout, device=device)
    if not models:
        return shipped(references.FIRST, data, layout=layout, device=device)
    for path in models:
        if not Path(path).exists():
            known = ", ".join(references.names())
            raise FileNotFoundError(f"there is no model at {path}; the shipped ones are: {known}")
    names = _distinct([Path(path).resolve().name for path in models])
    named = {name: load(path, device) for name, path in zip(names, models, strict=True)}
    return stage_of(named, data, layout=layout, source=f"neurise.load({str(models[0])!r})")


def shipped(name: str, data: Dataset | None, *, layout: str | None, device: str | None = None) -> Stage:
    """Open a shipped model with its peers and, where they need no download, the rows that it learnt from."""
    reference = references.find(name)
    if data is None:
        data = references.rows_of(reference)
    actors = [Actor(path.name, load(path, device)) for path in reference.models]
    source = f"neurise.load(neurise.player.references.FOLDER / {name!r} / 'neurise')"
    return Stage(actors, data, reference.title, layout, reference.shape, source=source)


def _named(models: list[Model]) -> dict[str, Model]:
    names = _distinct([type(model).__name__.lower() for model in models])
    return dict(zip(names, models, strict=True))


def _distinct(names: list[str]) -> list[str]:
    """Number names that occur again."""
    return [name if names.index(name) == place else f"{name}_{place + 1}" for place, name in enumerate(names)]


class NotebookPage:
    """A page that a notebook shows below the cell."""

    def __init__(self, page: Page, height: int) -> None:
        self.page, self.height = page, height

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return self.page.url

    def stop(self) -> None:
        """End the server of the page."""
        self.page.stop()

    def __repr__(self) -> str:
        return f"<page at {self.url}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="{int(self.height)}" style="border: 0"></iframe>'
