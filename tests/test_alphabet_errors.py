"""What is no matrix of symbols is refused, by an error that shows the value and its place."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from neurise.alphabet import Alphabet

NAN = float("nan")

REFUSED = {
    "empty": (np.zeros((0, 3)), r"X is empty.*\(0, 3\)"),
    "no columns": (np.zeros((3, 0)), r"X is empty.*\(3, 0\)"),
    "empty list": ([], r"matrix.*\(0,\)"),
    "a vector": ([1, 2, 3], r"matrix.*\(3,\)"),
    "a cube": (np.zeros((2, 2, 2)), r"matrix.*\(2, 2, 2\)"),
    "a scalar": (5, r"matrix.*\(\)"),
    "rows as text": (["ACGT", "AACC"], r"matrix.*\(2,\)"),
    "NaN": ([[0, 1, 0], [1, NAN, 0]], "nan at row 1, column 1.*missing"),
    "NaN in a tensor": (torch.tensor([[0, NAN]]), "nan at row 0, column 1.*missing"),
    "infinity": ([[0, 1], [float("-inf"), 0]], "-inf at row 1, column 0.*not finite"),
    "fractions": ([[0, 1], [0, 0.5]], r"0\.5 at row 1, column 1.*whole number"),
    "a float too large": ([[0, 1e300]], r"1e\+300 at row 0, column 1.*too large"),
    "unsigned too large": (np.array([[0, 2**63]], dtype=np.uint64), f"{2**63} at row 0, column 1.*64-bit"),
    "an int too large": (np.array([[0, 2**70]], dtype=object), f"{2**70} at row 0, column 1.*too large"),
    "ragged": ([[1, 2], [3, 4], [5]], "ragged: row 0 has 2 entries and row 2 has 1"),
    "ragged arrays": ([np.array([1, 2]), np.array([1])], "ragged: row 0 has 2 entries and row 1 has 1"),
    "ragged tensors": ([torch.tensor([1, 2]), torch.tensor([1])], "ragged: row 0 has 2 entries and row 1 has 1"),
    "too deep": ([[1, [2]], [3, 4]], "not a matrix of symbols"),
    "None": ([[1, 2], [None, 2]], "None at row 1, column 0.*missing"),
    "None in a table": (np.array([["A", None]], dtype=object), "None at row 0, column 1.*missing"),
    "NaN among letters": ([["A", "C"], ["A", NAN]], "nan at row 1, column 1.*missing"),
    "a table's NA": (np.array([["A", pd.NA]], dtype=object), "<NA> at row 0, column 1"),
    "a table's NaN": (pd.DataFrame({"a": [1, None], "b": [1, 2]}), "nan at row 1, column 0.*missing"),
    "a number among letters": ([["A", "C"], [1, "A"]], "1 at row 1, column 0.*a number, though others are text"),
    "a boolean among letters": ([["A", True]], "True at row 0, column 1.*a number, though others are text"),
    "numbers and letters of a table": (pd.DataFrame({"a": [1, 2], "b": ["A", "C"]}), "1 at row 0, column 0"),
    "two letters": ([["A", "C"], ["A", "CG"]], "'CG' at row 1, column 1.*single letter"),
    "two letters of an array": (np.array([["A", "CG"]]), "'CG' at row 0, column 1.*single letter"),
    "no letter": (np.array([["A", ""]]), "'' at row 0, column 1.*single letter"),
    "two bytes": (np.array([[b"A", b"CG"]]), "b'CG' at row 0, column 1.*single letter"),
    "objects": (np.array([[{}, 1]], dtype=object), r"\{\} at row 0, column 0.*neither a number nor text"),
    "complex numbers": (np.array([[1j, 1]]), "complex128"),
    "dates": (np.array([["2020-01-01"]], dtype="M8[D]"), "datetime64"),
    "masked": (np.ma.array([[1, 2], [1, 2]], mask=[[0, 0], [0, 1]]), "masked entry at row 1, column 1"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Alphabet.of(data)


def test_257_symbols_are_too_many() -> None:
    with pytest.raises(ValueError, match="257 different symbols; at most 256"):
        Alphabet.of(np.arange(257)[:, None])
    with pytest.raises(ValueError, match="3000 different symbols"):
        Alphabet.of(np.arange(3000)[:, None] * 2**40)
    with pytest.raises(ValueError, match="between 1 and 256"):
        Alphabet.of([[1, 2]], range(257))


@pytest.mark.parametrize(
    ("fitted", "data", "message"),
    [
        ([[0, 1], [1, 2]], [[0, 1], [2, 5]], r"symbol 5 at row 1, column 1, .*\[0, 1, 2\]"),
        ([[-1, 1]], [[0, 1]], r"symbol 0 at row 0, column 0, .*\[-1, 1\]"),
        ([["A", "C"]], [["A", "N"]], r"symbol 'N' at row 0, column 1, .*\['A', 'C'\]"),
        ([["A", "C"]], np.array([["A", "N"]], dtype=object), r"symbol 'N' at row 0, column 1"),
        ([[True, False]], [[2, 0]], r"symbol 2 at row 0, column 0, .*\[False, True\]"),
    ],
)
def test_an_unseen_symbol_is_named_with_its_place(fitted: Any, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message + ".*alphabet="):
        Alphabet.of(fitted).encode(data)


def test_the_alphabet_in_a_message_stays_short() -> None:
    with pytest.raises(ValueError, match=re.escape("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]")):
        Alphabet.of(np.arange(200)[:, None]).encode([[777]])


def test_letters_are_no_numbers_even_where_their_codes_agree() -> None:
    with pytest.raises(ValueError, match="X holds numbers, but the alphabet is"):
        Alphabet.of([["A", "C"]]).encode([[65, 67]])
    with pytest.raises(ValueError, match="X holds letters, but the alphabet is"):
        Alphabet.of([[65, 67]]).encode([["A", "C"]])


def test_the_name_of_what_is_wrong_is_the_callers() -> None:
    with pytest.raises(ValueError, match="validation has the symbol 3"):
        Alphabet.of([[0, 1]]).encode([[3, 1]], "validation")


def test_the_number_of_columns_is_checked() -> None:
    with pytest.raises(
        ValueError, match="X has 3 features, but neurise is expecting 2 features as input, one per site"
    ):
        Alphabet.of([[0, 1]]).encode([[0, 1, 1]], sites=2)


@pytest.mark.parametrize(
    ("data", "names", "message"),
    [
        ([[0, 1]], [0, 1, 1], "alphabet has 1 at position 2.*second time"),
        ([["A", "C"]], "ACA", "alphabet has 'A' at position 2.*second time"),
        ([[0, 1]], [], r"between 1 and 256 symbols.*\(0,\)"),
        ([[0, 1]], [[0, 1], [2, 3]], r"between 1 and 256 symbols.*\(2, 2\)"),
        ([[0, 1]], 2, "sequence of symbols.*got 2"),
        ([[0, 1]], {0, 1}, "sequence of symbols"),
        ([[0, 1]], "01", "alphabet names letters, but X holds numbers"),
        ([["A", "C"]], [65, 67], "alphabet names numbers, but X holds letters"),
        ([["A", "C"]], ["A", "CG"], "'CG' at position 1.*single letter"),
        ([["A", "C"]], ["A", 1], "1 at position 1.*a number, though others are text"),
        ([[0, 1]], [0, None], "None at position 1.*missing"),
        ([[0, 1]], [0, 0.5], r"0\.5 at position 1.*whole number"),
        (np.array([[0, 1]], dtype=np.uint8), [-1, 0, 1], "-1 at position 0.*uint8, cannot hold"),
        (np.array([[0, 1]], dtype=np.int8), [0, 1, 200], "200 at position 2.*int8, cannot hold"),
        (np.array([[0, 1]], dtype=bool), [0, 1, 2], "2 at position 2.*bool, cannot hold"),
        (np.array([[0, 1]], dtype=np.float16), [0, 1, 2049], "2049 at position 2.*float16, cannot hold"),
        (np.array([[b"A", b"C"]]), "ACσ", "'σ' at position 2.*cannot hold"),
    ],
)
def test_an_alphabet_that_cannot_be_is_refused(data: Any, names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Alphabet.of(data, names)
