"""Numbers as they stand on the page."""

from __future__ import annotations

import pytest

from neurise.report._numbers import as_printed, readable, with_spread


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012345, "0.0123"),
        (1.5e-6, "1.50×10⁻⁶"),
        (-2e-9, "−2.00×10⁻⁹"),
        (-0.0045, "−0.0045"),
        (-12345.6, "−12,300"),
        (12.345, "12.3"),
        (12345.6, "12,300"),
        (3.21e9, "3.21×10⁹"),
        (None, "–"),
        (float("nan"), "–"),
        (999.9, "1000"),
    ],
)
def test_three_digits_are_readable(value: float | None, text: str) -> None:
    assert readable(value) == text


@pytest.mark.parametrize(
    ("mean", "spread", "text"),
    [
        (0.4123, 0.0123, "0.412 ± 0.012"),
        (12.3, 4.56, "12.3 ± 4.6"),
        (-0.001, 0.002, "−0.0010 ± 0.0020"),
        (1.5e-6, 2e-7, "(1.50 ± 0.20)×10⁻⁶"),
        (0.0734711, 0.0000039, "0.07347 ± 3.9×10⁻⁶"),
        (4.0310, 0.0068, "4.031 ± 0.007"),
        (1234.5, 0.3, "1234 ± 0.3"),
        (0.5, None, "0.5"),
        (0.5, 0.0, "0.5"),
        (None, None, "–"),
    ],
)
def test_a_mean_and_its_spread_end_at_the_same_place(mean: float | None, spread: float | None, text: str) -> None:
    assert with_spread(mean, spread) == text


@pytest.mark.parametrize(
    ("value", "text"), [(65.03, "65.03"), (1.0e-2, "0.01"), (8.2e-5, "8.2×10⁻⁵"), (1.18e-5, "1.18×10⁻⁵"), (None, "–")]
)
def test_printed_numbers_keep_their_digits(value: float | None, text: str) -> None:
    assert as_printed(value) == text
