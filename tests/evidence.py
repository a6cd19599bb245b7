"""Numbers in a text that say which committed file they come from, and whether they are the numbers of that file.

A comment holds for the last numbers before it on its line, one for each figure that it names::

    | by default | 17.42 ± 0.05 | 1.73 <!-- drift.json where form=default: mean nll, sd nll, mean over_floor --> |

The file lies in ``benchmarks/measured``, or is a path from the root of the project; a results file (``.jsonl``) works too.
``where`` chooses rows by their fields, several with commas. A figure is mean, sd, median, min, max or count of a field over
these rows, ``the`` field of the only one, or the ``ratio a/b`` of the means of two fields.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks/measured"
COMMENT = re.compile(
    r"<!--\s*(?P<file>[\w./-]+\.jsonl?)(?:\s+where\s+(?P<where>[^:]+?))?\s*:\s*(?P<figures>[^>]+?)\s*-->"
)
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?(?:×10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?")
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "sd": statistics.stdev,
    "median": statistics.median,
    "min": min,
    "max": max,
    "count": len,
}
FEWEST_SEEDS = 3


class Claim(NamedTuple):
    """A number as it is printed, and the figure of a file that it claims to be."""

    line: int
    text: str
    file: str
    where: str
    figure: str


def claims(text: str) -> Iterator[Claim]:
    """Find the numbers of a text that name their file."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in COMMENT.finditer(line):
            figures = [part.strip() for part in found["figures"].split(",")]
            before = [m[0] for m in NUMBER.finditer(re.sub(r"<!--.*?-->", "", line[: found.start()]))]
            for place, figure in enumerate(figures, len(before) - len(figures)):
                shown = before[place] if place >= 0 else "nothing"
                yield Claim(number, shown, found["file"], found["where"] or "", figure)


def complaint(claim: Claim) -> str | None:
    """Say what is wrong with a claim; None where the number is that of the file, to the digits that are printed."""
    place = f"line {claim.line}: {claim.text} is said to be {claim.figure} of {claim.file}"
    path = ROOT / claim.file if "/" in claim.file else MEASURED / claim.file
    if not path.is_file():
        return f"{place}, and there is no such file"
    rows = [row for row in rows_of(path) if _chosen(row, claim.where)]
    summary, _, field = claim.figure.partition(" ")
    if summary == "ratio":
        above, _, below = field.partition("/")
        pairs = [(row[above], row[below]) for row in rows if above in row and below in row]
        summary, values = "mean", [sum(a for a, _ in pairs) / sum(b for _, b in pairs)] if pairs else []
    else:
        values = [row[field] for row in rows if isinstance(row.get(field), int | float)]
    if not values or summary not in {*SUMMARIES, "the"} or (summary == "the" and len(values) != 1):
        return f"{place}, which has {len(rows)} rows where {claim.where or 'all'} and {len(values)} values of {field!r}"
    seeds = {row["seed"] for row in rows if "seed" in row}
    if summary == "mean" and 0 < len(seeds) < FEWEST_SEEDS:
        return f"{place}, which is of {len(seeds)} seeds; at least {FEWEST_SEEDS} are needed"
    value = values[0] if summary == "the" else SUMMARIES[summary](values)
    if claim.text == "nothing" or not _agrees(claim.text, value):
        return f"{place}, which is {value:.6g}"
    return None


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a measured file, or of a results file with all fields of a row side by side."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [
            {**row, **row["parameters"], **row["metrics"], **row["times"]} for row in lines if row["status"] == "done"
        ]
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, dict):
        lists = [entry for entry in found.values() if isinstance(entry, list) and entry and isinstance(entry[0], dict)]
        return [row for entries in lists for row in entries] or [found]
    return [row for row in found if isinstance(row, dict)]


def _chosen(row: Mapping[str, Any], where: str) -> bool:
    pairs = [part.partition("=") for part in where.split(",") if part.strip()]
    return all(str(row.get(name.strip())) == value.strip() for name, _, value in pairs)


def _agrees(text: str, value: float) -> bool:
    """Whether a printed number is a value, rounded to the digits that it has."""
    mantissa, _, power = text.partition("×10")
    scale = 10.0 ** int(power.translate(DIGITS)) if power else 1.0
    plain = mantissa.translate(DIGITS).replace(",", "")
    unit = 10.0 ** -len(plain.partition(".")[2]) if "." in plain else 1.0
    if "." not in plain and not power:  # 1,200 may be rounded to tens or hundreds
        zeros = len(plain) - len(plain.rstrip("0"))
        unit = 10.0 ** min(zeros, max(0, len(plain) - 2))
    return abs(float(plain) * scale - value) <= (0.5 + 1e-9) * unit * scale
