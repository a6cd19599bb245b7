"""Chains as the page plays them: the start, and one small record per step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from neurise.modeling import by_tokens
from neurise.modeling.model import Model
from neurise.modeling.trajectory import Chains, probabilities
from neurise.player.wishes import Wish

MOST_CHAINS = 16
MOST_NUMBERS = 20_000_000
"""Numbers that a chain may send: sites × steps where all sites move."""
BARS = 16
"""Symbols of a law that are sent: all of them, or the likeliest."""
CHUNK = 16
"""Steps that are sent together."""


def watch(wish: Wish) -> Iterator[dict[str, Any]]:
    """Run chains and tell of every step: the reverse chain, or the forward noise of a row."""
    model, n = wish.actor.model, wish.whole("chains", 1, MOST_CHAINS, 1)
    direction = wish.word("direction", ("reverse", "forward"))
    clamp, label, seed = wish.clamp, wish.label, wish.seed
    yield {"kind": "begun"}
    if direction == "forward":
        row = wish.row if wish.fields.get("row") is not None else by_tokens.draw(model, 1, clamp, label, seed)[0]
        chains = by_tokens.begin_noising(model, np.repeat(row[None], n, 0), seed)
    else:
        chains = by_tokens.begin(model, n, clamp, label, seed)
    moved = n * chains.steps * (model.space_.sites if chains.joint else min(BARS, chains.tokens))
    if moved > MOST_NUMBERS:
        raise ValueError(f"{n} chains of {chains.steps:,} steps are too many to show; ask for fewer")
    start = by_tokens.in_columns(model, chains.start)
    yield {"kind": "start", "tokens": start.tolist(), "time": chains.time, "steps": chains.steps, "mask": chains.tokens}
    chunk = list[dict[str, Any]]()
    with torch.no_grad():
        for step in _steps(model, chains, [len(own) for own in wish.stage.symbols]):
            chunk.append(step)
            if len(chunk) == CHUNK:
                yield {"kind": "steps", "steps": chunk}
                chunk = []
    yield {"kind": "steps", "steps": chunk}


def _steps(model: Model, chains: Chains, sizes: list[int]) -> Iterator[dict[str, Any]]:
    order = np.array(model.order_)
    states = model.space_.states
    for move in chains.moves:
        if move.site is None:
            yield {"t": move.time, "all": by_tokens.in_columns(model, move.token).tolist()}
            continue
        law, places = probabilities(move.law), order[move.site.cpu().numpy()].tolist()
        yield {
            "t": move.time,
            "s": places,
            "x": move.token.tolist(),
            "p": [_bars(own, sizes[place], states) for own, place in zip(law, places, strict=True)],
        }


def _bars(law: np.ndarray, size: int, states: int) -> list[list[float]]:
    """Return (token, probability) of the likeliest symbols, in the order of the tokens.

    Tokens from ``size`` to ``states`` are symbols of other columns; what follows is the mask.
    """
    own = np.r_[:size, states : len(law)]
    tokens = own if len(own) <= BARS else np.sort(own[np.argsort(-law[own], kind="stable")[:BARS]])
    return [[int(token), round(float(law[token]), 4)] for token in tokens]
