"""How much a packed file may unpack to, and a stream that keeps to it.

A few megabytes can unpack to as many terabytes. Nobody sees that from the size of the file, so that there is a limit, which
whoever knows the file can raise.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, cast

import torch

from neurise.devices import available_bytes, readable
from neurise.progress import Progress

VARIABLE = "NEURISE_MAX_UNPACKED"
USUAL = 4 * 10**9
"""Bytes that a packed file may unpack to, where nothing else is said and four times as many are free."""
LONGEST_LINE = 2**24
"""Bytes that a line of a table or of an alignment may have."""
GZIP = b"\x1f\x8b"
"""How a gzip file begins, whatever its name is."""
BLOCK = 2**16
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}

_chosen: ContextVar[int | None] = ContextVar("max_unpacked", default=None)


@contextmanager
def at_most(size: int | str | None) -> Iterator[None]:
    """Let packed files unpack to so many bytes (``"8GB"`` is a way to write it) while this lasts; None changes nothing."""
    token = _chosen.set(_chosen.get() if size is None else bytes_of(size, "max_unpacked"))
    try:
        yield
    finally:
        _chosen.reset(token)


def limit() -> int:
    """Return how many bytes a packed file may unpack to now."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    if given := os.environ.get(VARIABLE):
        return bytes_of(given, VARIABLE)
    free = available_bytes(torch.device("cpu"))
    return USUAL if free is None else min(USUAL, free // 4)


def bytes_of(size: Any, what: str) -> int:
    """Read a number of bytes, with or without a unit."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", str(size).lower())
    try:
        if found is None or isinstance(size, bool):
            raise ValueError
        value = int(float(found[1]) * UNITS[found[2]])
    except (ValueError, KeyError, OverflowError):
        value = 0
    if value < 1:
        raise ValueError(f"{what} must be a number of bytes, 8GB or 8e9 say, got {size!r}")
    return value


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a file whose unpacked size exceeds the limit."""
    if size > limit():
        packed = readable(path.stat().st_size)
        raise ValueError(
            f"{path} ({packed}) unpacks to more than {readable(limit())}; if it is meant to be as large as that, raise the "
            f"limit: --max-unpacked 8GB, max_unpacked='8GB' or the environment variable {VARIABLE}"
        )


def open_bytes(path: Path, *, longest_line: int | None = LONGEST_LINE) -> BinaryIO:
    """Open a file for reading, through gzip where its first bytes say so, with limits on its size and on its lines."""
    return cast(BinaryIO, io.BufferedReader(_Bytes(path, longest_line), BLOCK))


class _Bytes(io.RawIOBase):
    """The bytes of a file, unpacked: counted, announced where it takes long, and refused where there are too many."""

    def __init__(self, path: Path, longest_line: int | None) -> None:
        self._path, self._longest, self._line, self._count = path, longest_line, 0, 0
        self._file = path.open("rb")
        try:
            self._size = max(1, path.stat().st_size)
            self._packed = self._file.read(2) == GZIP
            self._file.seek(0)
        except BaseException:
            self._file.close()
            raise
        self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=self._file)) if self._packed else self._file
        self._progress = Progress(f"unpacking {path.name}", "bytes", verbose=None if self._packed else False)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(min(len(buffer), BLOCK))
        buffer[: len(block)] = block
        self._count += len(block)
        if self._packed:
            if self._count % 2**20 < len(block):  # the limit may look up how much memory is free: once a megabyte
                check_unpacked(self._path, self._count)
            self._progress.update(self._count, min(1.0, self._file.tell() / self._size))
        if self._longest is not None:
            self._measure(block, self._longest)
        return len(block)

    def close(self) -> None:
        if not self.closed:
            self._progress.close()
            self._stream.close()
            self._file.close()
        super().close()

    def _measure(self, block: bytes, longest: int) -> None:
        last = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._line = self._line + len(block) if last < 0 else len(block) - 1 - last
        if self._line > longest:
            raise ValueError(
                f"{self._path} has a line of more than {longest:,} bytes, which is no row of a table or of an alignment"
            )
