"""Axes: where a value lies, and what is written beside the ticks."""

from __future__ import annotations

import pytest

from neurise.report._axis import Axis, axis


@pytest.mark.parametrize(
    "values", [[1e-3, 1e2], [0.2, 0.9], [0.54, 0.57], [0.05, 0.2], [100, 320, 1000, 100_000], [5.0], [1e-9, 1e9]]
)
def test_a_logarithmic_axis_holds_its_values_and_equal_ratios_are_equal_lengths(values: list[float]) -> None:
    made = axis(values, log=True)
    assert all(0 < made.place(value) < 1 for value in values)
    first, second, third = (made.place(made.low * 7**power) for power in range(3))
    assert third - second == pytest.approx(second - first)
    named = [text for _, text in made.ticks() if text]
    assert len(named) == len(set(named))
    assert 3 <= len(named) <= 12


@pytest.mark.parametrize("values", [[0, 4], [-3.0, 2.0], [7], [0.001, 0.0012], [0, 0]])
def test_an_even_axis_holds_its_values_and_its_ticks_are_where_they_say(values: list[float]) -> None:
    made = axis(values, log=False)
    assert all(0 <= made.place(value) <= 1 for value in values)
    ticks = made.ticks()
    assert 2 <= len(ticks) <= 7
    for place, text in ticks:
        assert made.place(float(text)) == pytest.approx(place)


def test_ticks_of_a_logarithmic_axis_are_where_they_say() -> None:
    made = Axis(0.02, 5000, True)
    named = [(place, text) for place, text in made.ticks() if text]
    assert [text for _, text in named] == ["0.1", "1", "10", "100", "1,000"]
    for place, text in named:
        assert made.place(float(text.replace(",", ""))) == pytest.approx(place)


def test_what_is_not_positive_has_no_place_on_a_logarithmic_axis() -> None:
    made = axis([0.0, -1.0, 10.0, 100.0], log=True)
    assert made.place(0.0) is None
    assert made.place(-1.0) is None
    assert not axis([0.0, -1.0], log=True).log  # nothing to show: the axis is even


def test_names_stand_evenly() -> None:
    made = axis(["a", "b", "a", "c"], log=True)
    assert [text for _, text in made.ticks()] == ["a", "b", "c"]
    assert made.place("b") == pytest.approx(0.5)
