"""Experiments that decide a claim by more than one number: runs that diverge, forms of a network, and the kernel density."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurise import experiments
from neurise.experiments import Cell, _measure, grid, store
from neurise.experiments._density import ROWS, density_of_law
from neurise.experiments._laws import spin_glass
from neurise.experiments._measure import of_law
from neurise.experiments._methods import build
from neurise.experiments.site_input import FORMS
from neurise.models.d3pm import D3PM
from neurise.models.independent import Independent
from neurise.models.memorize import Memorize

NOISES = ("absorbing", "uniform")


def cell(name: str, method: str, seed: int = 0, **changes: Any) -> Cell:
    """One of the smallest cells of an experiment."""
    first = grid.plan(experiments.find(name), "smoke", methods=[method])[0].cells[0]
    return Cell(name, "smoke", {**first.parameters, **changes}, seed)


@pytest.mark.parametrize("noise", NOISES)
def test_a_run_that_diverges_is_a_finished_cell_that_says_so(noise: str, tmp_path: Path) -> None:
    only = {"noise": [noise]}
    methods, one = ["sedd", "sedd_raw"], experiments.find("sedd_scores")
    summary = grid.run(one, "smoke", tmp_path / "r.jsonl", executor="serial", methods=methods, only=only)
    assert (summary.done, summary.failed) == (2, 0)
    fine, lost = summary.rows
    assert (fine["metrics"]["diverged"], fine["metrics"]["diverged_at"], fine["budget"]["stopped"]) == (
        0,
        None,
        "steps",
    )
    assert fine["metrics"]["tv"] == fine["metrics"]["kept_tv"] < fine["metrics"]["unlearnt_tv"]
    assert not fine["warnings"]
    assert (lost["metrics"]["diverged"], lost["metrics"]["tv"], lost["budget"]["stopped"]) == (1, None, "diverged")
    assert 0 < lost["metrics"]["diverged_at"] <= lost["parameters"]["steps"]
    assert fine["metrics"]["kept_tv"] < lost["metrics"]["kept_tv"] <= 1
    assert any("the loss became nan in step" in words for words in lost["warnings"])
    again = grid.run(one, "smoke", tmp_path / "r.jsonl", executor="serial", methods=methods, only=only)
    assert (again.before, again.done) == (2, 0)  # it is not tried again
    assert len(store.read(tmp_path / "r.jsonl").rows) == 2


@pytest.mark.parametrize("method", ["sedd_raw", "sedd"])
def test_a_group_says_of_each_of_its_runs_whether_it_diverged(method: str) -> None:
    cells = [cell("sedd_scores", method, instance=k, steps=100) for k in range(2)]
    warned: AbstractContextManager[Any]
    warned = pytest.warns(UserWarning, match="models 0, 1 of 2 diverged") if method == "sedd_raw" else nullcontext()
    with warned:
        found = experiments.find("sedd_scores").run_group(cells, "cpu")
    for outcome in found:
        assert outcome.metrics["diverged"] == (method == "sedd_raw")
        assert (outcome.metrics["tv"] is None) == (method == "sedd_raw")
        assert (outcome.metrics["diverged_at"] is None) == (method == "sedd")


def test_forms_of_sedd_are_what_their_names_say() -> None:
    data = spin_glass(3, 0)
    settings = {
        "sedd": ("log", "one_hot", 2e-3),
        "sedd_softplus": ("softplus", "one_hot", 2e-3),
        "sedd_raw": ("raw", "one_hot", 2e-3),
        "sedd_raw_slow": ("raw", "one_hot", 2e-4),
        "sedd_spins": ("log", "spins", 2e-3),
        "sedd_integers": ("log", "integers", 2e-3),
    }
    assert set(settings) == set(experiments.find("sedd_scores").methods)
    for method, wanted in settings.items():
        for noise in NOISES:
            model: Any = build(cell("sedd_scores", method, noise=noise).parameters, data)
            assert (model.scores, model.inputs, model.training.learning_rate) == wanted
            assert model.noise == noise


def test_forms_of_the_site_are_what_their_names_say() -> None:
    data, forms = spin_glass(3, 0), {}
    for unit in grid.plan(experiments.find("site_input"), "smoke", methods=["neurise_paper"], only={"rows": ["100"]}):
        model: Any = build(unit.cells[0].parameters, data)
        assert (model.loss, model.members, model.chain.hide_noised, model.width) == ("screening", 1, False, 32)
        forms[unit.cells[0].parameters["site"]] = (model.architecture.site_input, model.architecture.heads)
    assert forms == {
        "one-hot": ("one_hot", "shared"),
        "one number": ("number", "shared"),
        "one-hot, one head per site": ("one_hot", "site"),
    }
    assert set(forms) == set(FORMS)


def test_the_kernel_density_of_exact_samples_is_that_of_its_floor_and_below_the_law() -> None:
    data = spin_glass(3, 1)
    drawn, rows, fresh, other = (data.sample(5 * ROWS, seed=seed) for seed in range(4))
    found = density_of_law(drawn, rows, fresh, other, data, 0)
    # The mean of log μ over fresh rows, and its error; the law is the best density of all.
    entropy = float(-(data.pmf * np.log(data.pmf)).sum())
    spread = math.sqrt(float((data.pmf * np.log(data.pmf) ** 2).sum()) - entropy**2)
    assert found["log_law"] == pytest.approx(-entropy, abs=5 * spread / math.sqrt(ROWS))
    assert found["kde"] == pytest.approx(found["kde_floor"], abs=0.1)
    assert found["memorised_kde"] == pytest.approx(found["kde_floor"], abs=0.1)
    assert max(found["kde"], found["memorised_kde"]) < found["log_law"]
    few = density_of_law(drawn, rows[:50], fresh, other, data, 0)
    assert few["memorised_kde"] < found["memorised_kde"] - 0.1  # fifty rows are no law
    assert {**few, "memorised_kde": None} == {**found, "memorised_kde": None}
    wrong = density_of_law(drawn[:, ::-1].copy(), rows, fresh, other, data, 0)
    assert wrong["kde"] < found["kde"] - 0.1  # rows whose sites are exchanged are those of another law
    assert {**wrong, "kde": None} == {**found, "kde": None}


def test_the_distances_of_the_law_on_a_small_space() -> None:
    data = spin_glass(2, 0)
    rows = np.concatenate([data.sample(2000, seed=0), data.symbols[np.indices((2,) * 4).reshape(4, -1).T]])
    model = Memorize(alphabet=data.symbols.tolist()).fit(rows)
    found = of_law(model, data, 0)
    law = np.bincount((rows == data.symbols[1]) @ (2 ** np.arange(4)[::-1]), minlength=16) / len(rows)
    assert found["law_kl"] == pytest.approx(float((data.pmf * np.log(data.pmf / law)).sum()), rel=1e-9)
    assert found["law_tv"] == pytest.approx(0.5 * float(np.abs(data.pmf - law).sum()), rel=1e-9)
    assert found["law_tv_error"] == found["law_kl_error"] == 0.0


def test_the_distances_of_the_law_by_likelihoods_are_those_of_the_whole_law(monkeypatch: pytest.MonkeyPatch) -> None:
    data = spin_glass(3, 0)
    model = Independent(alphabet=data.symbols.tolist()).fit(data.sample(500, seed=0))
    whole = of_law(model, data, 0)
    monkeypatch.setattr(_measure, "WRITTEN_OUT", 2**8)
    drawn = of_law(model, data, 0)
    for name in ("law_tv", "law_kl"):
        assert 0 < drawn[f"{name}_error"] < 0.01
        assert drawn[name] == pytest.approx(whole[name], abs=5 * drawn[f"{name}_error"])
        assert whole[f"{name}_error"] == 0.0


def test_a_model_without_a_likelihood_has_no_distance_of_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    data = spin_glass(2, 0)
    model = D3PM(width=4, depth=1, timesteps=4, alphabet=data.symbols.tolist()).fit(
        data.sample(50, seed=0), max_steps=2, verbose=False
    )
    assert of_law(model, data, 0)["law_tv"] is not None  # so small a law is written out
    monkeypatch.setattr(_measure, "WRITTEN_OUT", 2)
    assert set(of_law(model, data, 0).values()) == {None}
