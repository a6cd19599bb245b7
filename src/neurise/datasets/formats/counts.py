"""Counts of bit strings as JSON: ``{"0101": 37}``, lists of bit strings, and what quantum toolkits write around them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neurise import holdings, json_text
from neurise.holdings.bit_strings import WIDEST

READS = ("solutions", "quadratic_terms", "linear_terms", "variable_ids", "type")
"""By these one knows JSON of annealers."""


def holds_counts(path: Path) -> bool:
    """Whether a JSON file holds counts rather than an annealer's reads; a damaged one says so when it is read."""
    try:
        data = json_text.read(path)
    except ValueError:
        return False
    return not (isinstance(data, Mapping) and any(name in data for name in READS))


def read_counts(path: Path, endian: str, bits: int | None, states: int) -> dict[str, Any]:
    """Read rows and how often each was seen."""
    where = str(path)
    data, stated = _counts(json_text.read(path), where)
    try:
        held = holdings.counts(data, endian=endian, bits=stated if bits is None else bits, states=states)
    except ValueError as error:
        raise ValueError(f"{where}: {str(error).removeprefix('counts ')}") from error
    known = {"weights": held.weights, "alphabet": held.symbols}
    return {"train": held.X} | {name: part for name, part in known.items() if part is not None}


def _counts(data: Any, where: str) -> tuple[Any, int | None]:
    """Find the counts, and the number of bits where the file says it."""
    if isinstance(data, Mapping) and isinstance(results := data.get("results"), list):  # a result of Qiskit
        if len(results) != 1:
            raise ValueError(f"{where} holds {len(results)} experiments; write the counts of one of them to a file")
        inside = results[0].get("data") if isinstance(results[0], Mapping) else None
        header = results[0].get("header") if isinstance(results[0], Mapping) else None
        bits = header.get("memory_slots") if isinstance(header, Mapping) else None
        found = inside.get("counts") if isinstance(inside, Mapping) else None
        if isinstance(found, Mapping):
            return found, bits if type(bits) is int and 0 < bits <= WIDEST else None
    if isinstance(data, Mapping) and isinstance(data.get("counts"), Mapping):
        return data["counts"], None
    if isinstance(data, Mapping) and not any(isinstance(value, Mapping | list) for value in data.values()):
        return data, None
    if isinstance(data, list) and data and isinstance(data[0], str):
        return data, None
    shown = (
        f"an object with {', '.join(map(repr, list(data)[:5]))}"
        if isinstance(data, Mapping)
        else f"a {type(data).__name__}"
    )
    raise ValueError(
        f'{where} is JSON of another kind ({shown}); known are counts, {{"0101": 37}}, lists of bit strings, and an annealer\'s '
        "reads: the to_serializable() of a dimod SampleSet, the output of dwisc, and bqpjson with solutions"
    )
