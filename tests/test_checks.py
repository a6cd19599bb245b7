"""Values that a user passes: good ones come back in Python's types, bad ones are named with what is wanted."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from neurise import checks

NO_NUMBERS = [None, "1", True, False, np.True_, np.False_, [1], 1j, math.nan, np.float32("nan"), -math.inf]
"""What no check of a number takes."""


def bad(*values: Any) -> Any:
    return pytest.mark.parametrize("value", [*values, *NO_NUMBERS], ids=repr)


def refused(message: str, value: Any) -> Any:
    """Expect an error that names the parameter, what is wanted and what was given."""
    return pytest.raises(ValueError, match=re.escape(f"{message}, got {value!r}"))


@pytest.mark.parametrize("value", [0, -1.5, math.inf, np.int64(3), np.float32(2), Fraction(1, 2)], ids=repr)
def test_a_number_is_pythons_or_numpys(value: Any) -> None:
    assert checks.is_number(value)


@pytest.mark.parametrize("value", [None, "1", True, False, np.True_, 1j, [1], np.array([1.0])], ids=repr)
def test_flags_text_and_lists_are_no_numbers(value: Any) -> None:
    assert not checks.is_number(value)


@pytest.mark.parametrize("value", [8, 8.0, np.int64(8), np.uint8(8), np.float32(8)], ids=repr)
def test_positive_whole_takes_whole_numbers_of_any_type(value: Any) -> None:
    for check in (checks.positive_whole, checks.whole):
        found = check("n", value)
        assert (found, type(found)) == (8, int)


@bad(0, -1, 2.5, math.inf, np.float64("inf"), np.int64(-3), 0.0)
def test_positive_whole_refuses_the_others(value: Any) -> None:
    with refused("n must be a positive whole number", value):
        checks.positive_whole("n", value)


@pytest.mark.parametrize("value", [0, 0.0, np.int8(0), np.float32(0), -0.0], ids=repr)
def test_whole_takes_zero_too(value: Any) -> None:
    found = checks.whole("n", value)
    assert (found, type(found)) == (0, int)


@bad(-1, 0.5, math.inf, np.int64(-3))
def test_whole_refuses_the_others(value: Any) -> None:
    with refused("n must be a whole number, 0 or more", value):
        checks.whole("n", value)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.5), math.nextafter(1, 0), Fraction(1, 3)], ids=repr)
def test_share_takes_numbers_from_zero_to_below_one(value: Any) -> None:
    found = checks.share("part", value)
    assert (found, type(found)) == (float(value), float)


@bad(1, 1.0, -1e-9, 2, math.inf, np.float32(1))
def test_share_refuses_the_others(value: Any) -> None:
    with refused("part must be in [0, 1)", value):
        checks.share("part", value)


@pytest.mark.parametrize("value", [1, 1e-300, np.float32(0.5), np.int64(7)], ids=repr)
def test_positive_takes_numbers_above_zero(value: Any) -> None:
    for finite in (False, True):
        found = checks.positive("rate", value, finite=finite)
        assert (found, type(found)) == (float(value), float)


def test_positive_takes_infinity_where_it_is_told_to() -> None:
    assert checks.positive("rate", math.inf, finite=False) == math.inf
    assert checks.positive("rate", np.float32("inf"), finite=False) == math.inf
    with refused("rate must be a positive number", math.inf):
        checks.positive("rate", math.inf)


@bad(0, -1, -0.0, np.float32(0))
@pytest.mark.parametrize("finite", [False, True])
def test_positive_refuses_the_others(value: Any, finite: bool) -> None:
    with refused("rate must be a positive number", value):
        checks.positive("rate", value, finite=finite)


@pytest.mark.parametrize("value", [0, 0.0, 3, np.float32(0.5)], ids=repr)
def test_not_negative_takes_zero_and_above(value: Any) -> None:
    found = checks.not_negative("decay", value)
    assert (found, type(found)) == (float(value), float)


@bad(-1e-9, math.inf, np.float64("inf"), -1)
def test_not_negative_refuses_the_others(value: Any) -> None:
    with refused("decay must be a number, not negative", value):
        checks.not_negative("decay", value)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_], ids=repr)
def test_flag_takes_true_and_false(value: Any) -> None:
    found = checks.flag("on", value)
    assert found == value
    assert type(found) is bool


@pytest.mark.parametrize("value", ["no", "True", "", 0, 1, 5, 1.0, None, math.nan, [], np.int64(1)], ids=repr)
def test_flag_refuses_text_and_numbers(value: Any) -> None:
    with refused("on must be True or False", value):
        checks.flag("on", value)


def test_one_of_takes_a_choice() -> None:
    assert checks.one_of("heads", "site", ("shared", "site")) == "site"


@pytest.mark.parametrize("value", ["sites", "", None, 1, True, ["site"], ("site",)], ids=repr)
def test_one_of_refuses_the_others(value: Any) -> None:
    with refused("heads must be one of 'shared', 'site'", value):
        checks.one_of("heads", value, ("shared", "site"))


def test_limits_may_be_left_open() -> None:
    assert checks.limits(None, None) == (None, None)
    steps, seconds = checks.limits(np.float64(8), np.int64(3))
    assert (steps, type(steps), seconds, type(seconds)) == (8, int, 3.0, float)
    assert checks.limits(None, 0.5) == (None, 0.5)
    assert checks.limits(5, None) == (5, None)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "10", True], ids=repr)
def test_limits_that_no_run_can_keep_are_refused(value: Any) -> None:
    with refused("max_steps must be a positive whole number", value):
        checks.limits(value, None)
    with refused("max_seconds must be a positive number", value):
        checks.limits(None, value)


@pytest.mark.parametrize("value", [0, -5, 2**63 - 1, -(2**63), np.int64(5), np.uint8(5)], ids=repr)
def test_seed_takes_whole_numbers_of_64_bits(value: Any) -> None:
    found = checks.seed(value)
    assert found == value
    assert type(found) is int


@bad(1.0, 1.5, 2**63, -(2**63) - 1, np.float64(1), math.inf)
def test_seed_refuses_the_others(value: Any) -> None:
    with refused("seed must be a whole number of at most 64 bits", value):
        checks.seed(value)


@pytest.mark.parametrize("value", [[(0, 1), (3, 2)], np.array([[0, 1], [3, 2]], dtype=np.uint8), ([0, 1], [3, 2])])
def test_pairs_become_an_array(value: Any) -> None:
    found = checks.pairs("graph", value, 4)
    assert found.tolist() == [[0, 1], [3, 2]]
    assert found.dtype == np.int64


@pytest.mark.parametrize("value", [[], np.empty((0, 2)), ()])
def test_no_pairs_are_pairs_too(value: Any) -> None:
    assert checks.pairs("graph", value, 4).shape == (0, 2)


@pytest.mark.parametrize(
    "value",
    [[0, 1], [[0, 1, 2]], [[0.0, 1.0]], [["0", "1"]], [[True, False]], [[[0, 1]]], [[math.nan, 1]], 3],
    ids=repr,
)
def test_what_is_no_list_of_pairs_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"graph must be pairs of sites, \(pairs, 2\) whole numbers; got "):
        checks.pairs("graph", value, 4)


@pytest.mark.parametrize("pair", [(1, 1), (0, 4), (-1, 2)])
def test_a_pair_that_cannot_be_is_named_with_its_row(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=rf"graph has \[{pair[0]}, {pair[1]}\] at row 1; .* from 0 to 3"):
        checks.pairs("graph", [(0, 1), pair], 4)


@pytest.mark.parametrize(
    ("value", "found"), [(None, (0, 1, 2)), ([2, 0, 1], (2, 0, 1)), (np.array([1, 0, 2], dtype=np.int8), (1, 0, 2))]
)
def test_order_names_each_site_once(value: Any, found: tuple[int, ...]) -> None:
    given = checks.order(value, 3)
    assert given == found
    assert all(type(place) is int for place in given)


@pytest.mark.parametrize(
    "value",
    [[0, 1], [0, 1, 1], [0, 1, 3], [1, 2, 3], [0.0, 1.0, 2.0], ["0", "1", "2"], [[0, 1, 2]], [True, False, 2.5], [], 0],
    ids=repr,
)
def test_order_refuses_the_others(value: Any) -> None:
    with pytest.raises(ValueError, match="order must name each of the sites 0 … 2 once, got"):
        checks.order(value, 3)
