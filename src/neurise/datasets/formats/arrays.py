"""Arrays in ``.npy`` and ``.npz`` files, read by what the file has and not by what it says it has. Nothing is unpickled."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from neurise.datasets.formats.unpacking import check_unpacked

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""The versions of numpy's format; a third one is for arrays with named fields, which hold no rows."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How numpy packs arrays. Other ways need memory before there is a byte."""
KINDS = "biufcUS"
ENDING = ".npy"
BLOCK = 2**20
SMALL = 2**16
"""Rows or columns that an array without entries may say it has."""


class _Refused(ValueError):
    """An array that is whole, and of a kind that is not read."""


def read_npy(path: Path) -> np.ndarray:
    """Read a single array."""
    with damage_named(path), path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise _Refused("is a .npz archive; give it that ending")
        file.seek(0)
        return _array(file, path.stat().st_size)


def load_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Read all arrays of an archive, or those that are named."""
    with open_npz(path) as archive:
        wanted = archive.names if names is None else names
        if missing := [name for name in wanted if name not in archive.names]:
            raise _Refused(f"has no array {missing[0]!r}, only {', '.join(archive.names[:20])}")
        return {name: archive.array(name) for name in wanted}


class Archive:
    """The arrays of an open ``.npz`` file, by their names."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._members = {entry.filename.removesuffix(ENDING): entry for entry in file.infolist()}
        if len(self._members) < len(file.infolist()):
            raise _Refused("has two arrays of the same name")

    @property
    def names(self) -> list[str]:
        """What the arrays are called."""
        return list(self._members)

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """Open one array as a stream, and say how many bytes it has."""
        entry = self._members[name]
        if entry.compress_type not in METHODS:
            raise _Refused(f"has the array {name!r} packed in another way than numpy does it")
        with self._file.open(entry) as stream:
            yield stream, entry.file_size

    def array(self, name: str) -> np.ndarray:
        """Read one array."""
        with self.open(name) as (stream, size):
            return _array(stream, size)


@contextmanager
def open_npz(path: Path) -> Iterator[Archive]:
    """Open an archive, after checking that all of it unpacks to what the limit allows."""
    with damage_named(path), path.open("rb") as file:
        if file.read(6) == np.lib.format.MAGIC_PREFIX:
            raise _Refused("is a single .npy array; give it that ending")
        with zipfile.ZipFile(file) as archive:
            check_unpacked(path, sum(entry.file_size for entry in archive.infolist()))
            yield Archive(archive)


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn whatever damaged bytes lead to into one error that names the file."""
    try:
        yield
    except _Refused as error:
        raise ValueError(f"{path} {error}") from error
    except MemoryError as error:
        raise MemoryError(f"{path} does not fit into the memory ({error})") from error
    except OSError as error:
        raise error if error.filename is not None else OSError(f"{path} cannot be read: {error}") from error
    except Exception as error:  # a damaged archive shows as any of a dozen errors
        if str(path) in str(error):  # it says what is wrong and where
            raise
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is damaged, cut short or no {path.suffix} file ({told})") from error


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, whether columns stand together, and the type of an array."""
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise _Refused(f"has an array of the format {version}; plain numbers and letters are of an older one")
    shape, columns_first, dtype = HEADERS[version](stream)
    if any(side < 0 for side in shape) or len(shape) > 32:
        raise ValueError(f"the shape {shape} is none")
    return tuple(int(side) for side in shape), bool(columns_first), dtype


def _array(stream: IO[bytes], size: int) -> np.ndarray:
    """Read an array of a file, or of a member of an archive, that has ``size`` bytes."""
    shape, columns_first, dtype = read_header(stream)
    if dtype.hasobject:
        raise _Refused("holds Python objects, which are never read; save an array of numbers")
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise _Refused(f"has an array of type {dtype!s:.60}; numbers or letters are needed")
    needed, there = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if needed > there or (not needed and max(shape) > SMALL):
        raise ValueError(f"an array of shape {shape} and type {dtype} has {needed:,} bytes, and {there:,} are there")
    filled, done = np.empty(needed, dtype=np.uint8), 0
    while done < needed:
        block = stream.read(min(BLOCK, needed - done))
        if not block:
            raise EOFError(f"{done:,} of {needed:,} bytes are there")
        filled[done : done + len(block)] = np.frombuffer(block, dtype=np.uint8)
        done += len(block)
    if dtype.kind == "U":
        codes = filled.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError("it has letters that are none")
    array = filled.view(dtype).reshape(shape[::-1] if columns_first else shape)
    # Other programs and other machines write bytes in another order, which torch cannot take.
    native = array if dtype.isnative else array.astype(dtype.newbyteorder("="))
    return native.T if columns_first else native
