"""Rows as regressions see them."""

import pytest
import torch

from neurise.energies import regressions
from neurise.rows import Rows

CPU = torch.device("cpu")


def test_rows_beyond_the_numbers_that_are_looked_at_are_left_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "MOST_NUMBERS", 2 * 5)
    rows = 2**24 + 4  # whole numbers of 32-bit floats end before
    place = regressions.sample_of(Rows(torch.zeros(rows, 1, dtype=torch.uint8)), 2, CPU).place
    assert place.tolist() == [round(k * (rows - 1) / 4) for k in range(5)]


def test_two_states_are_one_number_and_more_are_one_each() -> None:
    rows = Rows(torch.tensor([[0, 1, 1], [1, 0, 1]], dtype=torch.uint8), None, torch.tensor([3.0, 1.0]).double())
    bits = regressions.sample_of(rows, 2, CPU)
    assert bits.outcomes == 1
    assert bits.features.tolist() == [[-0.5, 0.5, 0.5], [0.5, -0.5, 0.5]]
    assert bits.weight.tolist() == [0.75, 0.25]
    assert bits.count.tolist() == [3.0, 1.0]
    four = regressions.sample_of(rows, 4, CPU)
    assert four.outcomes == 4
    assert four.features[0].view(3, 4).tolist() == [[0.75, -0.25, -0.25, -0.25], *[[-0.25, 0.75, -0.25, -0.25]] * 2]
