"""``neurise experiment``: run, go on, list and show."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from neurise import experiments
from neurise.cli import app
from neurise.experiments import store

SMOKE = ["experiment", "run", "ising_curves", "--scale", "smoke"]


def run(*words: object, columns: int = 80) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": str(columns)})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file with the cells of two methods."""
    path = tmp_path_factory.mktemp("experiment") / "r.jsonl"
    done = run(*SMOKE, "--executor", "serial", "--methods", "neurise,memorize", "--results", path)
    assert done.exit_code == 0, done.output
    assert "4 of 4 cells finished; " in done.stdout
    return path


def test_the_list_has_every_experiment() -> None:
    shown = run("experiment", "list").stdout
    found = json.loads(run("experiment", "list", "--json").stdout)["experiments"]
    assert [entry["name"] for entry in found] == experiments.names()
    assert all(name in shown for name in experiments.names())
    sizes, instances, trials = 7, 5, 10 * 7 + 3 * 5  # fewer trials of the methods that came after the paper
    curves = next(entry for entry in found if entry["name"] == "ising_curves")
    assert curves["cells"]["paper"] == sizes * instances * trials


def test_what_is_finished_is_not_run_again(results: Path) -> None:
    before = results.read_bytes()
    words = [*SMOKE, "--executor", "serial", "--methods", "neurise", "--methods", "memorize", "--results", results]
    again = json.loads(run(*words, "--json").stdout)
    assert (again["cells"], again["finished_before"], again["finished_now"], again["failed"]) == (4, 4, 0, 0)
    assert results.read_bytes() == before
    assert {row["parameters"]["method"] for row in again["rows"]} == {"neurise", "memorize"}


def test_the_table_shows_the_means_within_eighty_columns(results: Path) -> None:
    shown = run("experiment", "show", results).stdout
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())
    assert "ising_curves, smoke: 4 finished cells, by the code of this version" in shown
    for row in store.read(results).rows:
        assert f"{row['metrics']['tv']:.3g}" in shown
    assert "memorised rows" in shown
    assert "rows = 1000" in shown


def test_json_of_a_file_has_its_rows(results: Path) -> None:
    found = json.loads(run("experiment", "show", results, "--json").stdout)
    assert [row["key"] for row in found["rows"]] == [row["key"] for row in store.read(results).rows]


def test_a_damaged_last_line_is_reported_and_done_again(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    whole = results.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]) + whole[3][:100])
    words = [*SMOKE, "--executor", "serial", "--methods", "neurise,memorize", "--results", path]
    done = run(*words)
    assert done.exit_code == 0
    assert "r.jsonl, line 4 was left out: it is no JSON" in done.stderr
    assert "4 of 4 cells finished, 3 were there before" in done.stdout
    assert path.read_bytes().splitlines()[3] == whole[3][:100]
    assert "r.jsonl, line 4 was left out: it is no JSON" in run("experiment", "show", path).stderr


def test_other_code_is_told_of(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{**row, "code": {"neurise": "0.0.1", "digest": "older"}} for row in store.read(results).rows]
    store.append(path, rows)
    words = [*SMOKE, "--executor", "serial", "--methods", "memorize", "--results", path]
    done = run(*words, "--any-code")
    assert "2 of 2 cells finished, 2 were there before" in done.stdout
    done = run(*words)
    assert "2 of these cells from another version of the code" in done.stderr
    assert "2 of 2 cells finished; " in done.stdout


def test_rows_keep_the_command_without_what_says_where(results: Path, tmp_path: Path) -> None:
    told = {row["command"] for row in store.read(results).rows}
    assert told == {"neurise experiment run ising_curves --scale smoke --methods neurise,memorize"}
    words = ["--executor", "serial", "--methods", "memorize", "--seed", 3, "--trials", 1, "--only", "rows=100"]
    words += ["--single", "--device", "cpu", "--results", tmp_path / "r.jsonl"]
    assert run(*SMOKE, *words).exit_code == 0
    (row,) = store.read(tmp_path / "r.jsonl").rows
    assert row["command"] == (
        "neurise experiment run ising_curves --scale smoke --methods memorize --seed 3 --trials 1 --only rows=100 --single "
        "--device cpu"
    )
    again = run(*row["command"].split()[1:], "--executor", "serial", "--results", tmp_path / "again.jsonl")
    assert again.exit_code == 0
    (same,) = store.read(tmp_path / "again.jsonl").rows
    assert (same["key"], same["metrics"], same["command"]) == (row["key"], row["metrics"], row["command"])


