"""The summary of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

EACH = "validation_"
"""How the score of each part is called in the record of a model whose parts were trained one after another."""


def best_scores(history: Sequence[Mapping[str, float]]) -> list[float]:
    """Return the best validation score of each part of a model, as its progress line showed it; none where nothing validates."""
    names = {name for record in history for name in record if name.startswith(EACH)} or {"validation"}
    found = [[record[name] for record in history if name in record] for name in sorted(names)]
    return [min(scores) for scores in found if scores]


class Summary(dict[str, Any]):
    """Facts by name, which print as a table of two columns."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {readable(fact)}" for name, fact in self.items())

    def __repr__(self) -> str:
        return str(self)


def readable(fact: Any) -> str:
    """Write a fact for people: thousands apart, four digits of a number that is not whole, and facts by name in one line."""
    if isinstance(fact, Mapping):
        return ", ".join(f"{name} {readable(own)}" for name, own in fact.items())
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return str(fact)
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"
