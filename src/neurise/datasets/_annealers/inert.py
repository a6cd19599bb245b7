"""Plain numbers out of a pickled array, without running anything that the file names.

A pickle is a program. Here it may call four stand-ins of this module, which do nothing but keep what they are given, and
nothing else: there is no way from a file to any other code.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

from neurise.datasets.formats.arrays import open_npz, read_header

FORMATS = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "u8": "Q", "u4": "I", "b1": "?"}
"""numpy's names of scalar types, and struct's."""


def object_in_npz(path: Path, key: str) -> Any:
    """Read one array of Python numbers, text, tuples, lists and dictionaries that numpy had to pickle."""
    with open_npz(path) as archive:
        if key not in archive.names:
            raise ValueError(f"{path} has no array {key!r}, only {', '.join(archive.names[:20])}")
        with archive.open(key) as (file, _):
            shape, _, dtype = read_header(file)
            data = file.read()
        if not dtype.hasobject or shape != ():
            raise ValueError(f"{key} is of type {dtype} and shape {shape}; a single Python object was expected")
        _check_memo(data)
        found = _Unpickler(io.BytesIO(data)).load()
        if not isinstance(found, _Array) or len(found.entries) != 1:
            raise ValueError(f"{key} is no array of one Python object")
    return found.entries[0]


def _check_memo(data: bytes) -> None:
    """Refuse to remember anything under a number that is larger than the file: a list would be made as long as that."""
    for code, argument, _ in pickletools.genops(data):
        if "PUT" in code.name and isinstance(argument, int) and argument > len(data):
            raise ValueError(f"its pickle counts {argument:,} things in {len(data):,} bytes")


class _Array:
    """Stands for a numpy array of objects: keeps its entries."""

    def __init__(self, *_: Any) -> None:
        self.entries: list[Any] = []

    def __setstate__(self, state: Any) -> None:
        self.entries = list(state[4])


class _Type:
    """Stands for a numpy type: keeps its name and its order of bytes."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name, self.order = str(name), "<"

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if state[1] == ">" else "<"


class _Nothing:
    """Stands for what is only handed on."""


def _scalar(kind: Any, data: Any) -> Any:
    return struct.unpack(kind.order + FORMATS[kind.name.lstrip("<>=|")], data)[0]


class _Unpickler(pickle.Unpickler):
    """Knows no names but those of the stand-ins."""

    def find_class(self, module: str, name: str) -> Any:
        known = {"_reconstruct": _Array, "scalar": _scalar, "ndarray": _Nothing, "dtype": _Type}
        if module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") and name in known:
            return known[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is never loaded")
