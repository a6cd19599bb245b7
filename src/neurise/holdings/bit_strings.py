"""Counts of bit strings, as quantum toolkits give them, and lists of bit strings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from neurise import checks
from neurise.holdings.holding import Holding

ENDS = ("big", "little")
SEPARATORS = str.maketrans("", "", " _")
"""What may stand between registers."""
DIGITS = "0123456789"
DIGITS_IN = re.compile("[0-9]")
WIDEST = 4096
"""Bits that a row written as one number may have."""
MOST = 2**63
"""A count is at most this."""


def counts(
    data: Mapping[Any, Any] | Sequence[str], *, endian: str = "big", bits: int | None = None, states: int = 2
) -> Holding:
    """Say how counts of bit strings are written; ``fit``, ``score``, ``log_prob`` and the metrics take the result.

    Args:
        data: ``{"0101": 37}``, with or without spaces between registers; ``{(0, 1, 0, 1): 37}``; numbers,
            ``{"0x5": 37}`` or ``{5: 37}``; or a list of bit strings.
        endian: ``"big"``: as it is written, site 0 is the first character, and the highest bit of a number. ``"little"``: site 0
            is the last character, and the lowest bit. Qiskit writes qubit 0 last, so its counts are ``"little"`` where site
            k is to be qubit k.
        bits: how many sites there are. Numbers do not say it.
        states: how many outcomes a site has, up to 10: with four of them strings are written in 0, 1, 2 and 3.

    >>> import neurise
    >>> neurise.counts({"001": 30, "110": 10}, endian="little").X.tolist()
    [[1, 0, 0], [0, 1, 1]]
    >>> neurise.counts({"031": 30, "120": 10}, states=4).X.tolist()
    [[0, 3, 1], [1, 2, 0]]
    """
    if isinstance(states, bool) or states not in range(2, len(DIGITS) + 1):
        raise ValueError(f"states must be a whole number from 2 to {len(DIGITS)}, got {states!r}")
    if endian not in ENDS:
        raise ValueError(f"endian must be 'big' (site 0 first) or 'little' (site 0 last), got {endian!r}")
    if isinstance(bits, int) and bits > WIDEST:
        raise ValueError(f"bits is {bits:.3g}; a row has at most {WIDEST} bits" if bits < MOST else "bits is too large")
    size = None if bits is None else checks.count("bits", bits, WIDEST)
    if isinstance(data, Mapping):
        held = counted(data, "counts", bits=size, states=states)
    elif is_strings(data):
        held = Holding(rows_of_strings(list(data), "counts", bits=size, states=states), name="bit strings")
    else:
        raise ValueError(f"counts are a dict such as {{'0101': 37}}, or a list of bit strings; got {_shown(data)}")
    rows = held.X if endian == "big" else held.X[:, ::-1].copy()
    known = None if states == 2 else np.arange(states, dtype=np.uint8)  # an outcome that never came is possible, too
    return Holding(rows, weights=held.weights, symbols=known, name=held.name)


def is_counted(data: Mapping[Any, Any]) -> bool:
    """Whether a dict counts its keys; one of columns does not."""
    return not any(hasattr(value, "__len__") and not isinstance(value, str) for value in data.values())


def is_strings(data: Any) -> bool:
    """Whether something is a list of texts, or an array or a column of them."""
    if isinstance(data, list | tuple):
        return bool(data) and isinstance(data[0], str)
    if isinstance(data, Tensor):  # holds no texts; and to begin to iterate over one makes a tensor of every number
        return False
    return getattr(data, "ndim", 0) == 1 and len(data) > 0 and isinstance(next(iter(data)), str)


def counted(data: Mapping[Any, Any], what: str, *, bits: int | None = None, states: int = 2) -> Holding:
    """Read counts as they are written: keys are rows, values are how often they were seen."""
    if not data:
        raise ValueError(f"{what} is an empty dict; counts such as {{'0101': 37}} are needed")
    for key, value in data.items():
        if not _is_count(value):
            raise ValueError(f"{what} has {_shown(value)} for the key {_shown(key)}; a count is a number from 0 to 2⁶³")
    masses = np.array([float(value) for value in data.values()])
    if not masses.any():
        raise ValueError(f"{what} counts nothing: all of its {len(data)} counts are zero")
    return Holding(_rows(list(data), what, bits, states), weights=masses, name="counts")


def rows_of_strings(texts: Sequence[Any], what: str, *, bits: int | None = None, states: int = 2) -> np.ndarray:
    """Read bit strings or numbers in base 16 as rows of 0 and 1, (N, sites) uint8, the first character first.

    With more ``states`` the strings are written in as many digits, and there are no numbers.
    """
    first = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if first is not None:
        raise ValueError(f"{what} has {_shown(texts[first])} at row {first}, and text before it; use one kind")
    numbers = [text[:2].lower() == "0x" for text in texts]
    if any(numbers) and states != 2:
        raise ValueError(f"{what} has {texts[numbers.index(True)]!r}; numbers are rows of bits, and states is {states}")
    if all(numbers):
        return _of_numbers([_hexadecimal(text, what) for text in texts], list(texts), what, bits)
    if any(numbers):
        raise ValueError(
            f"{what} has {texts[numbers.index(True)]!r} beside {texts[numbers.index(False)]!r}; use one way of writing"
        )
    plain, digits = [text.translate(SEPARATORS) for text in texts], DIGITS[:states]
    for text, row in zip(texts, plain, strict=True):
        if wrong := row.strip(digits).strip():
            place = next(i for i, letter in enumerate(text) if letter not in digits + " _")
            written = (
                "a bit string is written in 0 and 1" if states == 2 else f"{states} states are written in {digits}"
            )
            more = (
                f"neurise.counts(…, states={1 + max(map(int, DIGITS_IN.findall(''.join(plain))))}) reads more digits, and on "
                "the command line FILE.json:states=…; other "
                if wrong[0] in DIGITS
                else "Other "
            )
            raise ValueError(
                f"{what} has {text[:80]!r}, whose character {place} is {wrong[0]!r}; {written}. {more}"
                "symbols are given as rows: [list(text) for text in …]"
            )
        if not row or len(row) != len(plain[0]):
            raise ValueError(
                f"{what} has {text[:80]!r} of {len(row)} bits beside {texts[0][:80]!r} of {len(plain[0])}; all rows need the "
                "same number of bits"
            )
    width = len(plain[0])
    if bits is not None and width != bits:
        raise ValueError(f"{what} has bit strings of {width} bits, {texts[0][:80]!r} say, and {bits} are needed")
    return np.frombuffer("".join(plain).encode(), dtype=np.uint8).reshape(-1, width) - ord("0")


def _rows(keys: list[Any], what: str, bits: int | None, states: int) -> np.ndarray:
    if all(isinstance(key, str) for key in keys):
        return rows_of_strings(keys, what, bits=bits, states=states)
    if all(isinstance(key, int | np.integer) and not isinstance(key, bool) for key in keys):
        if states != 2:
            raise ValueError(f"{what} has the key {_shown(keys[0])}; numbers are rows of bits, and states is {states}")
        return _of_numbers([int(key) for key in keys], keys, what, bits)
    odd = next((key for key in keys if not isinstance(key, tuple)), None)
    if odd is not None:
        raise ValueError(
            f"{what} has the key {_shown(odd)}; keys are all bit strings '0101', all tuples (0, 1, 0, 1), or all numbers"
        )
    short = next((key for key in keys if len(key) != len(keys[0])), None)
    if short is not None:
        raise ValueError(
            f"{what} has the key {_shown(short)} of {len(short)} sites beside {_shown(keys[0])} of {len(keys[0])}; all rows "
            "need the same number of sites"
        )
    if bits is not None and len(keys[0]) != bits:
        raise ValueError(f"{what} has keys of {len(keys[0])} sites, {_shown(keys[0])} say, and {bits} are needed")
    return np.array(keys)


def _is_count(value: Any) -> bool:
    """Whether a value is a number, finite and not negative; comparing does not overflow, where a float would."""
    return type(value) is not bool and isinstance(value, int | float | np.number) and bool(0 <= value <= MOST)


def _hexadecimal(text: str, what: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise ValueError(f"{what} has {text[:80]!r}, which is no number in base 16; 0x5 is one") from None


def _of_numbers(values: list[int], keys: list[Any], what: str, bits: int | None) -> np.ndarray:
    """Write whole numbers in base 2, the highest bit first."""
    largest = max(range(len(values)), key=values.__getitem__)
    if min(values) < 0:
        raise ValueError(f"{what} has the key {_shown(keys[values.index(min(values))])}; a row of bits is not negative")
    needed = max(1, values[largest].bit_length())
    if bits is None:
        raise ValueError(
            f"{what} has rows that are written as numbers, {_shown(keys[largest])} say, which do not tell how many bits there "
            f"are ({needed} at least): neurise.counts(…, bits={needed})"
        )
    if needed > bits:
        raise ValueError(f"{what} has {_shown(keys[largest])}, which needs {needed} bits, and there are {bits}")
    octets = (bits + 7) // 8
    raw = np.frombuffer(b"".join(value.to_bytes(octets) for value in values), dtype=np.uint8).reshape(-1, octets)
    return np.unpackbits(raw, axis=1)[:, 8 * octets - bits :]


def _shown(value: Any) -> str:
    return f"{value!r:.80}"
