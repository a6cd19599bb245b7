"""``neurise demo``: in full once, and in small for all else."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import figure_checks
import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

import neurise
from neurise import datasets, exact
from neurise.cli import app
from neurise.metrics.total_variation import total_variation

module = importlib.import_module("neurise.cli.demo")
instances = importlib.import_module("neurise.datasets.edwards_anderson")
TINY = {"width": 4, "depth": 1, "steps": 20, "members": 1}
TINY |= {"training__batch_size": 64, "architecture__pairwise": False}
SIDE = 3
"""Of the lattice, where the demo has 4: 512 configurations for 65,536."""


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["demo", *map(str, words)], env={"COLUMNS": "120"})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTINGS", TINY)
    monkeypatch.setattr(module, "ROWS", 300)
    genuine = datasets.edwards_anderson
    monkeypatch.setattr(instances, "edwards_anderson", lambda side, **given: genuine(side=SIDE, **given))


@pytest.mark.usefixtures("small")
def test_numbers_are_the_exact_ones(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        result = json.loads(run("-o", tmp_path, "--json").stdout)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    data = datasets.edwards_anderson(side=SIDE, seed=0, J=module.COUPLING)
    train = files_rows(tmp_path)
    memorised, hard, soft = result["results"]
    assert memorised["total_variation"] == pytest.approx(total_variation(train, data.pmf, alphabet=data.symbols))
    spins = 2.0 * data.space.configurations().numpy() - 1
    truth = np.einsum("x,xi,xj->ij", data.pmf, spins, spins)
    pairs = np.triu_indices(SIDE**2, 1)
    assert memorised["correlation_mean_abs"] == pytest.approx(
        np.abs(train.T @ train.astype(float) / len(train) - truth)[pairs].mean()
    )
    for entry, name in ((hard, "hard"), (soft, "soft")):
        model = neurise.load(tmp_path / name)
        law = exact.law(model)
        assert model.get_params()["keep_prob"] == module.MODELS[name]["keep_prob"]
        assert entry["total_variation"] == pytest.approx(total_variation(law, data.pmf))
        learnt = np.einsum("x,xi,xj->ij", law.numpy(), spins, spins)
        assert entry["correlation_mean_abs"] == pytest.approx(np.abs(learnt - truth)[pairs].mean())
        assert entry["training_seconds"] > 0
    assert sorted(result["files"]) == sorted(str(tmp_path / name) for name in ("data.npz", "demo.png", "hard", "soft"))
    assert all(Path(path).exists() for path in result["files"])


def files_rows(folder: Path) -> np.ndarray:
    data = datasets.files(folder / "data.npz")
    np.testing.assert_array_equal(data.pmf, datasets.edwards_anderson(side=SIDE, seed=0, J=module.COUPLING).pmf)
    return data.train


@pytest.mark.usefixtures("small")
def test_the_table_and_the_figure(tmp_path: Path) -> None:
    result = run("-o", tmp_path / "out")
    assert result.exit_code == 0
    for words in (
        "memorising the data",
        "hard noise",
        "soft noise",
        "Total variation is",
        str(tmp_path / "out/demo.png"),
    ):
        assert words in result.stdout
    assert (tmp_path / "out/demo.png").read_bytes().startswith(b"\x89PNG")
    assert run("-o", tmp_path / "out").exit_code == 0  # once more, over its own files


@pytest.mark.usefixtures("small")
def test_without_matplotlib_there_is_a_table_and_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "neurise.cli._demo_figure", raising=False)
    result = run("-o", tmp_path)
    assert result.exit_code == 0
    assert "soft noise" in result.stdout
    assert "pip install 'neurise[plots]'" in result.stderr
    assert "demo.png" not in result.stdout
    assert not (tmp_path / "demo.png").exists()


@pytest.mark.slow
def test_both_models_are_far_closer_to_the_truth_than_the_data(tmp_path: Path) -> None:
    memorised, *models = json.loads(run("-o", tmp_path, "--json").stdout)["results"]
    assert len(models) == 2
    for model in models:
        assert model["total_variation"] < 0.5 * memorised["total_variation"]
        assert model["correlation_mean_abs"] < 0.03


def test_labels_and_panels_of_the_figure_do_not_touch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from neurise.cli._demo_figure import draw

    rng = np.random.default_rng(0)
    samples = [rng.choice([-1, 1], (40, 16)) for _ in range(3)]
    laws = [np.corrcoef(rows.T) for rows in samples]
    figure = figure_checks.drawn_figure(
        monkeypatch, lambda: draw(tmp_path / "a.png", ["exact", "NeurISE", "GGM"], [0.0, 0.1, 0.2], samples, laws)
    )
    figure_checks.check(figure)
