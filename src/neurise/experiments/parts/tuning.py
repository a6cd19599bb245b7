"""What a search for settings of an experiment's methods is made on: its data, and what stays fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from neurise.experiments._methods import SETTINGS, is_model, named
from neurise.experiments._unknown import unknown
from neurise.experiments.base import Experiment

if TYPE_CHECKING:
    from neurise.dataset import Dataset


class Searched(NamedTuple):
    """Rows to search on, and for each method its name, its model and the parameters that no trial changes."""

    data: Dataset
    methods: list[tuple[str, str, dict[str, Any]]]


def searched(experiment: Experiment, scale: str, methods: Sequence[str] = (), *, rows: int, seed: int = 0) -> Searched:
    """Say what to search on. Test rows are left out of the data, so that no setting can be chosen by them."""
    if scale not in experiment.scales:
        raise unknown("scale", scale, experiment.scales)
    size = experiment.scales[scale]
    chosen = list(methods) or [name for name in experiment.methods if is_model(name) and named(name).trains]
    if not chosen:
        raise ValueError(f"{experiment.name} has no methods to search for")
    parameters = next(iter(experiment.parameters(size, chosen[:1])))
    data = experiment.rows_to_search_on({**parameters, "rows": rows}, seed)
    return Searched(data, [(name, named(name).model, _fixed(name, size.fixed)) for name in chosen])


def _fixed(method: str, given: Any) -> dict[str, Any]:
    """Collect what makes a method this method, and settings of the scale that no search space has."""
    found = named(method)
    kind: Any = found.kind
    usual, form = kind().get_params(), {} if found.form is None else getattr(kind, found.form)().get_params()
    own = {name: value for name, value in form.items() if name in kind.leaves() and value != usual.get(name)}
    leaves = {new: given[name] for name, new in SETTINGS.items() if name in given and new in kind.leaves()}
    leaves = {name: value for name, value in leaves.items() if name not in kind.search_space}
    return {**leaves, **own, **found.settings}
