"""Validate single values that a user passes; every error names the value and what is wanted."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python's or numpy's; True and False do not count as numbers."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def positive_whole(name: str, value: Any) -> int:
    """Return a positive whole number as an int; 8.0 is one."""
    if is_number(value) and math.isfinite(value) and value == int(value) and value > 0:
        return int(value)
    raise ValueError(f"{name} must be a positive whole number, got {value!r}")


MOST_STEPS = 2**24
"""Steps of a chain, and sweeps, up to which a model is made: a chain that long takes hours already."""
MOST_LAYERS = 2**10
"""Layers of a network, and networks of a committee, up to which they are made one by one."""


def count(name: str, value: Any, most: int) -> int:
    """Return a positive whole number that is not beyond reason: what is made one by one must be made within seconds."""
    found = positive_whole(name, value)
    if found > most:
        raise ValueError(f"{name} must be at most {most:,}, got {found:,}; use a smaller one")
    return found


def whole(name: str, value: Any, most: int | None = None) -> int:
    """Return a whole number that is not negative, and not beyond ``most``, as an int."""
    if is_number(value) and value == 0:
        return 0
    try:
        found = positive_whole(name, value)
    except ValueError:
        raise ValueError(f"{name} must be a whole number, 0 or more, got {value!r}") from None
    return found if most is None else count(name, found, most)


def share(name: str, value: Any) -> float:
    """Return a number in [0, 1)."""
    if is_number(value) and 0 <= value < 1:  # a NaN fails this too
        return float(value)
    raise ValueError(f"{name} must be in [0, 1), got {value!r}")


def positive(name: str, value: Any, *, finite: bool = True) -> float:
    """Return a positive number; ``finite=False`` admits infinity."""
    if is_number(value) and value > 0 and (math.isfinite(value) or (not finite and value == math.inf)):
        return float(value)
    raise ValueError(f"{name} must be a positive number, got {value!r}")


def not_negative(name: str, value: Any) -> float:
    """Return a finite number that is not negative."""
    if is_number(value) and 0 <= value < math.inf:
        return float(value)
    raise ValueError(f"{name} must be a number, not negative, got {value!r}")


def flag(name: str, value: Any) -> bool:
    """Return True or False; text and numbers are refused, because "no" and 5 would both count as true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}")


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """Return a value that is among the choices."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def limits(max_steps: Any, max_seconds: Any) -> tuple[int | None, float | None]:
    """Return limits that a run can keep; None is no limit."""
    seconds = None if max_seconds is None else positive("max_seconds", max_seconds)
    return None if max_steps is None else positive_whole("max_steps", max_steps), seconds


def seed(value: Any) -> int:
    """Return a whole number of at most 64 bits; numpy's are as good as Python's."""
    if not isinstance(value, bool) and isinstance(value, numbers.Integral) and -(2**63) <= int(value) < 2**63:
        return int(value)
    raise ValueError(f"seed must be a whole number of at most 64 bits, got {value!r}")


def pairs(name: str, value: Any, sites: int) -> np.ndarray:
    """Return pairs of different sites as an array, (pairs, 2)."""
    given = np.asarray(value)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be pairs of sites, (pairs, 2) whole numbers; got {given.dtype} of shape {given.shape}"
        )
    wrong = (given < 0).any(1) | (given >= sites).any(1) | (given[:, 0] == given[:, 1])
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{name} has {given[row].tolist()} at row {row}; a pair is two different sites from 0 to {sites - 1}"
        )
    return given.astype(np.int64)


def order(value: Sequence[int] | None, sites: int) -> tuple[int, ...]:
    """Return an order that names each site once; None is the order of the columns."""
    if value is None:
        return tuple(range(sites))
    places = np.asarray(value)
    if places.ndim != 1 or places.dtype.kind not in "iu" or sorted(places.tolist()) != list(range(sites)):
        raise ValueError(f"order must name each of the sites 0 … {sites - 1} once, got {places.ravel().tolist()[:20]}")
    return tuple(places.tolist())


def orders(value: Any, sites: int) -> bool:
    """Return whether any order but the model's own is asked for; raise ValueError where the orders are none."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        return count("architecture__orders", value, MOST_LAYERS) > 1
    if not len(value):
        raise ValueError("orders is empty; give at least one order, or a number of them")
    found = set[tuple[int, ...]]()
    for number, own in enumerate(value):
        try:
            found.add(order(own, sites))
        except ValueError as error:
            raise ValueError(f"orders[{number}]: {error}") from error
    if len(found) < len(value):
        raise ValueError(f"orders has the same order twice among its {len(value)}: each must differ from the others")
    return True


def unseen(value: Any, states: int) -> float:
    """Return a probability that all symbols of a constant site but one can have."""
    if not is_number(value) or not 0 <= value < 1 / states:  # a NaN fails this too
        raise ValueError(
            f"unseen must be in [0, 1/{states}), got {value!r}: it is the probability of each symbol that a constant "
            f"site never held, and {states} states share what there is; 1e-6 is small, 0 makes them impossible"
        )
    return float(value)
