"""Hostile inputs out of good ones: bytes, cells, JSON values and the members of archives are changed by what they are."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

NUMBERS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "-0",
        "007",
        "1e0",
        "1.5",
        "1e308",
        "1e309",
        "-1e400",
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "-Infinity",
    ),
    *("127", "128", "255", "256", "65536", "2147483647", "2147483648", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "1" + "0" * 40, "9" * 400, "1_000", "0x10", "٣", "½", "True"),
)
TEXTS = (
    *(
        "",
        " ",
        "a",
        "?",
        "-",
        ">",
        ",",
        "\t",
        '"',
        '""',
        "'",
        "\n",
        "\r",
        "\r\n",
        "\0",
        "\ufeff",
        "\u2028",
        "é",
        "𝔞",
        "ß",
        "İ",
    ),
    *(
        "label",
        "count",
        "weight",
        "null",
        "None",
        "NA",
        "{",
        "}",
        "[",
        "]",
        ":",
        "bitstring",
        "../x",
        "%s",
        "\\",
        "\x1b[2J",
    ),
)
ODD = (b"\xff", b"\x80\x80", b"\x1f\x8b", b"\xed\xa0\x80")
HOSTILE = (*(text.encode() for text in (*NUMBERS, *TEXTS)), *ODD)
TOKEN = re.compile(rb"[^,\s\":\[\]{}]+|.", re.DOTALL)
MOST = 2**16
"""Bytes that an input has at most: there are to be many of them."""

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def mutate_bytes(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change some bytes, cells or lines of a file, whatever it is."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(STEPS)(rng, data, others)[:MOST]
    return data


def _flip(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return b"\0"
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


def _insert(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = rng.randint(0, len(data))
    return data[:place] + rng.choice(HOSTILE) * rng.choice((1, 1, 1, 3, 300)) + data[place:]


def _cut(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    first, last = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:first] + data[last:] if rng.random() < 0.5 else data[:first]


def _copy(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    first, last = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:last] + data[first:last] * rng.choice((1, 1, 2, 50)) + data[last:]


def _splice(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _token(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Put something else in the place of a cell or a number, or exchange two of them."""
    found = list(TOKEN.finditer(data[:4096]))
    if not found:
        return rng.choice(HOSTILE)
    one = rng.choice(found)
    new = rng.choice(HOSTILE) if rng.random() < 0.7 else rng.choice(found)[0]
    return data[: one.start()] + new + data[one.end() :]


def _line(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return b"\n"
    place = rng.randrange(len(lines))
    lines[place : place + 1] = rng.choice(([], [lines[place]] * 2, [lines[rng.randrange(len(lines))]], [b"\n"]))
    return b"".join(lines)


STEPS: tuple[Mutation, ...] = (_flip, _insert, _cut, _copy, _splice, _token, _token, _token, _line)

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, 1e308, float("nan"), float("inf"), 2**31, 2**63, 10**30, 10**400),
    *("", "x", "0", "spin", "é\0", "neurise", [], {}, [[]], [0], [1, -1], {"a": 1}, [None], ["x"], "9" * 50),
)


def mutate_json(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change a value somewhere in a JSON document."""
    if rng.random() < 0.2:
        return mutate_bytes(rng, data, others)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(rng, data, others)
    for _ in range(rng.choice((1, 1, 2))):
        document = change_value(rng, document)
    if rng.random() < 0.005:
        return b"[" * 50_000
    return json.dumps(document).encode()[:MOST]


def change_value(rng: random.Random, document: Any) -> Any:
    """Replace, remove, double or move one value."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.02:
        return deepcopy(rng.choice(VALUES))
    inside, here = document, None
    while True:
        here = rng.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))
        below = inside[here]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.25:
            break
        inside = below
    kind, new = (
        rng.random(),
        deepcopy(rng.choice(VALUES)),
    )  # copies: what is changed once must not change all inputs to come
    if kind < 0.7:
        inside[here] = new
    elif kind < 0.8:
        del inside[here]
    elif kind < 0.9 and isinstance(inside, list):
        inside.append(deepcopy(below))
    elif isinstance(inside, dict):
        inside[rng.choice(["", "x", *inside])] = deepcopy(below)
    else:
        inside.insert(0, new)
    return document


