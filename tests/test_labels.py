import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from neurise.fields import Field
from neurise.labels import Labels, as_labels


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([2, 0, 2, 5], [0, 2, 5]),
        (["cat", "dog", "cat"], ["cat", "dog"]),
        (np.array(["cat", "dog", "cat"], dtype=object), ["cat", "dog"]),
        ([True, False], [False, True]),
        ([0.5, 0.25, 0.5], [0.25, 0.5]),
        (torch.tensor([1, 0, 1]), [0, 1]),
        (np.array([b"cat", b"dog"]), ["cat", "dog"]),
        (["größe", "a"], ["a", "größe"]),
    ],
)
def test_classes_are_the_sorted_labels(y: Any, classes: list[Any]) -> None:
    labels = Labels.of(y, None)
    assert labels.classes.tolist() == classes
    known = [label.decode() if isinstance(label, bytes) else label for label in np.asarray(y).tolist()]
    assert [classes[token] for token in labels.encode(y).tolist()] == known


def test_frequencies_count_rows_or_weights() -> None:
    assert Labels.of(["a", "b", "a", "a"], None).frequencies.tolist() == [0.75, 0.25]
    assert Labels.of(["a", "b", "a"], np.array([1.0, 6.0, 1.0])).frequencies.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1]], r"vector.*\(1, 2\)"),
        (3, r"vector.*\(\)"),
        ([0, None], "None at position 1.*missing"),
        ([0, math.nan], "nan at position 1.*missing"),
        (["a", math.nan], "nan at position 1.*missing"),  # numpy alone would make a class called 'nan' of it
        (np.array(["a", None], dtype=object), "None at position 1.*missing"),
        (["a", 1], "1 at position 1.*a number, though others are text"),
        ([0, math.inf], "inf at position 1.*not finite"),
        ([1j], "complex128"),
        ([0, {}], r"\{\} at position 1"),
    ],
)
def test_what_is_no_label_is_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_labels(y)


@pytest.mark.parametrize(
    ("fitted", "y", "message"),
    [
        ([0, 1], [0, 2], r"label 2 at position 1.*\[0, 1\]"),
        (["a", "b"], ["c"], r"label 'c' at position 0.*\['a', 'b'\]"),
        (["a", "b"], [0], r"type int64.*\['a', 'b'\]"),
        ([0, 1], ["0"], r"type <U1.*\[0, 1\]"),
    ],
)
def test_an_unknown_label_is_named(fitted: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Labels.of(fitted, None).encode(y)


@pytest.mark.parametrize("y", [[3, 1, 3], ["x", "yy"], [True, False], [0.5, 1.5], np.array([b"a", b"b"])])
def test_the_description_for_files_is_complete(y: Any) -> None:
    labels = Labels.of(y, None)
    back = Labels.from_field(Field(json.loads(json.dumps(labels.to_dict())), "labels"))
    assert back.classes.dtype == labels.classes.dtype
    assert back.classes.tolist() == labels.classes.tolist()
    assert back.frequencies.tolist() == labels.frequencies.tolist()


def test_labels_are_drawn_by_their_frequency() -> None:
    n = 20_000
    labels = Labels(np.array([0, 1, 2]), np.array([0.7, 0.0, 0.3]))
    counts = np.bincount(labels.draw(n, generator=torch.Generator().manual_seed(0)).numpy(), minlength=3)
    assert counts[1] == 0
    # Binomial(n, 0.7): five standard deviations are exceeded once in 10^6.
    assert abs(counts[0] - 0.7 * n) < 5 * math.sqrt(n * 0.7 * 0.3)
