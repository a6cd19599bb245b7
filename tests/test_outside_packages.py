"""What another package offers is used by its name alone, and goes through everything that the library's own does."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chi_square
import numpy as np
import outside_package
import pytest
import tiny
from steps import replace_steps
from typer.testing import CliRunner, Result

import neurise
import neurise.cli
from neurise import discovery, exact
from neurise.energies import regressions
from neurise.modeling.model import Model
from neurise.training import loop

ROWS = np.random.default_rng(0).integers(3, size=(80, 2))
ROWS[:40, 1] = ROWS[:40, 0]
ROWS[:, 0] = np.where(ROWS[:, 0] == 2, 0, ROWS[:, 0])  # a law without symmetry: two sites, three states
LABELS = np.where(ROWS[:, 1] > 0, "up", "down")
FAST = {"training__batch_size": 32, "training__learning_rate": 0.05}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "network": ("neurise", {"network": "sines"}),
    "network, soft noise": ("neurise", {"network": "sines", "keep_prob": 0.5, "cycles": 2}),
    "network, committee": ("neurise", {"network": "sines", "members": 2}),
    "network, pairwise": ("neurise", {"network": "sines", "members": 2, "architecture__pairwise": True}),
    "network, sweeps": ("neurise", {"network": "sines", "corrector__clean": 0.3, "corrector__sweeps": 1}),
    "network of another model": ("ggm", {"network": "sines"}),
    "noise": ("neurise", {"chain__kind": "melting", "keep_prob": 0.9, "cycles": 2}),
    "noise, hard": ("neurise", {"chain__kind": "melting"}),
    "noise, committee": ("neurise", {"chain__kind": "melting", "keep_prob": 0.9, "cycles": 2, "members": 2}),
    "noise, pairwise": ("neurise", {"chain__kind": "melting", "members": 2, "architecture__pairwise": True}),
    "noise and network": ("neurise", {"chain__kind": "melting", "keep_prob": 0.9, "cycles": 2, "network": "sines"}),
    "model": ("lonely", {}),
    "model of the chain": ("brier", {}),
    "model of the chain, committee": ("brier", {"members": 2}),
    "model of the chain, pairwise": ("brier", {"members": 2, "architecture__pairwise": True, "network": "sines"}),
}
every = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package, found as one that is installed would be; afterwards everything is as before."""
    folder = tmp_path_factory.mktemp("site-packages")
    outside_package.write(folder)

    def forget() -> None:
        discovery.names.cache_clear()
        discovery.found.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == outside_package.PACKAGE]:
            del sys.modules[name]

    sys.path.insert(0, str(folder))
    forget()
    yield folder
    sys.path.remove(str(folder))
    forget()


