"""Plain numbers out of a pickled array, without running anything that the file names.

A pickle is a program. Here it may call four stand-ins of this module, which do nothing but keep what they are given, and
nothing else: there is no way from a file to any other code.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

FORMATS = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "u8": "Q", "u4": "I", "b1": "?"}
"""numpy's names of scalar types, and struct's."""


def object_in_npz(path: Path, key: str) -> Any:
    """Read one array of Python numbers, text, tuples, lists and dictionaries that numpy had to pickle."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as file:
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(file)
            data = file.read()
        if not dtype.hasobject or shape != ():
            raise ValueError(f"{key} is of type {dtype} and shape {shape}; a single Python object was expected")
        found = _Unpickler(io.BytesIO(data)).load()
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        KeyError,
        ValueError,
        pickle.UnpicklingError,
        struct.error,
    ) as error:
        raise ValueError(f"{path} is damaged, cut short or not what it should be ({error})") from error
    except Exception as error:  # a damaged pickle can raise anything, as the wrong stand-in is called in the wrong way
        raise ValueError(f"{path} is damaged: {key} cannot be read ({type(error).__name__})") from error
    if not isinstance(found, _Array) or len(found.entries) != 1:
        raise ValueError(f"{path}: {key} is no array of one Python object")
    return found.entries[0]


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
