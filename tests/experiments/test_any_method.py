"""Any model is a method of an experiment: one with settings, one of a file that is in no package, one that is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_rows
from typer.testing import CliRunner, Result

from neurise import experiments
from neurise.cli import app
from neurise.experiments import grid, store
from neurise.experiments._laws import spin_glass
from neurise.experiments._methods import build, limits, named, trainable
from neurise.experiments.parts.method_names import read, split
from neurise.experiments.parts.summary import blocks
from neurise.models.neurise import NeurISE
from neurise.report import build as page

MINE = """
from dataclasses import dataclass

import torch

from neurise.modeling.solved import SolvedModel
from neurise.models.neurise import NeurISE


@dataclass(kw_only=True, eq=False, repr=False)
class UniformLaw(SolvedModel):
    bias: float = 0.0

    def _count(self, x, y, weights):
        return {"nothing": torch.zeros(1)}

    def _draw(self, request):
        return self.space_.uniform(request.n, generator=request.generator)

    def _log_prob(self, x, y):
        return torch.full((len(x),), -float(self.space_.sites))


@dataclass(kw_only=True, eq=False, repr=False)
class Mine(NeurISE):
    pass


class Other:
    pass
"""


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    return tmp_path / "mine.py"


def test_a_class_of_a_file_goes_through_a_cell_its_row_and_the_page(mine: Path) -> None:
    chosen = "mine.py:Mine(members=1,architecture__pairwise=false),mine.py:UniformLaw(bias=0.5),memorize"
    quick = ["experiment", "run", "ising_curves", "--scale", "smoke", "--only", "rows=100"]
    done = run(*quick, "--executor", "serial", "--methods", chosen)
    assert done.exit_code == 0, done.stderr
    assert "3 of 3 cells finished" in done.stdout
    rows = store.read("results.jsonl").rows
    assert [row["parameters"]["method"] for row in rows] == split(chosen)
    assert all(0 <= row["metrics"]["tv"] <= 1 for row in rows)
    assert [len(row["parameters"].get("method_code", "")) for row in rows] == [12, 12, 0]
    assert rows[0]["command"].endswith(f"--methods '{chosen}' --only rows=100")
    assert run(*quick, "--executor", "serial", "--methods", chosen).stdout.count("3 were there before") == 1

    mine.unlink()  # a page and a table need no code of the method
    shown = page(["results.jsonl"])
    assert "mine.py:UniformLaw(bias=0.5)" in shown.html
    (section,) = shown.gathered.sections
    assert section.cells[0] == 3
    assert sorted(section.methods or []) == sorted(split(chosen))
    assert "mine.py:Mine" in run("experiment", "show", "results.jsonl").stdout


@pytest.mark.slow  # a process of its own imports torch
def test_another_process_and_another_version_of_the_file(mine: Path) -> None:
    words = ["experiment", "run", "potts", "--scale", "smoke", "--only", "rows=100", "--only", "side=2"]
    words += ["--methods", "mine.py:UniformLaw"]
    assert run(*words, "--workers", "1").exit_code == 0
    before = store.read("results.jsonl").rows[0]["parameters"]
    mine.write_text(f"{MINE}\n# another version\n", encoding="utf-8")
    assert "1 of 1 cells finished;" in run(*words, "--executor", "serial").stdout  # it is run again
    after = store.read("results.jsonl").rows[-1]["parameters"]
    assert before["method_code"] != after["method_code"]
    data = experiments.find("potts").law(before)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"the code of mine\.py:UniformLaw has the digest"):
        build(before, data)
    assert page(["results.jsonl"]).gathered.sections[0].cells[0] == 2


def test_settings_win_over_those_of_the_cell_and_make_another_cell() -> None:
    potts = experiments.find("potts")
    plain, changed = (
        grid.plan(potts, "smoke", methods=[method])[0].cells[0]
        for method in ("neurise", "neurise(depth=1, loss='cross_entropy')")
    )
    assert plain.key != changed.key
    model = build(changed.parameters, potts.law(changed.parameters))  # type: ignore[attr-defined]
    assert (model.depth, model.loss) == (1, "cross_entropy")  # type: ignore[attr-defined]
    wide = build({**plain.parameters, "method": "ggm(width=7)"}, potts.law(plain.parameters))  # type: ignore[attr-defined]
    assert wide.get_params()["width"] == 7  # a width that is given is not matched to anything


def test_methods_are_taken_apart() -> None:
    text = "neurise, ggm(cycles=5,keep_prob=0.1) ,a/b.py:C(order=[1,0], x=(1,2)), "
    assert split(text) == ["neurise", "ggm(cycles=5,keep_prob=0.1)", "a/b.py:C(order=[1,0], x=(1,2))"]
    assert read("ggm(cycles=5, loss=screening, skip=false, l1=None)").settings == {
        "cycles": 5,
        "loss": "screening",
        "skip": False,
        "l1": None,
    }
    assert [trainable(name) for name in ("neurise", "neurise(depth=1)", "pairwise", "memorize")] == [
        True,
        True,
        False,
        False,
    ]
    assert named("neurise(depth=1)").label == "neurise(depth=1)"


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("neurize", r"unknown method 'neurize'; did you mean neurise"),
        ("zzz", r"there are: neurise, ggm, sedd.*any model.*mine.py:Model"),
        ("neurise(wdth=3)", "wdth"),
        ("neurise(width=3", "with both brackets"),
        ("neurise(3)", "settings are written parameter=value; got '3'"),
        ("neurise(width=3,width=4)", "width was given twice"),
        ("absent.py:Model", "there is no file absent.py"),
        ("mine.py:Absent", "has nothing called 'Absent'; it has UniformLaw, Mine, Other"),
        ("mine.py:Other", "Other is no model"),
        ("mine.py:UniformLaw(colour=1)", "colour"),
        ("broken.py:Model", "broken.py cannot be run: ZeroDivisionError"),
    ],
)
def test_what_is_no_method_is_refused_before_anything_runs(mine: Path, method: str, message: str) -> None:
    (mine.parent / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    potts = experiments.find("potts")
    with pytest.raises((ValueError, OSError, ImportError), match=message):
        grid.plan(potts, "smoke", methods=[method])
    done = run("experiment", "run", "potts", "--scale", "smoke", "--methods", method)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert not Path("results.jsonl").exists()


@pytest.mark.parametrize("name", ["theory", "noise_levels", "local_global"])
def test_an_experiment_without_a_choice_of_methods_takes_none(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown method of {name} 'ggm'; there are: (none|neurise, neurise_paper)"):
        grid.plan(experiments.find(name), "smoke", methods=["ggm"])


def test_methods_are_never_averaged_where_a_table_goes_by_something_else(tmp_path: Path) -> None:
    rows = report_rows.rows("potts", trials=2, methods=["neurise", "ggm"])
    for row in rows:
        row["metrics"]["tv"] = 0.1 if row["parameters"]["method"] == "neurise" else 0.9
    potts = experiments.find("potts")
    (table,) = potts.tables
    for block in blocks(potts, table, rows):
        assert block.labels == ["2, NeurISE", "2, GGM", "3, NeurISE", "3, GGM"]
        assert [line[0].mean for line in block.entries] == pytest.approx([0.1, 0.9, 0.1, 0.9])
    html = page([report_rows.write(tmp_path / "r.jsonl", rows)]).html
    assert "GGM" in html[html.index('id="potts-smoke-tv"') : html.index('id="potts-smoke-summary"')]


def test_presets_and_neurise_as_it_is_train_for_the_seconds_of_an_experiment() -> None:
    steps, both = {"steps": 5}, {"steps": 5, "seconds": 2}
    assert limits({"method": "ggm", **both}) == {"max_steps": 5}
    assert limits({"method": "preset:ising_5x5_ggm", **both}) == {"max_seconds": 2.0}
    assert limits({"method": "preset:ising_5x5_ggm", **steps}) == {"max_steps": 5}
    assert limits({"method": "neurise_default", **both}) == {"max_seconds": 2.0}
    assert limits({"method": "neurise_default", **steps}) == limits({"method": "memorize", **both}) == {}


def test_neurise_as_it_is_takes_no_setting_of_an_experiment() -> None:
    cell = grid.plan(experiments.find("ising_curves"), "smoke", methods=["neurise_default"])[0].cells[0]
    data = spin_glass(3, 0)
    assert build(cell.parameters, data).get_params() == NeurISE(alphabet=data.symbols.tolist()).get_params()
