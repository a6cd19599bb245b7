"""Counts beside an energy and networks, and how few rows weigh them."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import neurise
from neurise import NeurISE
from neurise.conditionals.base import Frame
from neurise.conditionals.counts import Counts
from neurise.deadline import Work
from neurise.modeling import solved_members
from neurise.modeling.groups import Architecture
from neurise.modeling.weighing import Judges
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Rows, with_folds
from neurise.space import Space

SPACE = Space(5, 2)
BOTH = Architecture(energy=True, counts=True)
SMALL: dict[str, Any] = {"width": 4, "depth": 1, "members": 1, "steps": 60, "architecture": BOTH}
"""Networks that are too small to be of use, beside what is insisted on."""


def parities(n: int) -> np.ndarray:
    """Rows of even parity: no fewer than five sites depend on each other, and no energy has products of five."""
    x = np.random.default_rng(0).integers(0, 2, (n, 4))
    return np.concatenate([x, x.sum(1, keepdims=True) % 2], axis=1)


@pytest.fixture(scope="module")
def counted() -> NeurISE:
    """A model that had 2,500 rows of 32 configurations, half of which occur."""
    return NeurISE(**SMALL).fit(parities(2500), verbose=False)


def test_counts_answer_where_rows_are_many_for_the_space_and_no_energy_corrects_them(counted: NeurISE) -> None:
    assert counted.shares_.get("counts", 0) > 0.5
    assert "no share" in counted.summary()["energy"]
    assert counted.sweeps_ == 0  # by an energy that knows nothing of the parity
    law = neurise.exact.law(counted).numpy()
    odd = SPACE.configurations().sum(1).numpy() % 2 == 1
    assert law[odd].sum() < 0.01
    often = np.bincount(SPACE.index(torch.from_numpy(parities(2500))), minlength=32) / 2500
    assert np.abs(law - ~odd / 16).sum() < np.abs(often - ~odd / 16).sum()  # nearer to the truth than the rows


def test_saved_and_loaded_they_are_the_same(counted: NeurISE, tmp_path: Path) -> None:
    counted.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    np.testing.assert_array_equal(again.log_prob(parities(20)), counted.log_prob(parities(20)))
    assert (again.sample(50, seed=3) == counted.sample(50, seed=3)).all()
    assert str(again.summary()) == str(counted.summary())


def test_every_row_is_judged_by_what_has_not_learnt_from_it() -> None:
    x = torch.from_numpy(parities(23)).to(torch.uint8)
    weights = torch.arange(23, dtype=torch.float64) % 3 + 1
    frame = Frame(RoundRobin(SPACE, keep_prob=0.0, cycles=1), 0, torch.full((5,), -1))
    found = solved_members._pooled(["counts"], Rows(x, None, weights), frame, 5, Work())
    assert found is not None
    judges, (answers,) = found
    assert float(judges.rows.weights.sum()) == float(weights.sum())  # type: ignore[union-attr]
    folded, start = with_folds(Rows(x, None, weights), solved_members.FOLDS, seed=5), 0
    for fold in range(solved_members.FOLDS):
        own, aside = (folded.take(part) for part in (folded.fold != fold, folded.fold == fold))
        slow = Counts.of_rows(own, frame).log_conditionals(aside.x).double()
        torch.testing.assert_close(answers[start : start + len(aside)], slow)
        assert torch.equal(judges.rows.x[start : start + len(aside)], aside.x)
        start += len(aside)
    assert start == len(answers)


def test_one_row_says_nothing_of_its_error() -> None:
    one = Judges.of(Rows(torch.zeros(1, 2, dtype=torch.uint8)), torch.tensor([-1, -1]), 2)
    assert one.mean_and_error(torch.tensor([0.7], dtype=torch.float64)) == (pytest.approx(0.7), math.inf)


def test_ten_rows_are_weighed_by_all_of_them() -> None:
    """One of them held back would decide by chance."""
    model = NeurISE(**SMALL).fit(parities(10), verbose=False)
    assert set(model.shares_) <= {"energy", "counts"}


@pytest.mark.parametrize(
    ("shares", "trusted"), [({"energy": 0.0, "counts": 1.0}, False), ({"energy": 0.1, "counts": 0.9}, True)]
)
def test_an_energy_without_a_share_corrects_nothing(shares: dict[str, float], trusted: bool) -> None:
    found: Any = {name: SimpleNamespace(conditionals=SimpleNamespace(has_clean=name == "energy")) for name in shares}
    judges = Judges.of(Rows(torch.zeros(1, 2, dtype=torch.uint8)), torch.tensor([-1, -1]), 2)
    assert solved_members.SolvedMembers(found, judges, [], shares).clean_has_share == trusted


def test_few_rows_do_not_train_networks() -> None:
    """Networks stop where the rows held back like them best, so that a few of these would always choose them."""
    glass = neurise.datasets.edwards_anderson(side=4, seed=2)
    model = NeurISE(architecture=BOTH).fit(glass.sample(100, seed=0), verbose=False)
    assert set(model.shares_) <= {"energy", "counts"}
    assert model.stopped_ == "solved"
    assert model.summary()["choice"] == "energy and counts: there were too few steps, or rows held back, for a race"


def test_large_spaces_keep_the_graph_when_few_rows_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows held back gave counts all of it, and twice the error of the energy; five folds of all rows do not."""
    monkeypatch.setattr(solved_members, "SMALL", 2**10)
    glass = neurise.datasets.edwards_anderson(side=4, seed=2)
    model = NeurISE(architecture=BOTH).fit(glass.sample(100, seed=0), verbose=False)
    assert model.shares_["energy"] > 0.5
