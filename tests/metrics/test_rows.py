from typing import Any

import numpy as np
import pytest
import torch

from neurise.metrics import _rows
from neurise.metrics._rows import spins, tokens

PAIRS = {
    "bool and int": (np.array([[True, False]]), np.array([[0, 2]]), [0, 1, 2], [1, 0], [0, 2]),
    "int8 and uint8": (np.array([[-1, 1]], np.int8), np.array([[200, 1]], np.uint8), [-1, 1, 200], [0, 1], [2, 1]),
    "int and float": (np.array([[0, 1]]), np.array([[1.0, 3.0]], np.float32), [0, 1, 3], [0, 1], [1, 2]),
    "int64 and uint64": (np.array([[-5, 2**60]]), np.array([[7, 7]], np.uint64), [-5, 7, 2**60], [0, 2], [1, 1]),
    "tensor and list": (torch.tensor([[1, 0]]), [[0, 0]], [0, 1], [1, 0], [0, 0]),
    "bytes and text": (np.array([[b"b", b"a"]]), np.array([["a", "ω"]]), ["a", "b", "ω"], [1, 0], [0, 2]),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_symbols_of_two_types_become_one_alphabet(kind: str) -> None:
    first, second, symbols, mine, theirs = PAIRS[kind]
    for x, y, expected in ((first, second, (mine, theirs)), (second, first, (theirs, mine))):
        known = tokens(samples=x, reference=y)
        assert known.alphabet.symbols.tolist() == symbols
        assert tuple(part.tolist() for part in known.sets) == tuple([row] for row in expected)
        assert known.space.sites == 2
        assert known.space.states == len(symbols)


def test_a_named_alphabet_may_hold_more_than_the_type_of_the_rows() -> None:
    known = tokens([2, 0, 1], samples=np.array([[True, False]]))
    assert known.sets[0].tolist() == [[2, 1]]
    assert tokens("ba", samples=np.array([["a", "b"]])).sets[0].tolist() == [[1, 0]]


def test_large_sets_are_translated_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(3, 6, (50, 4))
    monkeypatch.setattr(_rows, "MEMORY_BUDGET", 32 * 4 * 7)
    assert np.array_equal(tokens(samples=rows).sets[0].numpy(), rows - 3)
    rows[37, 2] = 9
    with pytest.raises(ValueError, match="samples has the symbol 9 at row 37, column 2"):
        tokens([3, 4, 5], samples=rows)


def test_spins_are_minus_and_plus_one() -> None:
    assert spins(torch.tensor([[0, 1]], dtype=torch.uint8)).tolist() == [[-1, 1]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"samples": np.zeros((2, 3)), "reference": np.zeros((2, 4))}, "samples has 3 sites, and reference has 4"),
        ({"samples": np.zeros((2, 3)), "other": np.full((2, 3), "a")}, "samples and other cannot be compared"),
        ({"samples": np.zeros((0, 3))}, "samples is empty"),
        ({"samples": np.zeros(3)}, "samples must be a matrix"),
        ({"samples": np.array([[0, 0.5]])}, r"samples has 0\.5 at row 0, column 1"),
        ({"samples": np.zeros((3, 2)), "reference": np.zeros((1, 2))}, "reference has 1 row; at least 2 are needed"),
        ({"samples": np.arange(200)[:, None], "reference": np.arange(300, 400)[:, None]}, "300 different symbols"),
    ],
    ids=["width", "letters", "empty", "vector", "fraction", "few", "many"],
)
def test_what_cannot_be_compared_is_refused(rows: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tokens(least=2 if "reference" in message else 1, **rows)