def test_columns_that_nobody_measured_are_not_shown(results: Path) -> None:
    shown = run("experiment", "show", results).stdout
    assert "TV of the law" in shown
    assert "kernel density, nats" in shown
    measured = store.read(results).rows
    lacking = results.with_name("lacking.jsonl")
    for row in measured:
        row["metrics"] = {name: None if name == "law_tv" else value for name, value in row["metrics"].items()}
    lacking.write_text("".join(json.dumps(row) + "\n" for row in measured), encoding="utf-8")
    shown = run("experiment", "show", lacking).stdout
    assert "total variation" in shown
    assert "TV of the law" not in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "ising_curve"], "unknown experiment 'ising_curve'; did you mean ising_curves?"),
        (["run", "potts", "--methods", "neurize"], "unknown method 'neurize'; did you mean neurise"),
        (["run", "potts", "--only", "rows"], "--only rows: write NAME=VALUE"),
        (["run", "potts", "--only", "row=100"], "unknown parameter 'row'; did you mean rows"),
        (["run", "potts", "--scale", "labtop"], "unknown scale 'labtop'; did you mean laptop?"),
        (["run", "potts", "--executor", "dask:8786"], "'dask:8786' is no address of a Dask scheduler"),
        (["show", "absent.jsonl"], "there is no results file absent.jsonl"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words: list[str], message: str) -> None:
    done = run("experiment", *words)
    assert done.exit_code == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"format": 99}\n', encoding="utf-8")
    for words in (["show", path], ["run", "potts", "--scale", "smoke", "--executor", "serial", "--results", path]):
        done = run("experiment", *words)
        assert done.exit_code == 1
        assert "line 1 has format 99, and this version of neurise reads format 1" in done.stderr
    assert path.read_text(encoding="utf-8") == '{"format": 99}\n'


def test_failed_cells_are_shown_and_end_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neurise.experiments import dwave

    monkeypatch.setenv("NEURISE_DATA", str(tmp_path / "nowhere"))
    dwave._reads.cache_clear()
    words = ["run", "dwave", "--scale", "smoke", "--executor", "serial", "--results", tmp_path / "r.jsonl"]
    done = run("experiment", *words, "--methods", "neurise,neurise_paper,ggm,sedd,d3pm,dfm,real")
    assert done.exit_code == 1
    assert (
        "failed: method neurise, source advantage41_q263, rows 500, seed 0: ValueError: NEURISE_DATA is" in done.stderr
    )
    assert "… and 2 more failed" in done.stderr
    assert "0 of 7 cells finished, 7 failed" in done.stdout


POTTS = ("experiment", "run", "potts", "--scale", "paper", "--single", "--device", "cpu")
ENDLESS = (*POTTS, "--methods", "memorize,neurise")
"""Cells that only count rows, and then more than a hundred of minutes each: they do not end before somebody steps in."""
COUNTED = (*POTTS, "--methods", "memorize", "--only", "rows=100", "--only", "side=2", "--executor", "serial")
"""Ten of those that only count rows."""


def started(path: Path) -> subprocess.Popen[bytes]:
    """Start a run in a session of its own, and wait until its first cell is finished."""
    command = [sys.executable, "-m", "neurise", *ENDLESS, "--results", str(path)]
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        # Whoever runs the tests in the background of a shell is deaf to Ctrl-C, and so would be what he starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 300
    while not path.exists() or b"\n" not in path.read_bytes():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return process


@pytest.mark.slow
def test_no_finished_cell_is_repeated_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = started(path)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    before = store.read(path)
    done = json.loads(run(*COUNTED, "--results", path, "--json").stdout)
    finished, wanted = {row["key"] for row in before.rows}, {row["key"] for row in done["rows"]}
    assert len(wanted) == 10
    assert done["finished_before"] == len(finished & wanted)
    assert done["finished_before"] + done["finished_now"] == 10
    written = path.read_bytes().splitlines()
    keys = [json.loads(line)["key"] for number, line in enumerate(written, 1) if number not in before.damaged]
    assert len(keys) == len(set(keys))
    assert set(keys) == finished | wanted


@pytest.mark.slow
def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = started(path)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"interrupted; finished cells are kept, and the same command goes on" in said
    assert b"Traceback" not in said
    contents = store.read(path)
    assert contents.damaged == []
    assert {row["status"] for row in contents.rows} == {"done"}
