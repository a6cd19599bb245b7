"""The couplings that a model has learnt, and the true ones where they are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from neurise.player.wishes import Wish
from neurise.structure import recover
from neurise.structure.one_alphabet import check_one_alphabet
from neurise.structure.truth import true_structure

MOST_SITES = 64
"""Sites up to which all pairs are asked about: their number is the square."""
EVALUATIONS = 2**16
"""Configurations that a model is asked about."""


def couplings(wish: Wish) -> Iterator[dict[str, Any]]:
    """Tell of the couplings of a model; once for each, it is kept."""
    actor, stage = wish.actor, wish.stage
    known = vars(stage).setdefault("couplings_", {})
    if actor.name not in known:
        yield {"kind": "progress", "done": 0}
        known[actor.name] = _found(wish)
    yield {"kind": "couplings", **known[actor.name]}


def _found(wish: Wish) -> dict[str, Any]:
    model, stage, sites = wish.actor.model, wish.stage, wish.sites
    if sites > MOST_SITES:
        raise ValueError(
            f"{sites} sites have {sites * (sites - 1) // 2:,} pairs: couplings are shown up to {MOST_SITES} sites"
        )
    structure = getattr(model, "structure_", None)
    if structure is None:
        check_one_alphabet(model.schema_.alphabet)  # before rows are drawn, which may take long
        contexts = stage.data if stage.data is not None else model.sample(2000, seed=0)
        # Every context asks for the changes of all pairs.
        rows = max(4, EVALUATIONS // max(1, (sites * model.space_.states) ** 2 // 2))
        structure = recover(model, contexts, rows=rows, verbose=False)
    found = {
        "couplings": _plain(structure.couplings),
        "errors": _plain(structure.errors),
        "threshold": structure.threshold,
        "rows": structure.rows,
        "truth": None,
    }
    if stage.data is not None and stage.data.couplings is not None and stage.data.space.sites == sites:
        found["truth"] = _plain(true_structure(stage.data).couplings)
    return found


def _plain(matrix: np.ndarray) -> list[list[float | None]]:
    """Give a matrix in JSON's types; what is not known is null."""
    return [[None if not np.isfinite(value) else round(float(value), 4) for value in row] for row in matrix]
