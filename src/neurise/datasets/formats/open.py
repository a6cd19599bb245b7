"""Text files, packed by gzip or not: opened, written, and their faults named."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from neurise.datasets.formats.unpacking import LONGEST_LINE, open_bytes

BLOCK = 2**20


@contextmanager
def open_text(path: Path, newline: str | None = None, *, longest_line: int | None = LONGEST_LINE) -> Iterator[TextIO]:
    """Open a text in UTF-8, through gzip where its first bytes say so; what is wrong with it is said in one line."""
    with damage_named(path):
        try:
            with (
                open_bytes(path, longest_line=longest_line) as raw,
                io.TextIOWrapper(raw, encoding="utf-8-sig", newline=newline) as text,
            ):
                yield text
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no text in UTF-8: {_first_fault(path)}") from error


def read_bytes(path: Path) -> bytes:
    """Read a whole file, through gzip where its first bytes say so, whatever its name is."""
    with damage_named(path), open_bytes(path, longest_line=None) as file:
        return b"".join(iter(lambda: file.read(BLOCK), b""))


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Say which file it was that cannot be unpacked."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is a gzip file that is cut short or damaged ({error})") from error


def begins_like_fasta(path: Path) -> bool:
    """Whether a text begins with > and a name, as an alignment does; a table may have > as one of its letters."""
    with open_bytes(path) as file:
        try:
            start = file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return False  # who reads all of it will say what is wrong
    return start[:1] == b">" and start[1:2] not in (b"", b",", b"\t", b"\r", b"\n")


@contextmanager
def create_text(path: Path, *, packed: bool) -> Iterator[TextIO]:
    """Create a text in UTF-8; a packed one bears neither time nor name, so that the same text gives the same bytes."""
    if not packed:
        with path.open("w", encoding="utf-8", newline="") as text:
            yield text
        return
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as raw,
        io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", newline="") as packing,
    ):
        yield packing


def _first_fault(path: Path) -> str:
    with open_bytes(path, longest_line=None) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                column = len(line[: error.start].decode("utf-8")) + 1
                return f"line {number}, column {column}: the byte 0x{line[error.start]:02x}"
    return "it ends within a character"
