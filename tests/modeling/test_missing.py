"""Learning from rows with missing values, which are hidden as inputs and left out as targets."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from neurise import D3PM, GGM, Independent, Memorize, NeurISE, Pairwise, exact, fit_many
from neurise.modeling.round_robin_objective import weights_of_present
from neurise.rows import Rows, likeness
from neurise.schema import learn_schema
from neurise.training.packed import PackedRows, packed
from neurise.training.settings import Training
from neurise.training.stacked import ManyRows
from neurise.training.streamed import DrawnChunks, StreamedRows

LAW = np.array([[0.30, 0.04, 0.06], [0.02, 0.20, 0.08], [0.06, 0.06, 0.18]])
"""Of two columns of three states that depend on each other."""
ROWS = 2000
ERROR = np.sqrt(LAW * (1 - LAW) / (ROWS / 2))
"""Standard errors of frequencies in the half of 2000 rows that lacks nothing."""
TRAINING = Training(batch_size=256, learning_rate=5e-3, validation_fraction=0.0)


def table(column: int) -> tuple[np.ndarray, np.ndarray]:
    """All rows, each once complete and once without a value of the column, weighed as half of the values were missing.

    There is no noise of a sample in it: what a model learns is the law, but for what it learns wrongly.
    """
    rows, weights = [], []
    for a, b in itertools.product(range(3), repeat=2):
        for gone in (False, True):
            row = [float(a), float(b)]
            row[column] = np.nan if gone else row[column]
            rows.append(row)
            weights.append(LAW[a, b] * ROWS / 2)
    return np.array(rows), np.array(weights)


def worst(model: Any, X: np.ndarray, weights: np.ndarray, steps: int) -> float:
    """How many standard errors the learnt law is away, at most."""
    model.fit(X, weights=weights, max_steps=steps, seed=0, verbose=False)
    law = np.asarray(exact.law(model)).reshape(LAW.shape)
    return float((np.abs(law - LAW) / ERROR).max())


def small(kind: type = NeurISE, **params: Any) -> Any:
    return kind(**{"width": 32, "depth": 2, "members": 1, "training": TRAINING, **params})


@pytest.mark.parametrize("column", [0, 1])  # column 1 is generated first
@pytest.mark.parametrize(
    ("kind", "params", "steps"),
    [
        (NeurISE, {}, 250),
        (NeurISE, {"network": "masked"}, 250),
        pytest.param(NeurISE, {"network": "causal"}, 250, marks=pytest.mark.slow),
        pytest.param(NeurISE, {"network": "sparse", "depth": 1}, 250, marks=pytest.mark.slow),
        pytest.param(NeurISE, {"network": "local_mlp"}, 250, marks=pytest.mark.slow),
        pytest.param(NeurISE, {"keep_prob": 0.3, "cycles": 3}, 900, marks=pytest.mark.slow),
        pytest.param(GGM, {}, 900, marks=pytest.mark.slow),
    ],
    ids=["site_mlp", "masked", "causal", "sparse", "local_mlp", "soft", "ggm"],
)
def test_half_of_a_column_may_be_missing(kind: type, params: dict[str, Any], steps: int, column: int) -> None:
    X, weights = table(column)
    assert worst(small(kind, **params), X, weights, steps) < 2


def test_filling_gaps_beforehand_is_not_the_same() -> None:
    X, weights = table(0)
    usual = np.where(np.isnan(X), 0, X)  # 0 is the most frequent
    assert worst(small(), usual, weights, 150) > 10


@pytest.mark.parametrize("column", [0, 1])
def test_counts_of_single_sites_leave_gaps_out(column: int) -> None:
    X, weights = table(column)
    model = Independent().fit(X, weights=weights)
    law = np.asarray(exact.law(model)).reshape(LAW.shape)
    np.testing.assert_allclose(law, LAW.sum(1)[:, None] * LAW.sum(0), atol=1e-9)


@pytest.mark.parametrize("kind", [Memorize, Pairwise, D3PM])
def test_models_that_cannot_are_refused_by_name(kind: type) -> None:
    X, _ = table(0)
    with pytest.raises(ValueError, match=rf"{kind.__name__} cannot learn from missing values; NeurISE"):
        kind().fit(X)
    with pytest.raises(ValueError, match="cannot learn from missing values"):
        kind().fit(np.nan_to_num(X), validation=X)


@pytest.mark.parametrize(
    "given",
    [
        [[0, 1], [None, 2], [2, 0]],
        np.array([[0, 1], [np.nan, 2], [2, 0]]),
        np.array([[0, 1], [None, 2], [2, 0]], dtype=object),
        np.ma.array([[0, 1], [9, 2], [2, 0]], mask=[[0, 0], [1, 0], [0, 0]]),
        torch.tensor([[0, 1], [torch.nan, 2], [2, 0]]),
    ],
    ids=["list", "float", "object", "masked", "tensor"],
)
def test_gaps_are_known_in_every_form(given: Any) -> None:
    schema, rows, _ = learn_schema(given)
    assert rows.missing is not None
    assert rows.missing.tolist() == [[False, False], [True, False], [False, False]]
    assert schema.gaps == 1
    assert schema.alphabet.symbols.tolist() == [0, 1, 2]
    assert schema.is_of(given)
    assert not schema.is_of([[0, 1], [0, 2], [2, 0]])


def test_gaps_of_letters() -> None:
    schema, rows, _ = learn_schema([["A", None], ["C", "A"], [float("nan"), "A"]], order=[1, 0])
    assert rows.missing is not None
    assert rows.missing.tolist() == [[True, False], [False, False], [False, True]]
    assert schema.constant.tolist() == [0, -1]  # what is there of the second column never varies


def test_a_column_without_any_value_is_named() -> None:
    with pytest.raises(ValueError, match="no value at all in column 1"):
        learn_schema([[0, None], [1, None], [1, None]])
    with pytest.raises(ValueError, match="no value at all in column 1"):  # but in a row that does not count
        learn_schema([[0, None], [1, None], [1, 1]], weights=[1, 1, 0])


def test_a_row_that_does_not_count_fills_no_gaps() -> None:
    schema, rows, _ = learn_schema([[0, 5], [1, None], [0, 2], [1, 3]], weights=[0, 1, 1, 1])
    assert schema.alphabet.symbols.tolist() == [0, 1, 2, 3]
    assert rows.missing is not None
    assert rows.missing.tolist() == [[False, True], [False, False], [False, False]]


def test_gaps_of_validation_rows_are_no_values() -> None:
    schema, _, held = learn_schema([[0, 1], [1, 1]], validation=[[0, None], [1, None]])
    assert held is not None
    assert held.missing is not None
    assert schema.constant.tolist() == [-1, 1]


def test_gaps_tell_rows_apart() -> None:
    x = torch.tensor([[0, 1], [1, 1]], dtype=torch.uint8)
    gaps = torch.tensor([[False, True], [False, False]])
    other = torch.tensor([[0, 0], [1, 1]], dtype=torch.uint8)
    assert likeness(Rows(x)) != likeness(Rows(x, missing=gaps))
    assert likeness(Rows(x, missing=gaps)) == likeness(Rows(other, missing=gaps))
    assert likeness(Rows(x, missing=gaps.flip(0))) != likeness(Rows(x, missing=gaps))


def stored(kind: str, rows: Rows) -> Any:
    if kind == "packed":
        return PackedRows.of(rows, 3)
    if kind == "streamed":
        source = PackedRows(StreamedRows(DrawnChunks(packed(rows, 3), 0), 64, torch.device("cpu")), rows.x.shape[1], 3)
        assert source.advance is not None
        source.advance(0)
        return source
    return rows


@pytest.mark.parametrize("kind", ["plain", "packed", "streamed"])
def test_gaps_stay_with_their_rows(kind: str) -> None:
    x = torch.randint(3, (200, 11), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    rows = Rows(x, missing=x == 2, weights=torch.rand(200, dtype=torch.float64))
    for take in ("draw", "spread"):
        batch = getattr(stored(kind, rows), take)(64, generator=torch.Generator().manual_seed(1))
        assert torch.equal(batch.missing, batch.x == 2)
    assert rows.in_order(list(reversed(range(11)))).missing is not None
    assert torch.equal(rows.in_order(list(reversed(range(11)))).missing, rows.missing.flip(1))
    many = ManyRows.of([rows.take(torch.arange(50)), rows]).draw(30, generator=torch.Generator().manual_seed(1))
    assert many.missing is not None
    assert torch.equal(many.missing, many.x == 2)


def test_the_mean_is_over_the_answers_that_are_there() -> None:
    gone = torch.tensor([False, True, False, True, True])
    weight = weights_of_present(gone)
    assert weight.tolist() == [2.5, 0, 2.5, 0, 0]
    assert not weights_of_present(torch.ones(3, dtype=torch.bool)).any()


@pytest.mark.parametrize(
    "params", [{}, {"network": "masked"}, {"network": "causal"}, {"network": "sparse", "depth": 1}]
)
def test_what_stands_in_a_gap_means_nothing(params: dict[str, Any]) -> None:
    """The value under a mask may be anything: the same model is learnt."""
    x = np.random.default_rng(0).integers(3, size=(60, 4))
    gone = np.random.default_rng(1).random(x.shape) < 0.3
    gone[0] = False
    found = []
    for hidden in (x, (x + 1) % 3):
        given = np.ma.array(np.where(gone, hidden, x), mask=gone)
        model = small(**{"width": 8, **params}).fit(given, max_steps=5, seed=0, verbose=False)
        found.append(model.log_prob(x))
    np.testing.assert_array_equal(*found)


def test_many_models_learn_from_gaps_together() -> None:
    X, weights = table(0)
    fitted = fit_many(small(), [X, np.nan_to_num(X), X], weights=[weights] * 3, max_steps=3, verbose=False)
    assert [model.schema_.gaps for model in fitted] == [9, 0, 9]


def test_the_summary_says_what_was_missing_and_left_out() -> None:
    X, weights = table(0)
    model = small(members=2).fit(X, weights=weights, max_steps=2, verbose=False)
    said = model.summary()
    assert said["missing"] == "9 of 36 entries"
    assert "pairwise terms" in said["left out"]
    for change, word in (({"calibrate": True}, "calibrate"), ({"architecture__pairwise": True}, "pairwise")):
        with pytest.raises(ValueError, match=word):
            small().set_params(**change).fit(X, max_steps=2)
