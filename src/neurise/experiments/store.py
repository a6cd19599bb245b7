"""The results: a file with one line per finished cell; lines are only ever added.

A line is on the disk before the next cell is counted, so that a crash loses at most what was being computed. A line that
was cut short by one, or whose fields are not what they must be, is kept in the file, left out and reported.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neurise.experiments._row_form import complaint
from neurise.files import sync_folder

if TYPE_CHECKING:
    import numpy as np

MOST_LINES = 10
"""So many lines of a file that are no rows are named, with what is wrong with them."""
FORMAT = 1
"""Raised whenever lines of an older version can no longer be read as they stand."""

BEGINNING = b'{"format": '
"""How every line begins, also one that was cut short."""
Row = dict[str, Any]


class Merged(NamedTuple):
    """How many rows were added to a file, how many it had, and which lines of which files were left out."""

    rows: int
    before: int
    left_out: dict[str, dict[int, str]]


class Contents(NamedTuple):
    """What a file holds: the last row of every cell, and why lines were left out, by their numbers."""

    rows: list[Row]
    left_out: dict[int, str]

    @property
    def damaged(self) -> list[int]:
        """The numbers of the lines that were left out."""
        return list(self.left_out)


def read(path: str | Path) -> Contents:
    """Read all rows. Of several of one cell, made by the same code, the last counts, and a finished one above a failed one.

    Lines that are damaged, or that have a field of the wrong kind, are left out, and the answer says why. A line of another
    format is refused.
    """
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(
            f"there is no results file {place}; `neurise experiment run NAME --results {place}` makes one"
        )
    found: dict[tuple[str, ...], Row] = {}
    left_out, foreign = dict[int, str](), 0
    with place.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            row = _parsed(line, f"{place}, line {number}")
            if isinstance(row, str):
                left_out[number] = row
                foreign += not line.startswith(BEGINNING[: len(line.strip())])
                continue
            identity = _identity(row)
            if row["status"] == "done" or identity not in found or found[identity]["status"] != "done":
                found.pop(identity, None)
                found[identity] = row
    if foreign and not found:  # lines that were cut short are a results file's own
        number, why = next(iter(left_out.items()))
        raise ValueError(f"{place} is no results file of neurise: none of its lines is a result; line {number}: {why}")
    return Contents(list(found.values()), left_out)


def told(path: str | Path, left_out: Mapping[int, str]) -> list[str]:
    """Describe the lines of a file that were left out, and why; of many, only the first."""
    lines = [f"{path}, line {number} was left out: {why}" for number, why in list(left_out.items())[:MOST_LINES]]
    more = len(left_out) - MOST_LINES
    return lines + ([f"{path}: {more:,} more {'line was' if more == 1 else 'lines were'} left out"] if more > 0 else [])


def append(path: str | Path, rows: Sequence[Row]) -> None:
    """Add rows as one write, and wait until they are on the disk. Other processes that add to the file wait meanwhile."""
    import fcntl

    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(_plain(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
    with place.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":  # a crash cut a line short: it stays as it is, and nothing is joined to it
                lines = b"\n" + lines
        try:
            written = file.write(lines)
            if written != len(lines):
                raise OSError(f"{place}: only {written} of {len(lines)} bytes could be written; is the disk full?")
            os.fsync(file.fileno())
            if not end:
                sync_folder(place.parent)  # the file is new
        except OSError:
            file.truncate(end)  # rows that are not safe are not there: they will be computed again
            raise


def merge(paths: Sequence[str | Path], into: str | Path) -> Merged:
    """Add the rows of several files to one, each once; of one cell, a finished row is added to a failed one."""
    there = read(into).rows if Path(into).exists() else []
    known = {(_identity(row), row["status"]) for row in there}
    added: list[Row] = []
    left_out: dict[str, dict[int, str]] = {}
    for path in paths:
        contents = read(path)
        if contents.left_out:
            left_out[str(path)] = contents.left_out
        for row in contents.rows:
            same = {(_identity(row), "done"), (_identity(row), row["status"])}
            if not same & known:
                known.add((_identity(row), row["status"]))
                added.append(row)
    if added:
        append(into, added)
    return Merged(len(added), len(there), left_out)


def value(row: Mapping[str, Any], name: str) -> Any:
    """Return a metric, time, parameter or field of a row by its name; None if there is none."""
    for part in (row["metrics"], row["times"], row["parameters"], row):
        if name in part:
            return part[name]
    return None


def pack(array: np.ndarray) -> dict[str, Any]:
    """Write an array of zeros and ones as text."""
    import numpy as np

    bits = np.asarray(array)
    if not np.isin(bits, (0, 1)).all():
        raise ValueError("only arrays of zeros and ones are packed")
    return {"shape": list(bits.shape), "bits": base64.b64encode(np.packbits(bits.astype(np.uint8)).tobytes()).decode()}


def unpack(packed: Mapping[str, Any]) -> np.ndarray:
    """Undo :func:`pack`."""
    import numpy as np

    shape = tuple(packed["shape"])
    raw = np.frombuffer(base64.b64decode(packed["bits"]), dtype=np.uint8)
    return np.unpackbits(raw, count=math.prod(shape)).reshape(shape)


def _identity(row: Row) -> tuple[str, ...]:
    return row["key"], row["unit"], row["code"]["digest"]


def _parsed(line: bytes, place: str) -> Row | str:
    """Read one line; of one that is no row, say why."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "it is no JSON, as a line that was cut short"
    if not isinstance(row, dict) or "format" not in row:
        return "it is no result: it has no format"
    made = row["format"]
    if not isinstance(made, int) or isinstance(made, bool):
        return "format must be a whole number"
    if made != FORMAT:
        raise ValueError(
            f"{place} has format {made}, and this version of neurise reads format {FORMAT}; give another file, "
            "or use the version that wrote it"
        )
    return complaint(row) or row


def _plain(value: Any) -> Any:
    """Give JSON's types: what is infinite or not a number becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