@pytest.fixture(scope="module", autouse=True)
def roughly_fitted_terms() -> Iterator[None]:
    """Pairwise terms are found for certain elsewhere; here a few iterations will do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regressions, "ITERATIONS", 10)
        yield


def made(case: str, **changes: Any) -> Model:
    name, params = CASES[case]
    return tiny.model(name, **{**FAST, **params, **changes})


def fitted(case: str, *, labels: bool = False, **fit: Any) -> Model:
    return made(case).fit(ROWS, LABELS if labels else None, **{"max_steps": 30, "verbose": False, **fit})


@functools.cache
def known(case: str, labels: bool = False) -> Model:
    """A fitted model that nobody changes."""
    return fitted(case, labels=labels)


def law_of(model: Model, y: Any = None) -> np.ndarray:
    return np.asarray(exact.law(model, y))


def run(*words: object) -> Result:
    return CliRunner().invoke(neurise.cli.app, [str(word) for word in words], catch_exceptions=False)


def test_names_of_all_packages_stand_side_by_side() -> None:
    for group, (name, _) in outside_package.OFFERED.items():
        assert name in discovery.names(f"neurise.{group}")
    assert discovery.find("neurise.models", "brier").__name__ == "Brier"
    assert neurise.Lonely is discovery.find("neurise.models", "lonely")


@every
@pytest.mark.parametrize("labels", [False, True], ids=["without labels", "with labels"])
def test_samples_follow_the_exact_law(case: str, labels: bool) -> None:
    model = known(case, labels)
    y = "up" if labels else None
    law = law_of(model, y)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert 0.5 * np.abs(law - 1 / 9).sum() > 0.05  # it has learnt something
    drawn = model.sample(20_000, y, seed=1)
    chi_square.assert_drawn_from(drawn @ [3, 1], law)


@every
def test_likelihoods_agree_with_the_law(case: str) -> None:
    model = known(case)
    everything = np.array(list(itertools.product(range(3), repeat=2)))
    law = np.log(law_of(model) if "sweeps" not in case else np.asarray(exact.law(model, sweeps=0)))
    try:
        # Two conditionals in float32, whose errors are below 10^-6 each.
        np.testing.assert_allclose(model.log_prob(everything), law, atol=1e-5)
    except NotImplementedError:
        bound = model.elbo(everything, seed=0, draws=64)
        assert (bound.value - 6 * bound.standard_error <= law + 1e-5).all()
        assert np.isfinite(bound.value).all()


@every
def test_files_pickles_and_clones(case: str, tmp_path: Path) -> None:
    model = known(case, labels=True)
    model.save(tmp_path)
    for again in (neurise.load(tmp_path), pickle.loads(pickle.dumps(model))):
        assert type(again) is type(model)
        assert tiny.same_weights(again, model)
        assert np.array_equal(again.sample(50, "up", seed=3), model.sample(50, "up", seed=3))
        assert again.get_params() == model.get_params()
        assert str(again.summary()) == str(model.summary())


class Stopped(Exception):
    pass


@every
def test_a_stopped_run_goes_on_bit_for_bit(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = known(case)
    count = itertools.count(1)

    def stopping(state: Any, genuine: Any) -> Any:
        if next(count) == 17:
            raise Stopped
        return genuine()

    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e9)  # a checkpoint at every evaluation
        replace_steps(patch, stopping)
        with pytest.raises(Stopped):
            fitted(case, checkpoint=tmp_path)
    resumed = fitted(case, checkpoint=tmp_path, resume=True)
    assert tiny.same_weights(resumed, whole)
    assert [record["loss"] for record in resumed.history_] == [record["loss"] for record in whole.history_]


@pytest.mark.parametrize("case", ["network", "noise", "model", "model of the chain, pairwise"])
def test_many_are_fitted_at_once(case: str) -> None:
    for model in neurise.fit_many(made(case), [ROWS, ROWS[::-1]], max_steps=10, verbose=False):
        assert model.stopped_ == "steps"
        assert law_of(model).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.filterwarnings("ignore:the clamped values are unlikely")
def test_clamped_sites_hold_with_noise_of_somebody_else() -> None:
    model = known("noise")
    law = law_of(model).reshape(3, 3)
    drawn = model.sample(4000, clamp=np.ma.array([1, 0], mask=[False, True]), seed=0)
    assert (drawn[:, 0] == 1).all()
    seen = np.bincount(drawn[:, 1], minlength=3) / len(drawn)
    # Six standard deviations of a share of as many independent rows as the weighted particles are worth.
    effective = min(model.effective_samples_, len(drawn))
    assert np.abs(seen - law[1] / law[1].sum()).max() < 6 * np.sqrt(0.25 / effective)


def test_what_is_no_network_or_noise_of_the_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown network 'sinus'; did you mean sines"):
        made("network", network="sinus").fit(ROWS)
    with pytest.raises(ValueError, match="'absorbing' changes all sites at once"):
        made("noise", chain__kind="absorbing").fit(ROWS)


# --- metrics, data sets, experiments -----------------------------------------------------------------------------------


def test_a_metric_takes_part_in_an_evaluation() -> None:
    model = known("model")
    table = neurise.evaluate(model, ROWS[::2], samples=500)  # other rows than those that it has learnt from
    found = table["last_symbol"]
    assert found.value == np.mean(table.case.drawn[:, 0] == 2)
    assert found.floor == 0  # the first site never holds the last symbol
    assert set(found.baselines) == {"independent", "memorize"}
    assert discovery.find("neurise.metrics", "last_symbol")(ROWS, [0, 1]) == np.mean(ROWS[:, 0] == 1)


def test_the_command_line_finds_all_of_it(tmp_path: Path) -> None:
    for model, more in (("lonely", []), ("neurise", ["--network", "sines", "--set", "chain__kind=melting"])):
        folder = tmp_path / model
        steps = ["--max-steps", 10, "--batch-size", 32]
        done = run("train", "echoes:sites=2", "-o", folder, "--model", model, *steps, *more, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["stopped"] == "steps"
        again = run("train", "echoes:sites=2", "-o", folder, "--model", model, *steps, *more, "--resume")
        assert again.exit_code == 0, again.output
        assert run("sample", folder, "-n", 20, "-o", tmp_path / f"{model}.npy", "--seed", 1).exit_code == 0
        assert np.array_equal(np.load(tmp_path / f"{model}.npy"), neurise.load(folder).sample(20, seed=1))
        shown = run("evaluate", folder, "--data", "echoes:sites=2", "--samples", 200, "--json")
        assert shown.exit_code == 0, shown.output
        assert "last_symbol" in [row["name"] for row in json.loads(shown.stdout)["rows"]]


def test_an_experiment_runs(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    done = run("experiment", "run", "counting_up", "--scale", "smoke", "--results", file, "--executor", "serial")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(row["metrics"]["square"] for row in rows if "metrics" in row) == [1, 4, 9]


@pytest.mark.slow  # it imports everything
def test_its_models_are_methods_of_the_experiments(tmp_path: Path) -> None:
    words = ["--scale", "smoke", "--only", "rows=100", "--only", "side=2", "--executor", "serial", "--json"]
    words += ["--methods", "lonely,brier,neurise(network=sines)", "--results", str(tmp_path / "r.jsonl")]
    rows = json.loads(run("experiment", "run", "potts", *words).stdout)["rows"]
    assert [row["status"] for row in rows] == ["done"] * 3
    assert ["method_code" in row["parameters"] for row in rows] == [True, True, False]


def test_a_process_of_its_own_finds_it_too(package: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *sys.path]), "OMP_NUM_THREADS": "1"}
    words = ["train", "rows.npy", "-o", "model", "--model", "brier", "--network", "sines", "--max-steps", "5", "--json"]
    command = [sys.executable, "-m", "neurise", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert neurise.load(tmp_path / "model").sample(5, seed=0).shape == (5, 2)
