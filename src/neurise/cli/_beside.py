"""Numbers that ``neurise sample`` writes beside each row: how likely the model holds it, and its energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._data import resolve

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

LogProb = Annotated[
    bool,
    typer.Option(
        "--log-prob",
        help="Write the model's log-probability of each row beside it, in nats (of the chain without sweeps).",
    ),
]
Energy = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="Write the energy of each row beside it, by a data set that knows one: an annealer's file, say.",
    ),
]


def energies_of(data: str | None, model: Model) -> Dataset | None:
    """Find the data set that energies are taken from, before any row is drawn."""
    if data is None:
        return None
    known = resolve(data, rows=None)
    if known.log_weight is None:
        raise ValueError(
            f"--energy {data}: {known.name} has no known energy; one with couplings has, edwards_anderson say"
        )
    if known.space.sites != model.space_.sites:
        raise ValueError(f"--energy {data} has {known.space.sites} sites, and the model {model.space_.sites}")
    return known


def check_likelihood(model: Model) -> None:
    """Raise NotImplementedError for a model that does not know how likely a row is, before any row is drawn."""
    model.log_prob(model.sample(1, seed=0))


def beside(model: Model, rows: Any, y: Any, *, log_prob: bool, energies: Dataset | None) -> dict[str, np.ndarray]:
    """Compute what was asked for, (N,) each."""
    from neurise.alphabet import as_matrix

    found: dict[str, np.ndarray] = {}
    if log_prob:
        found["log_prob"] = model.log_prob(rows, y)
    if energies is not None:
        found["energy"] = energies.energy(as_matrix(rows))
    return found