DTYPES = (
    "<i8",
    "|i1",
    "|u1",
    "|b1",
    ">i4",
    "<f8",
    "<f2",
    "<f16",
    "<c16",
    "<U1",
    "<U3",
    "<U0",
    "|S1",
    "|O",
    "|V8",
    "<M8[s]",
    "<u8",
)
SHAPES = (
    "()",
    "(0,)",
    "(1,)",
    "(2, 2)",
    "(4, 2)",
    "(-1, 2)",
    "(1000000000000,)",
    "(0, 1000000000)",
    "(2, 2, 2)",
    "(1,) * 40",
    "7",
)
NAMES = (
    *(
        "X",
        "train",
        "samples",
        "y",
        "labels",
        "weights",
        "counts",
        "validation",
        "validation_labels",
        "test",
        "test_weights",
    ),
    *(
        "pmf",
        "alphabet",
        "edges",
        "couplings",
        "fields",
        "offset",
        "shape",
        "info",
        "info.x",
        "J",
        "h",
        "n_qubits",
        "energies",
    ),
    *("samples_packed", "configs", "num_occurrences", "qubit_ids", "batch", "other", ""),
)


def mutate_npz(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change the arrays of an archive: their names, types, shapes and numbers."""
    if rng.random() < 0.15:
        return mutate_bytes(rng, data, others)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError, EOFError, OSError):
        return mutate_bytes(rng, data, others)
    if not members:
        return data
    for _ in range(rng.choice((1, 1, 2))):
        name, kind = rng.choice(list(members)), rng.random()
        if kind < 0.65:
            members[name] = mutate_npy(rng, members[name], list(members.values()))
        elif kind < 0.8:
            members[f"{rng.choice(NAMES)}.npy"] = members.pop(name)
        elif kind < 0.9 and len(members) > 1:
            del members[name]
        else:
            members[f"{rng.choice(NAMES)}.npy"] = members[name]
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(stream, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name), content, compresslevel=1)
    return stream.getvalue()


def mutate_npy(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change the header of an array, or its numbers."""
    start = 10 + struct.unpack("<H", data[8:10])[0] if len(data) >= 10 and data[6:7] == b"\1" else 0
    kind = rng.random()
    if not 10 < start <= len(data) or kind < 0.2:
        return mutate_bytes(rng, data, others)
    header, numbers = data[10:start].decode("latin-1"), data[start:]
    if kind < 0.45:
        header = re.sub(r"'descr': '[^']*'", f"'descr': '{rng.choice(DTYPES)}'", header)
    elif kind < 0.7:
        header = re.sub(r"'shape': \([^)]*\)", f"'shape': {rng.choice(SHAPES)}", header)
    elif kind < 0.75:
        header = header.replace("False", "True")
    elif kind < 0.95 and numbers:
        place = rng.randrange(len(numbers)) // 8 * 8
        odd = rng.choice(
            (b"\xff" * 8, b"\0" * 8, struct.pack("<d", float("nan")), struct.pack("<d", 1e308), b"\1" + b"\0" * 7)
        )
        numbers = numbers[:place] + odd[: len(numbers) - place] + numbers[place + 8 :]
    else:
        header = mutate_bytes(rng, header.encode("latin-1", "replace"), [b""]).decode("latin-1")
    text = header.encode("latin-1", "replace")[: 2**16 - 1]
    return data[:8] + struct.pack("<H", len(text)) + text + numbers


def mutate_safetensors(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change the description of tensors, the JSON within it, or the numbers."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
    kind = rng.random()
    if not 0 < size <= len(data) - 8 or kind < 0.2:
        return mutate_bytes(rng, data, others)
    header, numbers = data[8 : 8 + size], data[8 + size :]
    if kind < 0.6:
        try:
            document = json.loads(header)
            described = document.get("__metadata__", {})
            if "state" in described and rng.random() < 0.7:
                described["state"] = json.dumps(change_value(rng, json.loads(described["state"])))
            else:
                document = change_value(rng, document)
        except (ValueError, TypeError, AttributeError):  # it was changed before
            return mutate_bytes(rng, data, others)
        header = json.dumps(document).encode()
    else:
        numbers = mutate_npy(rng, numbers, [numbers]) if kind < 0.7 else mutate_bytes(rng, numbers, [numbers])
    return struct.pack("<Q", len(header)) + header + numbers


def packed(inner: Mutation) -> Mutation:
    """Mutate what a gzip file holds; now and then the file itself."""

    def mutate(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        if rng.random() < 0.3:
            return mutate_bytes(rng, data, others)
        try:
            whole = zlib.decompressobj(31).decompress(data, MOST)
        except zlib.error:
            return mutate_bytes(rng, data, others)
        return gzip.compress(inner(rng, whole, [whole]), 1, mtime=0)

    return mutate
