"""Counts of bit strings: every way to write them gives the same rows, and what is wrong is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import neurise
from neurise.holdings import is_strings

ROWS = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1]])
TIMES = [37, 3, 10]
REPEATED = np.repeat(ROWS, TIMES, axis=0)

WAYS: dict[str, Any] = {
    "strings": {"0101": 37, "1100": 3, "0001": 10},
    "tuples": {(0, 1, 0, 1): 37, (1, 1, 0, 0): 3, (0, 0, 0, 1): 10},
    "counter": Counter({"0101": 37, "1100": 3, "0001": 10}),
    "registers": {"01 01": 37, "11 00": 3, "00 01": 10},
    "base 16": neurise.counts({"0x5": 37, "0xC": 3, "0x1": 10}, bits=4),
    "numbers": neurise.counts({5: 37, 12: 3, np.int64(1): 10}, bits=4),
    "little": neurise.counts({"1010": 37, "0011": 3, "1000": 10}, endian="little"),
    "little numbers": neurise.counts({"0xa": 37, "0x3": 3, "0x8": 10}, endian="little", bits=4),
    "list": ["0101"] * 37 + ["1100"] * 3 + ["0001"] * 10,
    "array": np.array(["0101"] * 37 + ["1100"] * 3 + ["0001"] * 10),
    "a zero": {"0101": 37, "1100": 3, "0001": 10, "1111": 0},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_counts_is_the_same_law(way: str) -> None:
    expected = neurise.Memorize().fit(REPEATED)
    model = neurise.Memorize().fit(WAYS[way])
    np.testing.assert_allclose(model.log_prob(ROWS), expected.log_prob(ROWS))
    assert model.sample(3, seed=0).dtype.kind in "iu"
    assert neurise.Independent().fit(REPEATED).score(WAYS[way]) == pytest.approx(
        neurise.Independent().fit(REPEATED).score(REPEATED)
    )


def test_the_model_tells_how_many_bits_a_number_has() -> None:
    model = neurise.Independent().fit(WAYS["strings"])
    np.testing.assert_array_equal(model.log_prob({"0x5": 1, "0x1": 2}), model.log_prob(ROWS[[0, 2]]))
    with pytest.raises(ValueError, match="'0x10', which needs 5 bits, and there are 4"):
        model.log_prob({"0x10": 1})


def test_little_end_first_is_the_row_reversed() -> None:
    """Qiskit writes the bits of several registers as one string with qubit 0 last."""
    held = neurise.counts({"10 011": 5, "00 001": 1}, endian="little")
    assert held.X.tolist() == [[1, 1, 0, 0, 1], [1, 0, 0, 0, 0]]
    assert held.weights is not None
    assert held.weights.tolist() == [5, 1]
    assert "2 rows of 5 sites, counted 6 times" in repr(held)


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 65, 130])
def test_numbers_of_any_width(bits: int) -> None:
    rng = np.random.default_rng(bits)
    rows = np.concatenate([rng.integers(0, 2, (5, bits)), np.ones((1, bits), int)])
    texts = ["".join(map(str, row)) for row in rows]
    numbers = {hex(int(text, 2)): 1 for text in texts}
    found = neurise.counts(numbers, bits=bits).X
    expected = np.array([list(map(int, text)) for text in dict.fromkeys(texts)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"01": 1, "011": 2}, r"'011' of 3 bits beside '01' of 2"),
        ({"01": 1, "10": -3}, r"-3 for the key '10'"),
        ({"01": 1, "10": float("nan")}, r"nan for the key '10'"),
        ({"01": 1, "10": "many"}, r"'many' for the key '10'"),
        ({"01": 1, "12": 2}, r"'12', whose character 1 is '2'"),
        ({"01": 1, "0 2": 2}, r"whose character 2 is '2'"),
        ({"01": 0}, "all of its 1 counts are zero"),
        ({}, "empty dict"),
        ({"0x5": 1}, r"neurise.counts\(…, bits=3\)"),
        ({5: 1, -2: 2}, "key -2"),
        ({"01": 1, "0x1": 2}, "use one way of writing"),
        ({"0xg": 1}, "no number in base 16"),
        ({"01": 1, 2: 2}, "keys are all bit strings"),
        ({(0, 1): 1, (1,): 2}, r"\(1,\) of 1 sites beside \(0, 1\)"),
        (["01", "0"], "'0' of 1 bits"),
        (["01", 1], "has 1 at row 1, and text before it"),
        ("0101", r"write \[X\] for one row"),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        neurise.Independent().fit(wrong)


def test_options_of_counts() -> None:
    with pytest.raises(ValueError, match="endian must be 'big'"):
        neurise.counts({"01": 1}, endian="middle")
    with pytest.raises(ValueError, match="2 bits, '01' say, and 3 are needed"):
        neurise.counts({"01": 1}, bits=3)
    with pytest.raises(ValueError, match="a list of bit strings; got 7"):
        neurise.counts(7)  # type: ignore[arg-type]


def test_metrics_count_rows_as_often_as_they_were_seen() -> None:
    other = {"0101": 30, "1100": 10, "0001": 10}
    repeated = np.repeat(ROWS, [30, 10, 10], axis=0)
    by_rows = neurise.metrics.total_variation(REPEATED, repeated)
    by_counts = neurise.metrics.total_variation(WAYS["strings"], other)
    assert (float(by_counts), by_counts.error) == (float(by_rows), by_rows.error)
    assert neurise.metrics.total_variation(WAYS["list"], other) == by_rows
    model = neurise.Independent().fit(REPEATED)
    likelihood = neurise.metrics.log_likelihood(model, WAYS["strings"])
    expected = neurise.metrics.log_likelihood(model, REPEATED)
    assert float(likelihood.nats) == pytest.approx(float(expected.nats))
    assert likelihood.nats.error == pytest.approx(expected.nats.error)
    with pytest.raises(ValueError, match="weights that are no counts"):
        neurise.metrics.total_variation({"01": 0.5, "10": 0.5}, {"01": 1})


def test_evaluation_and_structure_take_counts() -> None:
    model = neurise.Independent().fit(REPEATED)
    new = {"0101": 9, "1100": 4, "0001": 5}
    found = neurise.evaluate(model, new, samples=50, baselines=False)
    expected = neurise.evaluate(model, np.repeat(ROWS, [9, 4, 5], axis=0), samples=50, baselines=False)
    assert found["log_likelihood"].value == pytest.approx(expected["log_likelihood"].value)
    own = neurise.structure.recover(model, new)
    np.testing.assert_allclose(own.fields, neurise.structure.recover(model, np.repeat(ROWS, [9, 4, 5], axis=0)).fields)


def test_strings_of_more_than_two_outcomes() -> None:
    held = neurise.counts({"031": 30, "12 0": 10}, states=4)
    assert held.X.tolist() == [[0, 3, 1], [1, 2, 0]]
    model = neurise.Independent().fit(neurise.counts({"01": 30, "12": 10}, states=4))
    assert model.schema_.space.states == 4  # the outcome 3 never came, and is possible
    assert neurise.counts({"031": 1}, states=4, endian="little").X.tolist() == [[1, 3, 0]]


@pytest.mark.parametrize(
    ("data", "states", "message"),
    [
        ({"031": 1}, 2, r"character 1 is '3'; a bit string is written in 0 and 1. neurise.counts\(…, states=4\)"),
        ({"031": 1}, 3, "character 1 is '3'; 3 states are written in 012"),
        ({"0x1": 1}, 4, "'0x1'; numbers are rows of bits, and states is 4"),
        ({5: 1}, 4, "the key 5; numbers are rows of bits, and states is 4"),
        ({"01": 1}, 11, "states must be a whole number from 2 to 10, got 11"),
    ],
)
def test_outcomes_that_do_not_fit_are_named(data: dict[Any, int], states: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        neurise.counts(data, states=states)


def test_a_large_tensor_is_no_list_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """To iterate over a tensor makes a tensor of every number: 33 million for the law of 25 spins."""

    def walked(self: torch.Tensor) -> Iterator[torch.Tensor]:
        raise AssertionError("the tensor was iterated over")

    monkeypatch.setattr(torch.Tensor, "__iter__", walked)
    assert not is_strings(torch.zeros(5))
    rows = np.array([[0, 1], [1, 1]])
    found = neurise.metrics.total_variation(rows, torch.tensor([0.0, 0.5, 0.0, 0.5]), alphabet=[0, 1])
    assert float(found) == pytest.approx(0.0)
