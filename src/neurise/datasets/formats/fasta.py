"""Alignments of sequences as FASTA."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from neurise.alphabet import first
from neurise.datasets.formats.open import open_text
from neurise.datasets.formats.stockholm import as_fasta

GAP = "-"
LETTERS = {
    "protein": ("-ACDEFGHIKLMNPQRSTVWY", "BJOUXZ"),
    "dna": ("-ACGT", "BDHKMNRSVWXY"),
    "rna": ("-ACGU", "BDHKMNRSVWXY"),
}
"""The symbols of each alphabet, gap first, and the letters that leave open which of them is meant."""

INSERTED = ("auto", "drop", "keep")
STOCKHOLM = {".sto", ".stk"}
INSERTING = STOCKHOLM | {".a2m", ".a3m"}
"""Endings of formats in which small letters are insertions."""
INSERTS = ".abcdefghijklmnopqrstuvwxyz"

BLOCK = 2**21
"""Pairs of sequences that are compared at a time: their numbers of equal sites fit into the cache."""


def read_fasta(
    path: Path, alphabet: str = "protein", *, inserts: str = "auto"
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Read aligned sequences: rows of letters, (N, sites); the names; and all symbols, in the order of their tokens.

    ``"protein"`` has p = 21 symbols, the gap ``-`` and the 20 amino acids; B, J, O, U, X and Z, which name none of them,
    count as gaps. ``"dna"`` has ``-ACGT`` and ``"rna"`` has ``-ACGU``; letters that leave the base open (N, R, Y, …) count as
    gaps.

    In A2M and A3M files small letters are insertions, and dots stand where other sequences have some. They are no part of the
    alignment, and ``inserts="drop"`` leaves them out. ``"keep"`` reads small letters as capitals and dots as gaps, for
    alignments that mean nothing by them. ``"auto"`` keeps them in a file of another ending that has no dots and whose
    sequences are equally long with them, and leaves them out everywhere else.

    Files that end in ``.sto`` or ``.stk`` are in Stockholm's format.
    """
    if inserts not in INSERTED:
        raise ValueError(f"inserts must be one of {', '.join(map(repr, INSERTED))}, got {inserts!r}")
    if alphabet not in LETTERS:
        raise ValueError(f"alphabet must be one of {', '.join(map(repr, LETTERS))}, got {alphabet!r}")
    if inserts == "auto":
        inserts = "keep" if _small_letters_are_residues(path) else "drop"
    symbols, unknown = LETTERS[alphabet]
    meant: dict[str, str | None] = dict.fromkeys(unknown, GAP) | dict.fromkeys(INSERTS)
    if inserts == "keep":
        meant |= {small: meant.get(small.upper(), small.upper()) for small in INSERTS} | {INSERTS[0]: GAP}
    table, without = str.maketrans(meant), " without its insertions" if inserts == "drop" else ""
    records = as_fasta if STOCKHOLM.intersection(suffix.lower() for suffix in path.suffixes) else _records
    names, rows, width = list[str](), list[bytes](), 0
    with open_text(path) as file:
        for number, name, lines in records(path, file):
            row = "".join(line.translate(table) for _, line in lines)
            if row.translate(str.maketrans("", "", symbols)):
                raise ValueError(_fault(path, name, lines, symbols + unknown + INSERTS, alphabet))
            width = width or len(row)
            if not row or len(row) != width:
                raise ValueError(
                    f"{path}, line {number}: the sequence {name!r} has {len(row)} sites{without}, and "
                    f"{f'those before have {width}' if rows else 'one at least is needed'}; align the sequences first"
                )
            names.append(name)
            rows.append(row.encode("ascii"))
    if not rows:
        raise ValueError(f"{path} has no sequences")
    letters = np.frombuffer(b"".join(rows), dtype="S1").reshape(-1, width)
    return letters.astype("U1"), names, np.array(list(symbols))


