"""Search by chance, for every method of an experiment, without any other library."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from neurise import experiments, presets
from neurise.cli import app
from neurise.dataset import Dataset
from neurise.experiments import dwave, mnist
from neurise.experiments.parts.tuning import searched
from neurise.modeling.search_space import Choice, Integer, LogUniform, Uniform, Unless, ZeroOr
from neurise.models.neurise import NeurISE
from neurise.space import Space
from neurise.tuning.random_search import _draw, drawn, random_search
from neurise.tuning.task import Task, make_task

SMALL = ["--scale", "smoke", "--trials", "2", "--trial-steps", "3", "--rows", "60", "--device", "cpu"]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["experiment", "tune", *map(str, words)])


@pytest.fixture(scope="module")
def task() -> Task:
    found = searched(experiments.find("ising_curves"), "smoke", ["d3pm"], rows=60)
    ((_, model, fixed),) = found.methods
    return make_task(found.data, model, fixed, max_steps=3, device="cpu")


def test_draws_lie_where_the_space_says_and_fill_it() -> None:
    source = np.random.default_rng(0)
    draws = {
        domain: [_draw(domain, source) for _ in range(400)]
        for domain in (Choice((1, 2)), Integer(1, 3), Uniform(0, 2), LogUniform(1e-4, 1e-2), ZeroOr(0.2, 1, share=0.25))
    }
    choice, integer, uniform, log, zero = draws.values()
    assert (set(choice), set(integer)) == ({1, 2}, {1, 2, 3})
    assert 0 <= min(uniform) < 0.1 < 1.9 < max(uniform) <= 2
    assert 0.4 < np.mean(np.array(log) < 1e-3) < 0.6  # half of them in each decade
    assert abs(np.mean(np.array(zero) < 0.2) - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 400)
    assert _draw(Unless(Integer(2, 2), zero="a", value=1), source) == 2


def test_a_search_goes_on_where_it_was_interrupted(task: Task, tmp_path: Path) -> None:
    whole = random_search(task, 3, tmp_path / "whole.jsonl")
    random_search(task, 1, tmp_path / "parts.jsonl")
    with (tmp_path / "parts.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"search": {"model"')  # cut short
        file.write("\n")
    parts = random_search(task, 3, tmp_path / "parts.jsonl")
    assert (parts.params, parts.score) == (whole.params, whole.score)
    lines = [line for line in (tmp_path / "parts.jsonl").read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    assert [json.loads(line)["place"] for line in lines] == [0, 1, 2]
    assert drawn(task, 1) == drawn(task, 1) != drawn(task, 2)
    longer = replace(task, max_steps=4)
    random_search(longer, 1, tmp_path / "parts.jsonl")  # another budget is another search
    assert len((tmp_path / "parts.jsonl").read_text(encoding="utf-8").splitlines()) == 5


def test_one_command_searches_for_every_method_and_its_presets_are_methods(tmp_path: Path) -> None:
    done = run("ising_curves", *SMALL, "-o", tmp_path, "--methods", "neurise_paper,d3pm", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [line["method"] for line in found["methods"]] == ["neurise_paper", "d3pm"]
    best = presets.read(tmp_path / "ising_curves_neurise_paper.json")
    form = NeurISE.paper().get_params()
    assert {name: best.params[name] for name in ("loss", "chain__hide_noised")} == {
        name: form[name] for name in ("loss", "chain__hide_noised")
    }
    assert best.study["finished"] == 2
    assert best.study["method"] == "neurise_paper"
    method = f"preset:{tmp_path / 'ising_curves_d3pm.json'}"
    words = ["run", "ising_curves", "--scale", "smoke", "--executor", "serial", "--only", "rows=100"]
    again = CliRunner().invoke(app, ["experiment", *words, "--methods", method, "--results", str(tmp_path / "r.jsonl")])
    assert again.exit_code == 0, again.stderr


def test_rows_that_are_searched_on_hold_no_test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = np.random.default_rng(0).choice([-1, 1], (250, 6))
    one = experiments.find("dwave")
    made = Dataset("reads", Space(6, 2), np.array([-1, 1]), train=reads[:200], test=reads[200:])
    monkeypatch.setattr(dwave, "_reads", lambda source, split: (made, made.train, made.test))
    found = one.rows_to_search_on({"source": "here", "rows": 150}, 0)
    assert found.train is not None
    assert (len(found.train), found.test) == (150, None)
    digits = Dataset(
        "digits", Space(6, 2), np.array([-1, 1]), train=reads[:200], labels=np.arange(200) % 4, test=reads[200:]
    )
    monkeypatch.setattr(mnist, "_digits", lambda: digits)
    found = experiments.find("mnist").rows_to_search_on({"classes": 2, "rows": 50}, 0)
    assert found.labels is not None
    assert set(found.labels.tolist()) == {0, 1}
    assert (len(found.labels), found.test) == (50, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["theory", *SMALL], "theory has no methods to search for"),
        (["ising_curves", "--scale", "smoke"], "say how long each trial may take"),
        (["ising_curves", *SMALL, "--methods", "memorize"], "memorize is counted, not trained"),
        (["ising_curves", *SMALL, "--methods", "d4pm"], "unknown method 'd4pm'; did you mean d3pm"),
        (["ising_curves", *SMALL[2:], "--scale", "smoky"], "unknown scale 'smoky'; did you mean smoke"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_in_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    done = run(*words, "-o", tmp_path)
    assert done.exit_code == 1
    assert message in done.stderr


def test_no_other_library_is_needed() -> None:
    code = "import sys; sys.modules['optuna'] = None; import neurise.tuning.random_search"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
