"""The data that models are compared with: counts, labels and the order of a file."""

from __future__ import annotations

import numpy as np
import tiny

from neurise import Independent
from neurise.dataset import Dataset
from neurise.player.comparing import compare
from neurise.player.kept_rows import kept_places
from neurise.player.laws import Reference, correlations, pairs_of
from neurise.player.open import stage_of
from neurise.player.wishes import Wish


def test_rows_count_as_often_as_they_were_measured() -> None:
    rows, counts = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0]]), np.array([30, 20, 1])
    model = Independent().fit(rows, sample_weight=counts)
    stage = stage_of(model, Dataset("counts", model.space_, np.array([0, 1]), train=rows, weights=counts))
    pairs = pairs_of(3, 10)
    found = Reference(stage, {}, None, 100).correlations(pairs)
    np.testing.assert_allclose(found, correlations(np.repeat(rows, counts, axis=0), pairs, 2))
    assert dict(zip(map(tuple, stage.distinct[0].tolist()), stage.distinct[1].tolist(), strict=True)) == {
        (0, 0, 0): 30, (1, 1, 1): 20, (0, 1, 0): 1,
    }  # fmt: skip
    assert stage.about()["data"]["rows"] == 51


def test_weights_that_are_many_or_broken_are_drawn_from() -> None:
    """Of n draws a share p has the standard error sqrt(p (1 - p) / n): six of them are never seen."""
    for weights in (np.array([3e6, 1e6]), np.array([1500.25, 500.0])):
        places = kept_places(2, weights, most=2000)
        assert len(places) == 2000
        assert abs((places == 0).mean() - weights[0] / weights.sum()) < 6 * np.sqrt(0.75 * 0.25 / 2000)


def test_a_sorted_file_is_mixed() -> None:
    places = kept_places(1000, None, most=100)
    assert len(set(places.tolist())) == 100
    assert places.max() >= 500
    assert sorted(kept_places(50, None).tolist()) == list(range(50))


def test_data_with_labels_are_compared_label_by_label() -> None:
    rows, labels = np.array([[0, 0]] * 30 + [[1, 0]] * 40 + [[1, 1]] * 2), np.array(["a"] * 30 + ["b"] * 42)
    model = Independent().fit(rows)
    data = Dataset("labelled", model.space_, np.array([0, 1]), train=rows, labels=labels)
    stage = stage_of(tiny.model().fit(rows, labels, max_steps=2), data)
    assert len(Reference(stage, {}, None, 100).rows) == 72  # type: ignore[arg-type]
    assert len(Reference(stage, {}, 1, 100).rows) == 42  # type: ignore[arg-type]
    assert len(Reference(stage, {1: 1}, 1, 100).rows) == 2  # type: ignore[arg-type]
    bare = stage_of(stage.actors[0].model, rows)
    told = list(compare(Wish(bare, {"label": 0, "rows": 100})))
    assert told[0]["of"] is None
    assert told[-1] == {"kind": "greyed", "name": "data", "reason": "the data have no labels"}