def _small_letters_are_residues(path: Path) -> bool:
    """Whether small letters stand for residues: dropped as insertions, they would take another column out of every row."""
    if INSERTING.intersection(suffix.lower() for suffix in path.suffixes):
        return False
    lengths, seen = set[int](), set[str]()
    with open_text(path) as file:
        for _, _, lines in _records(path, file):
            text = "".join(line for _, line in lines)
            lengths.add(len(text))
            seen.update(text)
    return len(lengths) == 1 and INSERTS[0] not in seen and bool(seen.intersection(INSERTS))


def sequence_weights(rows: np.ndarray, theta: float = 0.8) -> np.ndarray:
    r"""Weight of each row, :math:`w_n = 1 / |\{m : \text{rows n and m agree on at least } \theta q \text{ sites}\}|`, (N,).

    Their sum is the effective number of sequences. Equal gaps count as agreement. It takes N²q/2 comparisons, a block
    of rows at a time.
    """
    if not 0 < theta <= 1:
        raise ValueError(f"theta must be above 0 and at most 1, got {theta}")
    # Equal rows are compared once. Seen from the site, as the comparisons go: (sites, distinct rows).
    tokens = np.unique(rows, return_inverse=True)[1].reshape(rows.shape).astype(np.uint8)
    distinct, inverse, counts = np.unique(tokens, axis=0, return_inverse=True, return_counts=True)
    columns = np.ascontiguousarray(distinct.T)
    sites, n = columns.shape
    enough = math.ceil(theta * sites - 1e-9)  # 0.8 · 5 is 4 and not a little more
    kind = np.uint8 if sites <= 255 else np.uint16 if sites < 2**16 else np.uint32
    weigh, near = counts.astype(np.float64), np.zeros(n)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        own = columns[:, start : start + step]
        equal = np.zeros((own.shape[1], n - start), dtype=kind)
        same = np.empty(equal.shape, dtype=bool)
        for mine, others in zip(own, columns[:, start:], strict=True):
            np.equal(mine[:, None], others, out=same)
            equal += same
        alike = equal >= enough
        near[start : start + step] += alike @ weigh[start:]
        near[start + step :] += weigh[start : start + step] @ alike[:, step:]
    return np.asarray(1 / near[inverse.ravel()])


def write_fasta(stream: TextIO, rows: np.ndarray, names: Iterable[str] | None = None) -> None:
    """Write rows of letters as aligned sequences, called 0, 1, … where they have no names."""
    if rows.dtype.kind not in "US":
        raise ValueError(f"an alignment holds letters, and the rows are of type {rows.dtype}; write .csv or .npz")
    letters = rows.astype("U1")
    allowed = {letter for symbols, _ in LETTERS.values() for letter in symbols}
    wrong = ~np.isin(letters, sorted(allowed))
    if wrong.any():
        row, site = first(wrong)
        raise ValueError(
            f"row {row}, column {site} is {letters[row, site].item()!r}, which is no letter of an alignment "
            f"({''.join(sorted(allowed))}); write .csv or .npz"
        )
    for name, sequence in zip(names or map(str, range(len(rows))), letters.tolist(), strict=True):
        stream.write(f">{name}\n{''.join(sequence)}\n")


Lines = Sequence[tuple[int, str]]


def _records(path: Path, file: Iterable[str]) -> Iterator[tuple[int, str, Lines]]:
    """Split a text into sequences: the line where each begins, its name, and its lines with their numbers."""
    begin, name, lines = 0, "", list[tuple[int, str]]()
    for number, text in enumerate(file, start=1):
        line = text.strip()
        if line.startswith(">"):
            if begin:
                yield begin, name, lines
            begin, name, lines = number, line[1:].strip(), []
        elif line and not begin:
            raise ValueError(f"{path}, line {number}, column 1: {line[:20]!r}; a sequence begins with > and its name")
        elif line:
            lines.append((number, line))
    if begin:
        yield begin, name, lines


def _fault(path: Path, name: str, lines: Lines, allowed: str, alphabet: str) -> str:
    number, column, letter = next(
        (number, column, letter)
        for number, line in lines
        for column, letter in enumerate(line, start=1)
        if letter not in allowed
    )
    return (
        f"{path}, line {number}, column {column}: {letter!r} in the sequence {name!r} is no letter of the alphabet "
        f"{alphabet!r}; there are: {', '.join(LETTERS)}"
    )
