from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neurise.alphabet import Alphabet
from neurise.fields import Field

MATRICES = {
    "ints": np.array([[3, 7, 3], [7, 3, 5]]),
    "spins": np.array([[-1, 1], [1, -1]], dtype=np.int8),
    "booleans": np.array([[True, False], [False, False]]),
    "bytes as numbers": np.array([[0, 255], [7, 7]], dtype=np.uint8),
    "large unsigned": np.array([[0, 2**40], [7, 7]], dtype=np.uint64),
    "whole floats": np.array([[1.0, -2.0], [0.0, 1.0]]),
    "half floats": np.array([[1.0, -2.0], [0.0, 1.0]], dtype=np.float16),
    "other byte order": np.array([[1, 300], [0, 1]], dtype=">i4"),
    "letters": np.array([list("ACGT"), list("GATT")]),
    "letters beyond ASCII": np.array([["σ", "é"], ["é", "😀"]]),
    "byte letters": np.array([[b"A", b"C"], [b"\xe9", b"A"]]),
    "columns first": np.asfortranarray(np.array([list("ACG"), list("GAT")])),
    "every other column": np.array([list("AxCxG"), list("GxAxT")])[:, ::2],
    "far apart": np.array([[-(2**62), 2**62], [0, 0]]),
}


@pytest.mark.parametrize("data", MATRICES.values(), ids=MATRICES)
def test_symbols_come_back_as_they_went_in(data: np.ndarray) -> None:
    alphabet = Alphabet.of(data)
    tokens = alphabet.encode(data)
    assert tokens.dtype == torch.uint8
    assert int(tokens.max()) < len(alphabet)
    back = alphabet.decode(tokens)
    assert back.dtype.kind == data.dtype.kind
    assert back.dtype.itemsize == data.dtype.itemsize
    assert back.tolist() == data.tolist()


def test_tokens_number_the_symbols_in_order() -> None:
    assert Alphabet.of([[5, -3], [0, 5]]).encode([[5, -3], [0, 5]]).tolist() == [[2, 0], [1, 2]]
    assert Alphabet.of([["b", "a"]]).encode([["a", "b"]]).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "data",
    [
        [["A", "C"], ["C", "A"]],
        (("A", "C"), ("C", "A")),
        np.array([["A", "C"], ["C", "A"]], dtype=object),
        np.array([["A", "C"], ["C", "A"]], dtype="U7"),  # room for more letters than there are
        [np.array(["A", "C"]), np.array(["C", "A"])],
    ],
)
def test_letters_in_any_wrapping_become_an_array_of_letters(data: Any) -> None:
    alphabet = Alphabet.of(data)
    back = alphabet.decode(alphabet.encode(data))
    assert back.dtype == np.dtype("U1")
    assert back.tolist() == [["A", "C"], ["C", "A"]]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([[1, 2], [2, 2]], "i"),
        ([[True, False], [True, True]], "b"),
        (np.array([[1, 2], [2, 1]], dtype=object), "i"),
        (np.array([[True, False]], dtype=object), "b"),
        (np.array([[1.0, 2.0]], dtype=object), "f"),
        (np.array([[b"A", b"C"]], dtype=object), "S"),
        (np.ma.array([[1, 2], [2, 1]]), "i"),
    ],
)
def test_numbers_in_any_wrapping_keep_their_kind(data: Any, kind: str) -> None:
    alphabet = Alphabet.of(data)
    back = alphabet.decode(alphabet.encode(data))
    assert back.dtype.kind == kind
    assert back.tolist() == np.asarray(data).tolist()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.bool, torch.float32, torch.float16])
def test_a_tensor_gives_a_tensor_of_its_type(dtype: torch.dtype) -> None:
    data = torch.tensor([[0, 1, 1], [1, 0, 0]]).to(dtype)
    alphabet = Alphabet.of(data)
    back = alphabet.decode(alphabet.encode(data))
    assert isinstance(back, torch.Tensor)
    assert back.dtype == dtype
    assert torch.equal(back, data)


def test_a_tensor_type_that_numpy_lacks_gives_floats() -> None:
    data = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.bfloat16, requires_grad=True)
    alphabet = Alphabet.of(data)
    assert alphabet.decode(alphabet.encode(data)).dtype == torch.float32


