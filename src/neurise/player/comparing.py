"""Models and data side by side: the same sites held, the same seed, and how far each is from the truth."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from neurise.modeling import by_tokens
from neurise.modeling.joint import JointModel
from neurise.player.laws import Reference, correlations, pairs_of
from neurise.player.stage import Actor
from neurise.player.wishes import Wish

SHOWN_ROWS = 12
TOP = 8
MOST_PAIRS = 600
BINS = 30
DATA = "data"
GROUP, MANY_SITES = 256, 100
"""Rows that are drawn at a time where they take long: no slice of work should."""


def compare(wish: Wish) -> Iterator[dict[str, Any]]:
    """Draw from every model that is named, and measure; a model that cannot hold sites says so."""
    stage, clamp, label, seed = wish.stage, wish.clamp, wish.label, wish.seed
    n = wish.whole("rows", 100, 20_000, 2000)
    names = wish.fields.get("models", [actor.name for actor in stage.actors])
    if not isinstance(names, list) or not 1 <= len(names) <= 8:
        raise ValueError("models must be a list of one to eight names")
    actors = [stage.actor(name) for name in names if name != DATA]
    reference = Reference(stage, clamp, label, n)
    pairs = pairs_of(wish.sites, MOST_PAIRS)
    truth = reference.correlations(pairs)
    yield {
        "kind": "reference",
        "of": reference.told,
        "floor": reference.floors(pairs, n, seed),
        "energy": reference.energies(BINS),
        "top": reference.top(TOP),
        "pairs": pairs.tolist(),
        "correlations": None if truth is None else np.round(truth, 4).tolist(),
    }
    for actor in actors:
        try:
            rows = yield from _drawn(actor, n, clamp, label, seed)
        except (NotImplementedError, ValueError) as error:
            yield {"kind": "greyed", "name": actor.name, "reason": str(error)}
            continue
        yield {"kind": "entry", "name": actor.name, **_measured(rows, reference, pairs, truth)}
        law = actor.exact_law(label)
        if law is not None:
            yield {"kind": "exact", "name": actor.name, "top": reference.probabilities(law)}
    own = reference.data_rows(n)
    if own is not None and len(own):
        yield {"kind": "entry", "name": DATA, **_measured(own, reference, pairs, truth)}
    elif stage.rows is not None:
        yield {"kind": "greyed", "name": DATA, "reason": "no row of the data holds these symbols at these sites"}


def _drawn(
    actor: Actor, n: int, clamp: dict[int, int], label: int | None, seed: int
) -> Generator[dict[str, Any], None, np.ndarray]:
    """Draw n rows as ``sample`` does; where that takes long in groups, telling of each, which count by their weights."""
    groups = list[by_tokens.Group]()
    moves_all = isinstance(actor.model, JointModel)  # hundreds of steps, each of which evaluates whole rows
    if actor.model.space_.sites <= MANY_SITES and not moves_all:
        yield {"kind": "progress", "name": actor.name, "done": 0}
        return by_tokens.draw(actor.model, n, clamp, label, seed)
    for start in range(0, n, GROUP):
        groups.append(by_tokens.group(actor.model, min(GROUP, n - start), clamp, label, seed + start))
        yield {"kind": "progress", "name": actor.name, "done": min(1.0, (start + GROUP) / n)}
    if not all(group.effective for group in groups):
        raise ValueError("the model gives what is held probability zero")
    rows = np.concatenate([group.tokens for group in groups])
    if len(groups) == 1 or not clamp:
        return rows
    log_weights = np.array([group.log_weight for group in groups])
    each = np.exp(log_weights - log_weights.max()).repeat([len(group.tokens) for group in groups])
    return rows[np.random.default_rng(seed).choice(len(rows), n, p=each / each.sum())]


def _measured(rows: np.ndarray, reference: Reference, pairs: np.ndarray, truth: np.ndarray | None) -> dict[str, Any]:
    own = correlations(rows, pairs, reference.states)
    return {
        "count": len(rows),
        "rows": rows[:SHOWN_ROWS].tolist(),
        "tv": reference.distance(rows),
        "correlations": np.round(own, 4).tolist(),
        "rms": None if truth is None else float(np.sqrt(np.mean((own - truth) ** 2))),
        "energy": reference.histogram(rows),
        "top": reference.frequencies(rows),
    }
