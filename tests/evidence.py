"""Numbers of the pages: which committed file they come from, whether they are the numbers of that file, and which name none.

A comment holds for the last numbers before it in its paragraph or row, one for each figure that it names::

    | by default | 17.42 ± 0.05 | 1.73 <!-- drift.json where form=default: mean nll, sd nll, mean over_floor --> |

Files, conditions and figures are those of ``benchmarks/fill_tables.py``, which fills whole tables.

A number *looks measured* if it has a decimal point or a negative power of ten, or stands beside ±, ×, a per cent sign or a unit.
Such a number has to be covered by a comment, or stand in a table that is filled. In a table of a page of evidence every number
has to, except in the head and the first column. What is not measured says so, and why::

    <!-- not measured 0.4: a constant of the formula -->          these numbers, in the paragraph or row that it stands in
    <!-- not measured: settings, compared with the code -->       all numbers of the table that follows

The value of a setting, as in γ = 0.75, needs no comment, and neither does code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import fill_tables  # noqa: E402

CLAIM = re.compile(
    r"<!--\s*(?P<file>[\w./-]+\.jsonl?)(?:\s+where\s+(?P<where>[^:]+?))?\s*:\s*(?P<figures>[^>]+?)\s*-->"
)
UNMEASURED = re.compile(r"<!--\s*not measured(?P<numbers>[^:>]*):\s*(?P<why>[^>]*?)\s*-->")
NUMBER = re.compile(
    r"(?<![\w.^_])[-−+]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[×·]10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
)
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
HIDDEN = re.compile(r"<!--.*?-->|(`+).*?\1|\]\([^)]*\)|https?://\S+", re.DOTALL)
"""Comments, code and targets of links, in which no number is looked for."""

TEMPLATE = re.compile(r"\{[^}]*\}|\swhere [^|:]*|^each .*")
"""What the labels of a table that is filled stand between."""

SETTING = re.compile(r"(?:\b[JhpqNTt]|[γβεακτλ])\s*[=<>≤≥≈]\s*±?$")
"""What stands before the value of a setting."""
VERSION = re.compile(r"(?:Python|arXiv|torch|version|CC BY(?:-SA)?)\s$")
UNIT = re.compile(
    r"\s?(?:%|±|×(?!\s?[\dp])|/s\b)|\s(?:times|nats|bits|s|ms|µs|min|h|seconds|minutes|hours|[kMGT]i?B|kT|rows/s|rows per)\b"
)
BESIDE = re.compile(r"[\d)%]\s?±\s?$|(?<!\d)\s×\s$")
AND = re.compile(r"\s?[,…–/]\s?|,?\s(?:to|and|or)\s")
AND_NUMBER = re.compile(rf"(?:{AND.pattern})(?=[-−+±]?\.?\d)")
"""What stands between the numbers of a list: the last may have the unit of all, and the first the name of a setting."""


class Claim(NamedTuple):
    """A number as it is printed, and the figure of a file that it claims to be."""

    line: int
    text: str
    file: str
    where: str
    figure: str


class Block(NamedTuple):
    """A paragraph, an item of a list, or a row of a table; a row has a place in its table, 0 the head."""

    line: int
    text: str
    row: int | None = None


def blocks(text: str) -> Iterator[Block]:
    """Cut a page into blocks, without code, tables that are filled, and tables that say why they are not measured."""
    lines = text.splitlines()
    at, waiting, start = 0, list[str](), 0
    excused = False
    while at < len(lines):
        line = lines[at].strip()
        fence = re.match(r"`{3,}", line)
        table = line.startswith("|")
        alone = line.startswith("<!--") and not waiting
        new = not line or fence or table or alone or re.match(r"(?:[-*]|\d+\.)\s|#", line)
        if new and waiting:
            yield Block(start + 1, "\n".join(waiting))
            waiting = []
        if fence:
            at += 1
            while at < len(lines) and lines[at].strip() != fence[0]:
                at += 1
        elif table:
            first = at
            while at < len(lines) and lines[at].lstrip().startswith("|"):
                if not excused:
                    yield Block(at + 1, lines[at], at - first)
                at += 1
            excused = False
            continue
        elif alone:
            first = at
            while "-->" not in lines[at]:
                at += 1
            comment = "\n".join(lines[first : at + 1])
            found = UNMEASURED.match(comment.strip())
            filled = comment.strip().startswith("<!-- table of ")
            if filled:  # what is written by hand in it, the labels
                yield from (Block(n + 1, TEMPLATE.sub("", lines[n])) for n in range(first + 1, at))
            excused = filled or bool(found and found["why"] and not found["numbers"].strip())
        elif line:
            if not waiting:
                start = at
            waiting.append(lines[at])
            excused = False
        at += 1
    if waiting:
        yield Block(start + 1, "\n".join(waiting))


def claims(text: str) -> Iterator[Claim]:
    """Find the numbers of a text that name their file."""
    for block in blocks(text):
        for found, numbers in _claimed(block.text):
            line = block.line + block.text.count("\n", 0, found.start())
            for figure, number in numbers:
                percent = "%" if number and re.match(r"\s?%", block.text[number.end() :]) else ""
                shown = number[0] + percent if number else "nothing"
                yield Claim(line, shown, found["file"], found["where"] or "", figure)


def complaint(claim: Claim) -> str | None:
    """Say what is wrong with a claim; None where the number is that of the file, to the digits that are printed."""
    place = f"line {claim.line}: {claim.text} is said to be {claim.figure} of {claim.file}"
    try:
        rows = fill_tables.chosen(fill_tables.rows_of(claim.file), claim.where)
        value = fill_tables.value_of(rows, claim.figure, claim.where)
    except ValueError as error:
        return f"{place}, and {error}"
    if claim.text == "nothing" or not _agrees(claim.text, value):
        return f"{place}, which is {value:.6g}"
    return None


def uncovered(text: str, *, strict: bool) -> Iterator[tuple[int, str]]:
    """Find the numbers that look measured and name no file; ``strict`` for every number in the body of a table."""
    for block in blocks(text):
        seen = HIDDEN.sub(lambda found: " " * len(found[0]), block.text)
        covered = {number.start() for _, numbers in _claimed(block.text) for _, number in numbers if number}
        excused = {
            word for found in UNMEASURED.finditer(block.text) if found["why"] for word in found["numbers"].split()
        }
        body = seen.find("|", 1) if strict and (block.row or 0) > 1 else len(seen)
        numbers, measured, settings = list(NUMBER.finditer(seen)), False, set[int]()
        for one, other in zip([None, *numbers], numbers, strict=False):
            listed = one and one.start() in settings and AND.fullmatch(seen[one.end() :], 0, other.start() - one.end())
            if listed or SETTING.search(seen[: other.start()]):
                settings.add(other.start())
        for number in reversed(numbers):
            before, after = seen[: number.start()], seen[number.end() :]
            joined = bool(AND_NUMBER.match(after)) and measured
            measured = number.start() not in settings and (_looks_measured(number, before, after) or joined)
            named = number.start() in covered or number[0] in excused or VERSION.search(before)
            if (measured or number.start() > body) and not named:
                yield block.line + block.text.count("\n", 0, number.start()), number[0]


def _claimed(text: str) -> Iterator[tuple[re.Match[str], list[tuple[str, re.Match[str] | None]]]]:
    """Yield every comment that names a file, and its figures with the numbers before it."""
    seen = HIDDEN.sub(lambda found: " " * len(found[0]), text)
    for found in CLAIM.finditer(text):
        figures = [part.strip() for part in found["figures"].split(",")]
        before = list(NUMBER.finditer(seen, 0, found.start()))[-len(figures) :]
        padded = [None] * (len(figures) - len(before)) + before
        yield found, list(zip(figures, padded, strict=True))


def _looks_measured(number: re.Match[str], before: str, after: str) -> bool:
    small = "⁻" in number[0]
    return "." in number[0] or small or bool(UNIT.match(after)) or bool(BESIDE.search(before))


def _agrees(text: str, value: float) -> bool:
    """Whether a printed number is a value, rounded to the digits that it has."""
    mantissa, _, power = re.sub("[×·]10", "e", text.rstrip("%")).partition("e")
    scale = 10.0 ** int(power.translate(DIGITS)) if power else 1.0
    scale *= 0.01 if text.endswith("%") else 1.0
    plain = mantissa.translate(DIGITS).replace(",", "").lstrip("+")
    unit = 10.0 ** -len(plain.partition(".")[2]) if "." in plain else 1.0
    if "." not in plain and not power:  # 1,200 may be rounded to tens or hundreds
        zeros = len(plain) - len(plain.rstrip("0"))
        unit = 10.0 ** min(zeros, max(0, len(plain) - 2))
    return abs(float(plain) * scale - value) <= (0.5 + 1e-9) * unit * scale
