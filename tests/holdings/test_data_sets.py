"""Data sets of this library, of dimod and of torch are rows with what belongs to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import neurise
from neurise.holdings import torch_data

X = np.random.default_rng(0).integers(0, 3, (40, 5))
Y = np.arange(40) % 2
W = np.arange(40) + 1.0


def known() -> Any:
    data = neurise.datasets.edwards_anderson(side=2, seed=1)
    rows = data.sample(60, seed=0)
    return replace(data, train=rows[:30], weights=W[:30], validation=rows[30:40], test=rows[40:])


def test_a_data_set_is_learnt_from_by_its_training_rows_and_scored_by_its_test_rows() -> None:
    data = known()
    options: dict[str, Any] = {"seed": 1, "max_steps": 10, "verbose": False}
    model = neurise.NeurISE(width=8, members=1).fit(data, **options)
    expected = neurise.NeurISE(width=8, members=1, alphabet=[-1, 1])
    expected.fit(data.train, weights=data.weights, validation=data.validation, **options)
    np.testing.assert_array_equal(model.sample(20, seed=0), expected.sample(20, seed=0))
    assert model.history_[-1]["validation"] == expected.history_[-1]["validation"]
    assert model.score(data) == expected.score(data.test)
    with pytest.raises(ValueError, match="weights was given, and X brings weights of its own"):
        neurise.Independent().fit(data, weights=W[:30])


def test_symbols_that_the_training_rows_lack_are_known() -> None:
    data = replace(known(), train=np.ones((3, 4), dtype=int), weights=None)
    assert neurise.Independent().fit(data).space_.states == 2


def test_a_law_without_rows_says_how_to_get_some() -> None:
    with pytest.raises(ValueError, match=r"no rows: draw some with data.sample\(n\)"):
        neurise.Independent().fit(neurise.datasets.edwards_anderson(side=2))


def test_reads_count_as_often_as_they_occurred_whatever_the_order_of_the_variables() -> None:
    dimod = pytest.importorskip("dimod")
    rows = 2 * X[:, :4].clip(max=1) - 1
    whole = dimod.SampleSet.from_samples((rows, "abcd"), "SPIN", energy=np.zeros(40))
    turned = dimod.SampleSet.from_samples((rows[:, ::-1], "dcba"), "SPIN", energy=np.zeros(40)).aggregate()
    assert len(turned) < 40
    expected = neurise.Memorize().fit(rows).score(rows)
    assert neurise.Memorize().fit(whole).score(turned) == pytest.approx(expected)
    assert neurise.Memorize().fit(turned).score(rows) == pytest.approx(expected)


class Mapped(Dataset):  # type: ignore[type-arg]
    """A data set by number, which has no IndexError: a loop over it would not end."""

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return 40

    def __getitem__(self, k: int) -> Any:
        item = (torch.from_numpy(X[k % 40]), int(Y[k % 40]), float(W[k % 40]))
        return item[0] if self.parts == 1 else item[: self.parts]


class Flowing(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        return iter((torch.from_numpy(x), y, w) for x, y, w in zip(X, Y, W, strict=True))


TORCH: dict[str, tuple[Any, int]] = {
    "tensors": (TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), 2),
    "mapped x": (Mapped(1), 1),
    "mapped x, y": (Mapped(2), 2),
    "mapped x, y, w": (Mapped(3), 3),
    "flowing": (Flowing(), 3),
    "loader": (DataLoader(Mapped(3), batch_size=7), 3),
    "loader of x": (DataLoader(Mapped(1), batch_size=7), 1),
    "loader without batches": (DataLoader(Mapped(2), batch_size=None), 2),
    "loader of a flow": (DataLoader(Flowing(), batch_size=9), 3),
}


@pytest.mark.parametrize("kind", TORCH)
def test_torch_gives_rows_labels_and_weights(kind: str) -> None:
    data, parts = TORCH[kind]
    y, weights = (Y if parts > 1 else None), (W if parts > 2 else None)
    model, expected = neurise.Independent().fit(data), neurise.Independent().fit(X, y, weights=weights)
    assert model.score(data) == pytest.approx(np.average(expected.log_prob(X, y), weights=weights))
    assert (model.schema_.digest, model.schema_.classes) == (expected.schema_.digest, expected.schema_.classes)


def test_what_torch_data_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = neurise.Independent().fit
    with pytest.raises(ValueError, match=r"item 0 has the shape \(1, 2\); a row is a vector"):
        fit(DataLoader(TensorDataset(torch.zeros(4, 1, 2)), batch_size=None))
    with pytest.raises(ValueError, match="has 4 parts"):
        fit(DataLoader(TensorDataset(*[torch.zeros(4, 2)] * 4)))
    with pytest.raises(ValueError, match="without items"):
        fit(DataLoader([], batch_size=2))  # type: ignore[arg-type]

    class Endless(IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[Any]:
            return (torch.zeros(3) for _ in itertools.count())

    monkeypatch.setattr(torch_data, "LOOK_EVERY", 64)
    monkeypatch.setattr(torch_data.devices, "has_room", lambda needed, device: needed < 2**16)
    with pytest.raises(MemoryError, match="items and no end"):
        fit(Endless())


def test_validation_may_be_anything_that_holds_rows() -> None:
    counts = {"0101": 30, "1100": 20, "0001": 10}
    options: dict[str, Any] = {"max_steps": 10, "verbose": False}
    one = neurise.NeurISE(width=8, members=1).fit(counts, validation={"1100": 3, "0001": 4}, **options)
    rows, weights = np.array([[1, 1, 0, 0], [0, 0, 0, 1]]), np.array([3.0, 4.0])
    other = neurise.NeurISE(width=8, members=1).fit(counts, validation=(rows, None, weights), **options)
    assert one.history_[-1]["validation"] == other.history_[-1]["validation"]
