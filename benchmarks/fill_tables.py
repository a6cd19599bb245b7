"""Fill the tables of the pages from measured files.

    python benchmarks/fill_tables.py                          # every page
    python benchmarks/fill_tables.py docs/evidence/speed.md   # one of them

A comment right before a table says what stands in it. Its first line names the files, its second the columns, and each other
line one row, or with ``each`` a row for every value of some fields::

    <!-- table of small_spaces.json, small_spaces_*.json
    exact total variation | 100 rows where case=* 100: {mean tv:.3f} ± {sd tv:.3f} | 1000 where case=* 1000
    five independent sites where case=product *
    GHZ where case=ghz_4 *
    -->

A cell holds the template of its column, or that of the column before where it has none, for those rows of the files that the
conditions of the table, of the column and of the row choose. It is empty where there are none. Files lie in
``benchmarks/measured``, or have a path from the root of the project. ``tests/test_evidence.py`` compares every page with what
this script would write.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "benchmarks/measured"
TABLE = re.compile(r"<!-- table of (?P<spec>(?:(?!-->).)*)-->\n(?:\|[^\n]*(?:\n|$))*", re.DOTALL)
FIGURE = re.compile(r"\{(?P<figure>[^{}:]+)(?::(?P<shape>[^{}]*))?\}")
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "sd": statistics.stdev,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": sum,
    "count": len,
}
SEEDS, FEWEST = ("seed", "instance"), 3
"""Fields that number repetitions, and how many of these, or of their combinations, a summary needs."""
Row = dict[str, Any]


class Column(NamedTuple):
    """A column that is filled: its label, which rows it is about, and what its cells look like."""

    label: str
    where: str
    template: str


def rows_of(name: str) -> list[Row]:
    """Read the rows of all files of a name; ``file`` is the name of a row's own file."""
    folder = ROOT if "/" in name else MEASURED
    paths = sorted(path for path in folder.glob(name) if path.is_file())
    if not paths:
        raise ValueError(f"there is no file {name}")
    return [{"file": path.stem, **row} for path in paths for row in _read(path)]


def chosen(rows: Sequence[Row], where: str) -> list[Row]:
    """Return the rows that have all values of ``field=value, field=value``; ``*`` stands for any characters."""
    pairs = [part.strip().partition("=") for part in where.split(",") if part.strip()]
    return [row for row in rows if all(name in row and fnmatchcase(str(row[name]), value) for name, _, value in pairs)]


def value_of(rows: Sequence[Row], figure: str, where: str = "") -> float:
    """Compute a figure: mean, sd, median, min, max, sum or count of a field, ``the`` one value, or a ``ratio a/b`` of means.

    A summary is of at least three runs of other seeds or instances, and one run of several must be named by its seed: ``where``
    are the conditions.
    """
    summary, _, field = figure.strip().partition(" ")
    if summary not in {*SUMMARIES, "the", "ratio"}:
        raise ValueError(f"{figure!r} is no figure: it must begin with the, ratio, {', '.join(SUMMARIES)}")
    above, _, below = field.partition("/") if summary == "ratio" else (field, "", field)
    rows = [row for row in rows if _number(row.get(above)) and _number(row.get(below))]
    if not rows or (summary == "the" and len(rows) != 1):
        raise ValueError(f"there are {len(rows)} values of {field!r} where {where or 'all'}")
    runs = {tuple(row[name] for name in SEEDS if name in row) for row in rows} - {()}
    if summary == "the":
        for name in (name for name in SEEDS if name in rows[0] and f"{name}=" not in where):
            raise ValueError(f"{field!r} where {where} is that of one {name}: name it, or give a mean")
    elif 0 < len(runs) < FEWEST:
        raise ValueError(f"it is of {len(runs)} seeds; at least {FEWEST} are needed")
    if summary == "ratio":
        return float(sum(row[above] for row in rows) / sum(row[below] for row in rows))
    return float(rows[0][field]) if summary == "the" else float(SUMMARIES[summary]([row[field] for row in rows]))


