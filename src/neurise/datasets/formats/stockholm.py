"""Alignments of sequences in Stockholm's format, as records of FASTA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

HEAD = "# STOCKHOLM"


def as_fasta(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, str, list[tuple[int, str]]]]:
    """Yield the line where each sequence begins, its name, and its parts with their lines; a sequence may be interleaved."""
    begins: dict[str, int] = {}
    parts: dict[str, list[tuple[int, str]]] = {}
    for number, text in enumerate(lines, start=1):
        line = text.strip()
        if number == 1 and not line.startswith(HEAD):
            raise ValueError(f"{path}, line 1: {line[:20]!r}; a file in Stockholm's format begins with '{HEAD} 1.0'")
        if line == "//":
            break
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: {line[:40]!r}; a name and a part of its sequence are needed")
        begins.setdefault(words[0], number)
        parts.setdefault(words[0], []).append((number, words[1]))
    for name, number in begins.items():
        yield number, name, parts[name]
