"""How likely one row is: its log-probability, the surprise of its sites, its nearest neighbours, and what would raise it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from neurise.mutagenesis import mutations
from neurise.player.wishes import Wish
from neurise.scoring import surprise

NEAREST, CHANGES = 5, 8
MOST_CELLS = 2**20
"""Cells of the changed rows, over all labels, up to which one-site changes are tried."""


def score(wish: Wish) -> Iterator[dict[str, Any]]:
    """Tell of a row in parts, the quickest first."""
    actor, row, label = wish.actor, wish.row, wish.label
    schema, stage = actor.model.schema_, wish.stage
    X = schema.decode(torch.from_numpy(row[None])[:, list(schema.order)])
    y = None if label is None else schema.labels.classes[label : label + 1]  # type: ignore[union-attr]
    found = surprise(actor.model, X, y)
    yield {
        "kind": "score",
        "log_prob": _number(found.log_prob[0]),
        "error": None if found.error is None else _number(found.error[0]),
        "of": found.of,
        "surprise": None if found.sites is None else [_number(value) for value in found.sites[0]],
        "given": found.given,
    }
    if stage.rows is not None:
        distinct, counts = stage.distinct
        apart = (distinct != row).sum(1)
        nearest = np.argsort(apart, kind="stable")[:NEAREST]
        rows = [
            {"row": distinct[place].tolist(), "apart": int(apart[place]), "count": int(counts[place])}
            for place in nearest
        ]
        yield {"kind": "nearest", "rows": rows}
    labels = max(1, schema.classes if label is None else 1)
    cells = sum(len(own) - 1 for own in stage.symbols) * wish.sites * labels
    if cells > MOST_CELLS:
        told = "there are too many one-site changes to try them all for every label; choose a label"
        yield {"kind": "changes", "changes": [], "reason": told}
        return
    if math.isinf(float(found.log_prob[0])):
        yield {"kind": "changes", "changes": [], "reason": "the row is impossible: no change can be compared with it"}
        return
    tried = mutations(actor.model, X if hasattr(X, "columns") else X[0], None if y is None else y[0])
    best = [
        {"site": site, "token": token, "gain": _number(tried.log_ratio[site, token])}
        for site, token in tried.ranked()[:CHANGES]
    ]
    yield {"kind": "changes", "changes": best, "of": tried.of}


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
