"""What every model promises about labels."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import tiny
import torch

from neurise import discovery
from neurise.modeling.model import Model

NAMES = discovery.names("neurise.models")
X = np.repeat([[-1, -1, 1], [1, 1, 1]], 50, axis=0)
X[::5, 2] = -1
LABELS: dict[str, tuple[Any, Any, Any]] = {
    "numbers": (np.repeat([3, 8], 50), 3, 8),
    "text": (np.repeat(["down", "upwards"], 50), "down", "upwards"),
    "objects": (np.repeat(np.array(["down", "up"], dtype=object), 50), "down", "up"),
    "lists": (["a"] * 50 + ["b"] * 50, "a", "b"),
    "booleans": (np.repeat([False, True], 50), False, True),
    "bytes": (np.repeat([b"down", b"up"], 50), b"down", b"up"),
    "tensor": (torch.arange(2).repeat_interleave(50), torch.tensor(0), torch.tensor(1)),
}


def trained(name: str, y: Any, **fit: Any) -> Model:
    params = {"training__learning_rate": 0.05} if tiny.is_trained(name) else {}
    return tiny.model(name, **params).fit(X, y, **{"max_steps": 60} | fit)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*itertools.product(NAMES, ["text"]), *itertools.product(["memorize"], sorted(LABELS.keys() - {"text"}))],
)
def test_a_label_chooses_what_is_drawn(name: str, kind: str) -> None:
    y, down, up = LABELS[kind]
    model, n = trained(name, y), 400
    lower, upper = model.sample(n, down, seed=0)[:, 0].mean(), model.sample(n, up, seed=1)[:, 0].mean()
    # Means of n spins; a model that ignored the label would see this difference once in 10^6.
    assert upper - lower > 5 * math.sqrt(2 / n)
    half = [down] * (n // 2) + [up] * (n // 2)
    if isinstance(y, torch.Tensor):
        half = torch.stack(half)  # type: ignore[assignment]
    drawn = model.sample(n, half, seed=2)[:, 0]
    assert drawn[n // 2 :].mean() - drawn[: n // 2].mean() > 5 * math.sqrt(4 / n)


@pytest.mark.parametrize("name", NAMES)
def test_one_label_for_all_is_one_for_each(name: str) -> None:
    model = trained(name, LABELS["text"][0], max_steps=5)
    assert np.array_equal(model.sample(20, "down", seed=0), model.sample(20, ["down"] * 20, seed=0))
    try:
        expected = model.log_prob(X, ["down"] * 100)
    except NotImplementedError:
        return
    assert np.array_equal(model.log_prob(X, "down"), expected)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_label_one_is_drawn(name: str) -> None:
    model = trained(name, LABELS["text"][0], max_steps=5)
    drawn = model.sample(50, seed=0)
    assert drawn.shape == (50, 3)
    assert np.array_equal(model.sample(50, seed=0), drawn)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("sideways", r"label 'sideways'.*\['down', 'upwards'\]"),
        (["down"] * 19 + ["sideways"], "label 'sideways' at position 19"),
        (["down"] * 19, "y has 19 labels for 20 rows"),
        ([["down"] * 20], r"shape is \(1, 20\)"),
        (3, r"type int64.*\['down', 'upwards'\]"),
        (math.nan, "nan"),
    ],
)
def test_labels_that_cannot_be_are_refused(y: Any, message: str) -> None:
    model = trained("independent", LABELS["text"][0])
    with pytest.raises(ValueError, match=message):
        model.sample(20, y)
    with pytest.raises(ValueError, match=message):
        model.score(X[:20], y)


def test_a_model_without_labels_refuses_them() -> None:
    model = tiny.model("independent").fit(X)
    with pytest.raises(ValueError, match="fitted without labels"):
        model.sample(5, 1)
    with pytest.raises(ValueError, match="fitted without labels"):
        model.score(X, [1] * 100)


@pytest.mark.parametrize(("y", "message"), [([1, 2], "2 labels for 100 rows"), ([None] * 100, "position 0.*missing")])
def test_data_with_impossible_labels_is_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model("independent").fit(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_one_class_is_enough(name: str) -> None:
    assert trained(name, ["only"] * 100, max_steps=2).sample(5, "only").shape == (5, 3)
