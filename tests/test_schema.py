"""The door: what comes in, what is dropped, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch

from neurise.fields import Field
from neurise.schema import Schema, learn_schema

X = np.array([[-1, 1, 1], [1, 1, -1], [1, 1, 1], [-1, 1, -1]])


def schema_of(X: Any = X, **given: Any) -> Schema:
    return learn_schema(X, **given)[0]


def test_tokens_stand_in_the_order_of_noising_and_come_back_in_the_users() -> None:
    schema, rows, held = learn_schema(X, order=[2, 0, 1])
    assert rows.x.tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]]
    assert schema.decode(rows.x).tolist() == X.tolist()
    assert held is None


def test_a_site_with_one_symbol_is_constant() -> None:
    assert schema_of(X).constant.tolist() == [-1, 1, -1]
    assert schema_of(X, order=[1, 2, 0]).constant.tolist() == [1, -1, -1]  # by place in the order, as tokens are


def test_a_site_that_varies_in_the_validation_set_is_not_constant() -> None:
    assert schema_of(X, validation=np.array([[1, -1, 1]])).constant.tolist() == [-1, -1, -1]


def test_rows_of_weight_zero_are_as_good_as_absent() -> None:
    odd = np.vstack([X, [[7, 7, 7]]])
    schema, rows, _ = learn_schema(odd, y=[0, 0, 1, 1, 5], weights=[1, 2, 3, 1, 0])
    assert schema.alphabet.symbols.tolist() == [-1, 1]
    assert schema.constant.tolist() == [-1, 1, -1]
    assert schema.labels is not None
    assert schema.labels.classes.tolist() == [0, 1]
    assert rows.x.tolist() == schema.encode(X).tolist()
    assert rows.weights is not None
    assert rows.weights.tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("wrap", [torch.tensor, np.array, list])
def test_rows_of_weight_zero_leave_the_kind_of_array_alone(wrap: Any) -> None:
    schema = schema_of(wrap(X.tolist()), weights=[1, 0, 1, 1])
    assert isinstance(schema.decode(torch.zeros((1, 3), dtype=torch.uint8)), torch.Tensor) == (wrap is torch.tensor)


def test_rows_of_weight_zero_are_checked_all_the_same() -> None:
    with pytest.raises(ValueError, match="inf at row 3, column 0"):
        learn_schema([[0, 1], [1, 1], [0, 0], [np.inf, 1]], weights=[1, 1, 1, 0])


def test_rows_of_weight_zero_are_dropped_from_the_validation_set() -> None:
    held = learn_schema(X, validation=(X, None, [0, 1, 0, 2]))[2]
    assert held is not None
    assert held.x.tolist() == schema_of().encode(X[[1, 3]]).tolist()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(4,\); got shape \(2,\)"),
        ([[1], [1], [1], [1]], r"got shape \(4, 1\)"),
        ([1, -2, 1, 1], r"-2\.0 at row 1"),
        ([1, 1, np.nan, 1], "nan at row 2"),
        ([1, 1, 1, np.inf], "inf at row 3"),
        ([0, 0, 0, 0], "all weights are zero"),
        (["a", "b", "c", "d"], "must be numbers"),
        ([1e308] * 4, "overflows"),
    ],
)
def test_impossible_weights_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learn_schema(X, weights=weights)
    with pytest.raises(ValueError, match=message):
        learn_schema(X, validation=(X, None, weights))


@pytest.mark.parametrize(
    "order",
    [[0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [0.9, 1.2, 2.0], [0.0, 1.0, 2.0], ["0", "1", "2"], 3, [[0, 1, 2]]],
)
def test_an_order_that_is_no_permutation_is_refused(order: Any) -> None:
    with pytest.raises(ValueError, match="each of the sites 0 … 2 once, got"):
        learn_schema(X, order=order)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ((), "got 0 parts"),
        ((X, None, None, None), "got 4 parts"),
        (X[:, :2], "validation has 2 features"),
        (X * 5, "validation has the symbol -5 at row 0, column 0"),
        (X[0], "validation must be a matrix"),
        ((X, [0, 1, 0, 1]), "fitted without labels"),
    ],
)
def test_impossible_validation_sets_are_refused(validation: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learn_schema(X, validation=validation)


def test_a_validation_set_needs_labels_where_the_data_has_them() -> None:
    with pytest.raises(ValueError, match="validation comes without any"):
        learn_schema(X, [0, 1, 0, 1], validation=X)


@pytest.mark.parametrize("rows", [X[:1], [[1, 2]]])
def test_one_row_is_too_few(rows: Any) -> None:
    with pytest.raises(ValueError, match="one row"):
        learn_schema(rows)


def test_one_row_of_weight_is_too_few() -> None:
    with pytest.raises(ValueError, match="one row"):
        learn_schema(X, weights=[0, 0, 3, 0])


@pytest.mark.parametrize("y", [[0, 1], [0, 1, 0, 1, 0]])
def test_labels_of_another_number_are_refused(y: list[int]) -> None:
    with pytest.raises(ValueError, match=f"y has {len(y)} labels for 4 rows"):
        learn_schema(X, y)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, bool, object])
def test_masked_entries_of_a_clamp_may_hold_anything(dtype: Any) -> None:
    schema = schema_of()
    clamp = np.ma.array(np.ones(3, dtype=dtype), mask=[True, True, False])
    values, given = schema.encode_clamp(clamp, 5)
    assert given.tolist() == [[False, False, True]]
    assert values[0, 2] == 1
    clamp.data[0] = 77
    assert schema.encode_clamp(clamp, 5)[1].tolist() == given.tolist()


@pytest.mark.parametrize(
    ("clamp", "message"),
    [
        (np.ma.array([1, 1]), r"shape \(2,\).*\(3,\) or \(5, 3\)"),
        (np.ma.array([3, 1, 1], mask=[0, 1, 1]), "clamp has the symbol 3 at row 0, column 0"),
        (np.ma.array(["A", "C", "C"], mask=[0, 1, 1]), "clamp holds letters"),
        ([2.5, None, None], "2.5 at row 0, column 0"),
        (np.ma.array([1, -1, 1], mask=[1, 0, 1]), "site 1, which is always 1"),
    ],
)
def test_impossible_clamps_are_refused(clamp: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schema_of().encode_clamp(clamp, 5)


def test_the_description_for_files_is_complete() -> None:
    schema = schema_of(y=["a", "b", "a", "b"], order=[2, 0, 1])
    back = Schema.from_field(Field(schema.to_dict(), "schema"))
    assert back.to_dict() == schema.to_dict()
    assert torch.equal(back.encode(X), schema.encode(X))
