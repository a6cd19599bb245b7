"""``neurise theory``: the library's figures, as tables, as JSON and as a picture."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import figure_checks
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from neurise import datasets, theory
from neurise.cli import app
from neurise.noise.round_robin import RoundRobin

learning = importlib.import_module("neurise.theory.learning")
TINY = {"width": 4, "depth": 1, "steps": 20, "members": 1}
TINY |= {"training__batch_size": 64, "architecture__pairwise": False}
DATA = "potts:side=2"
FIGURE = [DATA, "--samples", 20, "--samples", 40, "--repeats", 1, "--cycles", 1, "--figure"]
WORDS = [DATA, "--samples", 100, "--samples", 20, "--repeats", 2, "--cycles", 1, "--keep-prob", 0.4]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "SETTINGS", TINY)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["theory", *map(str, words)], env={"COLUMNS": "120"})


def test_json_is_what_the_library_says() -> None:
    result = run(*WORDS, "--seed", 3, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    data = datasets.potts(side=2)
    noise = RoundRobin(data.space, 0.4, 1)
    assert (found["data"], found["sites"], found["states"]) == (DATA, 4, 3)
    assert (found["keep_prob"], found["cycles"], found["figure"]) == (0.4, 1, None)
    assert [entry["keep_prob"] for entry in found["delta"]] == [0.0, 0.3, 0.4, 0.5, 0.7, 0.9]
    for entry in found["delta"]:
        assert entry["delta"] == theory.delta_curve(data.pmf, data.space, entry["keep_prob"], 4).tolist()
    assert found["kernels"] == [kernel._asdict() for kernel in theory.compare(data.pmf, noise)]
    expected = list(theory.learning_curve(data.pmf, noise, [20, 100], [3, 4], **TINY))
    assert len(found["models"]) == len(expected) == 4
    for entry, model in zip(found["models"], expected, strict=True):
        assert (entry["rows"], entry["seed"], entry["memorised"]) == (model.rows, model.seed, model.memorised)
        for name, terms in model.starts.items():
            shown = entry["starts"][name]
            assert {key: shown[key] for key in terms.paper._fields} == terms.paper._asdict()
            assert shown["tv"] <= shown["sharp"] + 1e-12
            assert shown["sharp"] == terms.sharp


def test_tables_show_the_means() -> None:
    result, found = run(*WORDS), json.loads(run(*WORDS, "--json").stdout)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    cells = [line.split() for line in lines]
    for entry in found["delta"]:
        assert [f"{entry['keep_prob']:g}", *(f"{entry['delta'][4 * cycle]:.4f}" for cycle in range(5))] in cells
    few = [model for model in found["models"] if model["rows"] == 20]
    uniform = [model["starts"]["uniform"] for model in few]
    (line,) = [line for line in lines if line.split()[:1] == ["20"] and "uniform" not in line]
    wanted = [
        np.mean([model["memorised"] for model in few]),
        *(np.mean([entry[key] for entry in uniform]) for key in ("tv", "sharp", "bound")),
        np.mean([entry["sum_mean"] / entry["T"] for entry in uniform]),
        np.mean([entry["eta"] for entry in uniform]),
    ]
    assert line.split()[1:] == [f"{value:.4f}" for value in wanted]
    for name in ("noised rows", "fresh noise", "uniform draws"):
        (first, _) = [line for line in lines if f" {name} " in line]
        entries = [model["starts"][name] for model in few]
        means = [np.mean([entry[key] for entry in entries]) for key in ("gamma", "mismatch", "bound", "tv")]
        assert first.split()[2:] == [f"{value:.4f}" for value in means]
    for kernel in found["kernels"]:
        (line,) = [line for line in lines if line.strip().startswith(f"{kernel['name']} ")]
        far = [f"{kernel[key]:.4f}" for key in ("hamming", "elsewhere", "from_uniform")]
        assert line.split()[-5:] == [f"{kernel['defect']:.0g}", *far[:2], f"{kernel['reach']:,}", far[2]]


def test_tables_fit_an_ordinary_terminal() -> None:
    shown = CliRunner().invoke(app, ["theory", *map(str, WORDS)], env={"COLUMNS": "80"}).stdout
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 90


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_figure_is_written(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / f"theory.{ending}"
    done: list[Result] = []
    figure = figure_checks.drawn_figure(monkeypatch, lambda: done.append(run(*FIGURE, path)))
    figure_checks.check(figure)
    (result,) = done
    assert result.exit_code == 0
    assert str(path) in result.stdout
    assert path.read_bytes().startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert path.stat().st_size < (250_000 if ending == "png" else 400_000)


def test_a_figure_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "theory.svg"
    path.write_bytes(b"")
    refused = run(*FIGURE, path)
    assert refused.exit_code == 1
    assert "exists; --force overwrites it" in refused.stderr
    assert path.stat().st_size == 0
    assert run(*FIGURE, path, "--force").exit_code == 0
    assert path.stat().st_size > 0


def test_a_law_from_a_file_of_ones_own(tmp_path: Path) -> None:
    pmf = np.random.default_rng(0).dirichlet(np.ones(9))
    np.savez(tmp_path / "mine.npz", X=np.array([[0, 1], [2, 2], [1, 0]]), pmf=pmf)
    found = json.loads(run(tmp_path / "mine.npz", "--samples", 30, "--repeats", 1, "--json").stdout)
    assert found["delta"][0]["delta"][0] == pytest.approx(0.5 * np.abs(pmf - 1 / 9).sum())


def test_the_data_may_be_left_out() -> None:
    found = json.loads(run("--samples", 20, "--repeats", 1, "--json").stdout)
    assert (found["data"], found["sites"]) == ("edwards_anderson:side=3", 9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{folder}/rows.npy"], "rows.npy has rows and no known law"),
        (["edwards_anderson:side=5"], "2^25 configurations are too many to enumerate (the limit is 65,536)"),
        (["edwards_anderson:side=9"], "2^81 configurations are too many"),
        ([DATA, "--keep-prob", "1"], "keep_prob must be in [0, 1), got 1.0; at 1 no site would ever be noised"),
        ([DATA, "--keep-prob", "nan"], "keep_prob must be in [0, 1), got nan"),
        ([DATA, "--cycles", "0"], "cycles must be a positive whole number, got 0"),
        (["pots:side=2"], "there is neither a file nor a data set 'pots'; did you mean potts?"),
        (["potts:sied=2"], "has no option 'sied'; did you mean side"),
        ([DATA, "--figure", "{folder}/theory.docx"], "a figure is a .png, .svg or .pdf file"),
    ],
)
def test_mistakes(tmp_path: Path, words: list[str], message: str) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 2, (20, 3)))
    result = run(*(word.format(folder=tmp_path) for word in words))
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("words", [["--samples", "1"], ["--repeats", "0"], ["--seed", "-1"]])
def test_numbers_out_of_range_are_usage_errors(words: list[str]) -> None:
    assert run(DATA, *words).exit_code == 2


def test_without_matplotlib_a_figure_is_refused_before_anything_is_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(*WORDS, "--figure", tmp_path / "theory.png")
    assert result.exit_code == 1
    assert "pip install 'neurise[plots]'" in result.stderr
    assert result.stdout == ""
