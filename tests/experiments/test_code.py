"""Which code a row depends on: what its cell imports, also late and through others, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neurise import experiments
from neurise.cli import app
from neurise.experiments import store
from neurise.experiments._code import script_version, version
from neurise.experiments.parts import sources

CELL = ["neurise.experiments.ising_curves", "neurise.models.d3pm"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("code") / "neurise"
    shutil.copytree(sources.ROOT, copy, ignore=shutil.ignore_patterns("*.pyc", "player", "reference"))
    return copy


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("experiments/ising_curves.py", True),
        ("experiments/mnist.py", False),
        ("models/d3pm.py", True),
        ("models/_d3pm/bound.py", True),
        ("models/sedd.py", False),
        ("models/neurise.py", False),
        ("modeling/round_robin.py", False),
        ("energies/graph_selection.py", False),
        ("models/_sedd/score.py", False),
        ("metrics/total_variation.py", True),
        ("metrics/_binomial.py", True),  # through total_variation
        ("metrics/kde.py", True),  # through _density
        ("metrics/mmd.py", False),
        ("datasets/edwards_anderson.py", True),  # imported inside of a function
        ("datasets/_pairwise/graph.py", True),  # through that one
        ("datasets/mnist.py", False),
        ("networks/causal.py", False),
        ("networks/site_mlp.py", True),  # says how many parameters all methods get
        ("noise/absorbing.py", True),  # found by its name
        ("training/step.py", True),
        ("structure/recovery.py", False),
        ("mutagenesis/changes.py", False),
        ("cli/sample.py", False),
        ("report/build.py", False),
        ("executors/__init__.py", False),
        ("tuning/search.py", False),
        ("_version.py", False),
    ],
)
def test_a_change_of_what_a_cell_imports_changes_its_digest_and_no_other_does(
    package: Path, file: str, changes: bool
) -> None:
    before = sources.digest_of(CELL, package)
    path = package / file
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\nCHANGED = 1\n", encoding="utf-8")
    after = sources.digest_of(CELL, package)
    path.write_text(text, encoding="utf-8")
    assert (after != before) == changes
    assert sources.digest_of(CELL, package) == before


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ('"""Words."""', '"""Other words."""', False),
        ("# why", "# another reason", False),
        ("return 1", "return 2", True),
        ("# text", "# other text", True),  # inside a string, where it is no comment
    ],
)
def test_comments_and_docstrings_do_not_count(tmp_path: Path, old: str, new: str, changes: bool) -> None:
    text = '"""Words."""\n\n\ndef f():\n    # why\n    return 1\n\n\nTEXT = """a\n# text\n"""\n'
    assert old in text
    path = tmp_path / "one.py"
    path.write_text(text, encoding="utf-8")
    before = sources.digest_of([path])
    path.write_text(text.replace(old, new) + "\n", encoding="utf-8")
    assert (sources.digest_of([path]) != before) == changes


def test_methods_have_digests_of_their_own_and_settings_count(monkeypatch: pytest.MonkeyPatch) -> None:
    one = experiments.find("ising_curves")
    methods = ("neurise", "neurise_paper", "d3pm", "d3pm(posterior=published)", "preset:ising_5x5_d3pm", None)
    digests = [version(one, method)["digest"] for method in methods]
    assert len(set(digests)) == len(methods)
    assert version(one, "d3pm_published") == version(one, "d3pm(posterior=published)")
    assert version(experiments.find("mnist"), "real") == version(experiments.find("mnist"))


def test_a_method_of_a_file_depends_on_what_the_file_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from neurise.models.sedd import SEDD\n", encoding="utf-8")
    found = sources.dependencies([path])
    assert {"mine.py", "neurise.models._sedd.score"} <= set(found)
    assert "neurise.models.d3pm" not in found


def test_a_script_that_imports_everything_depends_on_everything(tmp_path: Path) -> None:
    path, tasks = tmp_path / "script.py", tmp_path / "script_tasks"
    path.write_text("import neurise\n", encoding="utf-8")
    found = sources.dependencies([path])
    assert {"neurise", "neurise.models.sedd", "neurise.metrics.kde"} <= set(found)
    assert "neurise.cli.sample" not in found
    before = script_version(path)
    tasks.mkdir()
    (tasks / "one.py").write_text("ONE = 1\n", encoding="utf-8")
    assert script_version(path) != before


def test_check_says_which_rows_are_older_than_their_code(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    words = ["run", "ising_curves", "--scale", "smoke", "--methods", "memorize", "--executor", "serial"]
    assert CliRunner().invoke(app, ["experiment", *words, "--results", str(results)]).exit_code == 0
    rows = store.read(results).rows
    store.append(results, [{**rows[0], "code": {"neurise": "0.0.1", "digest": "older"}}])
    store.append(results, [{**rows[0], "experiment": "gone", "key": "other"}])
    told = CliRunner().invoke(app, ["experiment", "check", str(results)])
    assert told.exit_code == 0
    assert "1 of 4 rows are older than the code they depend on" in told.stdout
    table = [line.split() for line in told.stdout.splitlines()]
    assert ["ising_curves", "smoke", "memorize", "2", "1", "0"] in table


def test_stores_are_merged_each_row_once(tmp_path: Path) -> None:
    results, parts = tmp_path / "all.jsonl", [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, path in zip(("100", "1000"), parts, strict=True):
        words = ["run", "ising_curves", "--scale", "smoke", "--methods", "memorize", "--only", f"rows={number}"]
        CliRunner().invoke(app, ["experiment", *words, "--executor", "serial", "--results", str(path)])
    first = store.read(parts[0]).rows[0]
    store.append(parts[1], [{**first, "status": "failed"}])  # it was finished in the other file
    merge = ["experiment", "merge", *map(str, parts), "-o", str(results)]
    assert "2 rows added" in CliRunner().invoke(app, merge).stdout
    assert "0 rows added" in CliRunner().invoke(app, merge).stdout
    assert [row["status"] for row in store.read(results).rows] == ["done", "done"]
    again = ["run", "ising_curves", "--scale", "smoke", "--methods", "memorize", "--executor", "serial"]
    done = CliRunner().invoke(app, ["experiment", *again, "--results", str(results)])
    assert "2 of 2 cells finished, 2 were there before" in done.stdout
