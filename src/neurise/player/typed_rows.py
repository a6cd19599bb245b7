"""A row that was typed, pasted or dropped, as tokens."""

from __future__ import annotations

import csv

from neurise.player.stage import Stage


def read_row(stage: Stage, text: str) -> list[int]:
    """Read the first row of a text: symbols one after another, or with commas, tabs or spaces between.

    A line of the columns' names, as tables have it, and the name of a sequence, as alignments have it, are passed over. A
    symbol with a comma in it stands in quotes.
    """
    symbols, names = stage.symbols, stage.names
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith(">"):
        ends = [place for place, line in enumerate(lines) if place and line.startswith(">")]
        lines = ["".join(lines[1 : ends[0] if ends else None])]
    if not lines or not lines[0].strip("[]"):
        raise ValueError("there is no row: type its symbols, one per site")
    parts = _parts(lines[0].strip("[]"), len(symbols))
    if parts == names and len(lines) > 1 and not _are_symbols(parts, symbols):
        parts = _parts(lines[1], len(symbols))
    if len(parts) != len(symbols):
        raise ValueError(f"the row has {len(parts)} symbols, and there are {len(symbols)} sites")
    for site, part in enumerate(parts):
        if part not in symbols[site]:
            own = ", ".join(symbols[site][:10])
            raise ValueError(f"{short(part)} at site {names[site]} is none of its symbols: {own}")
    return [own.index(part) for own, part in zip(symbols, parts, strict=True)]


def _are_symbols(parts: list[str], symbols: list[list[str]]) -> bool:
    return len(parts) == len(symbols) and all(part in own for own, part in zip(symbols, parts, strict=True))


def _parts(line: str, sites: int) -> list[str]:
    """Split a line at the first of the signs in it that makes as many parts as there are sites; without any, at every letter."""
    tried = [_split(line, sign) for sign in ",\t; " if sign in line]
    if not tried:
        return [line] if sites == 1 else list(line)
    return next((parts for parts in tried if len(parts) == sites), tried[0])


def _split(line: str, sign: str) -> list[str]:
    found = next(csv.reader([line], delimiter=sign, skipinitialspace=True))
    return [part.strip().strip("\"'") for part in found if part.strip()]


def short(value: object) -> str:
    """Write a value in at most 60 letters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
