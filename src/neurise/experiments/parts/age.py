"""Which rows the code that there is now would make again, and which are older than it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from neurise import experiments
from neurise.experiments._code import is_current
from neurise.experiments.store import Row

CURRENT, OLDER, UNKNOWN = "by the code of this version", "by other code", "by code that is not here"
WORDS = {True: CURRENT, False: OLDER, None: UNKNOWN}


class Age(NamedTuple):
    """How many rows of a method of an experiment at a scale the code that there is now made, and how many it did not."""

    experiment: str
    scale: str
    method: str | None
    current: int
    older: int
    unknown: int  # rows of experiments, or of models from outside, that are not here


def ages(rows: Iterable[Row]) -> list[Age]:
    """Count the rows of each experiment, scale and method by the code that made them."""
    counts: dict[tuple[str, str, Any], list[int]] = {}
    for row in rows:
        line = counts.setdefault((row["experiment"], row["scale"], row["parameters"].get("method")), [0, 0, 0])
        line[list(WORDS.values()).index(_made(row))] += 1
    return [Age(*key, *line) for key, line in counts.items()]


def by_code(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Split rows by experiment, by scale, and by whether the code that there is now made them."""
    parts: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((row["experiment"], row["scale"], _made(row)), []).append(row)
    return parts


def _made(row: Row) -> str:
    known = row["experiment"] in experiments.names()
    return WORDS[is_current(experiments.find(row["experiment"]), row) if known else None]
