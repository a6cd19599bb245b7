"""What samples are compared with: real rows drawn at random, as many as the row says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neurise import experiments
from neurise.dataset import Dataset
from neurise.experiments import Cell, dwave, grid, mnist
from neurise.experiments._method_table import METHODS
from neurise.experiments._methods import build, named
from neurise.modeling import many
from neurise.models.neurise import NeurISE
from neurise.space import Space

SITES, CLASS = 784, 600


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make digits of two classes in the order of their writers: the second half of each class is darker."""
    source = np.random.default_rng(seed)
    share = np.repeat([0.3, 0.6], CLASS // 2)
    rows = [(source.random((CLASS, SITES)) < share[:, None]).astype(np.uint8) for _ in range(2)]
    return np.concatenate(rows), np.repeat([0, 1], CLASS)


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    (train, labels), (test, test_labels) = digits(0), digits(1)
    parts = {"train": train, "labels": labels, "test": test, "test_labels": test_labels}
    data = Dataset("ordered", Space(SITES, 2), np.array([0, 1]), **parts)
    monkeypatch.setattr(mnist, "_digits", lambda: data)
    return data


def test_ordered_files_give_no_biased_reference(ordered: Dataset) -> None:
    parameters = {"classes": 2, "method": "real", "rows": 1200, "draws": 200, "held": 300}
    found = [experiments.find("mnist").run(Cell("mnist", "smoke", parameters, seed), "cpu") for seed in range(2)]
    for name in ("mmd", "mmd_floor"):
        # Both estimate 0 without bias, with a spread of about 0.002 here. The first test digits against the last training
        # digits, which is how the files lie, are 1.1 apart.
        assert max(abs(one.metrics[name]) for one in found) < 0.02  # type: ignore[arg-type]
    assert {one.metrics["compared_with"] for one in found} == {600}
    assert {one.metrics["learnt_from"] for one in found} == {0}
    first, second = (mnist.reference(ordered, 0, 300, seed)[0] for seed in (0, 1))
    assert (first != second).any()


def test_rows_say_how_many_reads_were_used(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = np.random.default_rng(0).choice([-1, 1], (250, 6))
    data = Dataset("reads", Space(6, 2), np.array([-1, 1]), train=reads[:200], test=reads[200:])
    monkeypatch.setattr(dwave, "_reads", lambda source, split: (data, data.train, data.test))
    one = experiments.find("dwave")
    small = {"source": "here", "method": "neurise", "rows": 150, "draws": 40, "steps": 2, "width": 8, "depth": 1}
    done = one.run(Cell("dwave", "smoke", {**small, "batch_size": 16}, 0), "cpu").metrics
    assert (done["learnt_from"], done["compared_with"], done["drawn"]) == (150, 50, 40)
    with pytest.raises(ValueError, match="rows = 1,000: here has 200 reads to learn from"):
        one.run(Cell("dwave", "smoke", {**small, "rows": 1000}, 0), "cpu")


def test_cells_of_the_annealer_ask_for_the_reads_that_there_are() -> None:
    there = {"advantage41_q263": (2000, 500), "advantage41_q2084": (16_000, 4000)}
    for scale, size in experiments.find("dwave").scales.items():
        rows, held = there[str(size.axes["source"][0])]
        assert int(size.fixed["rows"]) <= rows, scale  # type: ignore[arg-type]
        assert int(size.fixed["draws"]) <= held, scale  # type: ignore[arg-type]


ABOUT_ANOTHER = ("sedd_scores",)
"""Experiments about one other method alone."""


@pytest.mark.parametrize(
    "name", [name for name in experiments.names() if experiments.find(name).methods and name not in ABOUT_ANOTHER]
)
def test_the_papers_own_form_is_a_method_of_every_experiment(name: str) -> None:
    one = experiments.find(name)
    assert {"neurise", "neurise_paper"} <= set(one.methods)
    planned = {cell.parameters["method"] for unit in grid.plan(one, "paper") for cell in unit.cells}
    assert planned >= {"neurise", "neurise_paper"}


def test_the_papers_own_form_is_made_by_the_model(ordered: Dataset) -> None:
    made = build({"method": "neurise_paper", "width": 16, "depth": 1, "batch_size": 64}, ordered)
    form = NeurISE.paper()
    for name in ("loss", "members", "chain__hide_noised", "architecture__heads", "architecture__residual"):
        assert made.get_params()[name] == form.get_params()[name], name
    assert named("neurise_paper").form == "paper"


def test_trials_of_digits_are_trained_together(ordered: Dataset) -> None:
    small = {"classes": 2, "rows": 100, "draws": 8, "held": 50, "steps": 2, "width": 8, "depth": 1, "batch_size": 16}
    cells = [Cell("mnist", "smoke", {**small, "method": "neurise"}, seed) for seed in range(2)]
    one = experiments.find("mnist")
    found = one.run_group(cells, "cpu")
    assert [outcome.metrics["learnt_from"] for outcome in found] == [100, 100]
    assert found[0].metrics["mmd"] != found[1].metrics["mmd"]
    assert found[0].budget["steps"] == 2
    assert not one.groupable({"method": "real"})


TRAINED = [
    pytest.param(name, marks=pytest.mark.slow if name == "neurise_committee" else ())  # fits pairwise terms first
    for name, method in METHODS.items()
    if method.trains
]


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_trains_the_cells_of_a_group_as_one(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    together = many._train_as_one

    def noted(jobs: list[Any], work: Any) -> None:
        trained.append(len(jobs))
        together(jobs, work)

    monkeypatch.setattr(many, "_train_as_one", noted)
    one = experiments.find("ising_curves")
    given = {"side": 3, "rows": 40, "draws": 10, "steps": 1, "width": 32, "depth": 1, "batch_size": 8, "exact": False}
    given |= {"timesteps": 4, "sampling_steps": 4, "method": method}
    cells = [Cell("ising_curves", "smoke", {**given, "instance": number}, number) for number in range(2)]
    assert len(one.run_group(cells, "cpu")) == 2
    assert trained  # in one batch, whatever the method; a committee has a batch for each kind of its members
    assert all(jobs % 2 == 0 for jobs in trained)