def shown(value: float, shape: str) -> str:
    """Write a number: shapes are those of Python, and ``,3g`` for three digits with commas."""
    if digits := re.fullmatch(r",(\d)g", shape):
        return f"{float(f'{value:.{digits[1]}g}'):,.0f}"
    text = format(value, shape)
    mantissa, _, power = text.partition("e")
    if power:
        text = f"{mantissa}·10" + str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return text.replace("-", "−").replace("%", " %")


def table_of(spec: str) -> str:
    """Make the table that a comment describes."""
    head, columns_line, *row_lines = [line.strip() for line in spec.strip().splitlines()]
    files, where = _where(head)
    source = chosen([row for name in files.split(",") for row in rows_of(name.strip())], where)
    corner, columns = _columns(columns_line)
    lines = ["| " + " | ".join([*corner, *(column.label for column in columns)]) + " |"]
    lines.append("|---" * (len(corner) + len(columns)) + "|")
    body = [row for line in row_lines for row in _rows(line, source)]
    for labels, condition in body:
        cells = [_cell(source, column, [where, column.where, condition]) for column in columns]
        if not any(cells):
            raise ValueError(f"there is nothing in {files} where {condition}")
        lines.append("| " + " | ".join([*labels, *cells]) + " |")
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """Fill the tables of a page."""

    def fill(found: re.Match[str]) -> str:
        try:
            return f"<!-- table of {found['spec']}-->\n{table_of(found['spec'])}"
        except ValueError as error:
            first = found["spec"].splitlines()[0]
            raise ValueError(f"the table of {first}: {error}") from error

    return TABLE.sub(fill, text)


def pages() -> list[Path]:
    """List the pages whose tables are filled."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _read(path: Path) -> Iterator[Row]:
    if path.suffix == ".jsonl":
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["status"] == "done":
                yield {**row, **row["parameters"], **row["metrics"], **row["times"]}
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    lists = [found] if isinstance(found, list) else list(found.values())
    rows = [row for entries in lists if isinstance(entries, list) for row in entries if isinstance(row, dict)]
    yield from map(_flat, rows or [found])


def _flat(row: Mapping[str, Any], before: str = "") -> Row:
    """Name fields inside of fields ``outer.inner``."""
    flat: Row = {}
    for name, value in row.items():
        flat |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return flat


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _where(text: str) -> tuple[str, str]:
    label, divides, where = text.rpartition(" where ")
    return (label.strip(), where.strip()) if divides else (where.strip(), "")


def _columns(line: str) -> tuple[list[str], list[Column]]:
    corner: list[str] = []
    columns: list[Column] = []
    for part in line.split(" | "):
        named, opens, template = part.partition(": {")
        label, where = _where(named)
        if not opens and not columns:
            corner.append(label)
        else:
            columns.append(Column(label, where, "{" + template.strip() if opens else columns[-1].template))
    return corner, columns


def _rows(line: str, source: Sequence[Row]) -> Iterator[tuple[list[str], str]]:
    """Yield the labels and the conditions of one row, or of a row for each value of some fields."""
    if not line.startswith("each "):
        label, where = _where(line)
        yield label.split(" | "), where
        return
    named, where = _where(line.removeprefix("each "))
    fields, before = [field.strip() for field in named.split(",")], [""]
    for values in dict.fromkeys(tuple(row.get(field) for field in fields) for row in chosen(source, where)):
        labels = [_label(value) for value in values]
        # A condition cannot hold a comma; a star in its place stands for it.
        each = [f"{field}={str(value).replace(',', '*')}" for field, value in zip(fields, values, strict=True)]
        yield (
            ["" if labels[:1] == before[:1] and len(labels) > 1 else labels[0], *labels[1:]],
            ", ".join([where, *each]),
        )
        before = labels


def _label(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _cell(source: Sequence[Row], column: Column, conditions: Sequence[str]) -> str:
    where = ", ".join(filter(None, conditions))
    rows = chosen(source, where)
    if not rows:
        return ""
    return FIGURE.sub(
        lambda found: shown(value_of(rows, found["figure"], where), found["shape"] or ""), column.template
    )


def main(names: Sequence[str]) -> None:
    """Fill the tables of some pages, or of all."""
    for page in [Path(name) for name in names] or pages():
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"filled: {page}")


if __name__ == "__main__":
    main(sys.argv[1:])