def test_numbers_of_another_type_are_the_same_symbols() -> None:
    alphabet = Alphabet.of(np.array([[-1, 1]], dtype=np.int8))
    for same in ([[1.0, -1.0]], torch.tensor([[1, -1]]), np.array([[1, -1]], dtype=object)):
        assert alphabet.encode(same).tolist() == [[1, 0]]


def test_letters_and_bytes_are_the_same_symbols() -> None:
    alphabet = Alphabet.of(np.array([[b"A", b"\xe9"]]))
    assert alphabet.codes == (65, 233)
    assert alphabet.encode([["é", "A"]]).tolist() == [[1, 0]]


def test_a_named_alphabet_may_have_symbols_that_the_data_lacks() -> None:
    alphabet = Alphabet.of([["A", "T"], ["T", "A"]], "ACGT-")
    assert alphabet.symbols.tolist() == list("ACGT-")  # in the order that was named, not sorted
    assert alphabet.encode([["T", "-"]]).tolist() == [[3, 4]]
    assert alphabet.decode(torch.tensor([[4, 0]])).tolist() == [["-", "A"]]


@pytest.mark.parametrize(
    "names", [[-1, 0, 1], (-1, 0, 1), range(-1, 2), np.array([-1, 0, 1]), torch.tensor([-1, 0, 1]), [-1.0, 0.0, 1.0]]
)
def test_an_alphabet_is_named_by_any_sequence(names: Any) -> None:
    alphabet = Alphabet.of([[1, -1]], names)
    assert alphabet.codes == (-1, 0, 1)
    assert alphabet.symbols.dtype.kind == "i"  # the data's type, whatever the names came in


@pytest.mark.parametrize("names", ["CA", b"CA", [b"C", b"A"], np.array([b"C", b"A"])])
def test_letters_are_named_by_text_or_bytes(names: Any) -> None:
    for data in ([["A", "C"]], np.array([[b"A", b"C"]])):
        assert Alphabet.of(data, names).encode(data).tolist() == [[1, 0]]


def test_256_symbols_are_all_told_apart() -> None:
    data = np.random.default_rng(0).permutation(256).reshape(32, 8) - 100
    alphabet = Alphabet.of(data)
    assert np.array_equal(alphabet.decode(alphabet.encode(data)), data)


@pytest.mark.parametrize("data", MATRICES.values(), ids=MATRICES)
def test_the_description_for_files_is_complete(data: np.ndarray) -> None:
    alphabet = Alphabet.of(data)
    assert Alphabet.from_field(Field(alphabet.to_dict(), "alphabet"), len(alphabet)) == alphabet


DTYPES = st.sampled_from(["?", "i1", "u1", "i8", "f4", "f8", "U1", "S1", "O letters", "tensor"])


@given(data=st.data(), rows=st.integers(1, 6), sites=st.integers(1, 5), dtype=DTYPES)
@settings(max_examples=150, deadline=None)
def test_round_trip_of_any_shape_and_kind(data: st.DataObject, rows: int, sites: int, dtype: str) -> None:
    entry: st.SearchStrategy[Any]
    if dtype == "?":
        entry = st.booleans()
    elif dtype in ("U1", "O letters"):
        entry = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    elif dtype == "S1":
        entry = st.integers(1, 255).map(lambda code: bytes([code]))
    elif dtype in ("f4", "f8"):
        entry = st.integers(-(2**23), 2**23)
    elif dtype == "i8":
        entry = st.integers(-(2**63), 2**63 - 1)
    else:
        entry = st.integers(0, 127)
    table = data.draw(st.lists(st.lists(entry, min_size=sites, max_size=sites), min_size=rows, max_size=rows))
    kind = object if dtype == "O letters" else dtype
    given_data: Any = torch.tensor(table) if dtype == "tensor" else np.array(table, dtype=kind)
    alphabet = Alphabet.of(given_data)
    tokens = alphabet.encode(given_data)
    assert tokens.shape == (rows, sites)
    assert alphabet.decode(tokens).tolist() == given_data.tolist()
    assert len(alphabet) == len({value for row in given_data.tolist() for value in row})
