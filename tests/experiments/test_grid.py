"""Every cell once, whatever happens on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_experiments import Fake, Grouped

from neurise.experiments import grid, store
from neurise.experiments._code import version
from neurise.experiments.parts.planning import parts


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_combination_is_one_cell() -> None:
    units = grid.plan(Fake(trials=2, size=3), "smoke", seed=5)
    found = {(c.parameters["method"], c.parameters["number"], c.seed) for unit in units for c in unit.cells}
    assert found == {(m, n, s) for m in ("plain", "odd") for n in range(3) for s in (5, 6)}
    assert len({unit.key for unit in units}) == len(units) == 12


def test_a_part_of_the_grid_has_cells_of_the_whole() -> None:
    fake = Fake(trials=2, size=3)
    whole = {unit.key for unit in grid.plan(fake, "smoke")}
    part = grid.plan(fake, "smoke", trials=1, only={"number": ["0", "2"], "method": ["odd"]})
    assert [(unit.cells[0].parameters["number"], unit.cells[0].seed) for unit in part] == [(0, 0), (2, 0)]
    assert {unit.key for unit in part} < whole
    assert len(grid.plan(fake, "smoke", trials=7)) == len(whole)  # no more than there are
    with pytest.raises(ValueError, match="unknown parameter 'nummer'; did you mean number"):
        grid.plan(fake, "smoke", only={"nummer": ["0"]})
    with pytest.raises(ValueError, match="unknown value of number '9'; there are: 0, 1, 2"):
        grid.plan(fake, "smoke", only={"number": ["9"]})


def test_keys_depend_on_all_that_identifies_a_cell_and_on_nothing_else() -> None:
    def keys(experiment: Fake, seed: int = 0) -> set[str]:
        return {unit.key for unit in grid.plan(experiment, "smoke", seed=seed)}

    assert keys(Fake(notes="here")) == keys(Fake(notes="there"))
    assert not keys(Fake(trials=1)) & keys(Fake(trials=1), seed=1)
    assert not keys(Fake()) & keys(Fake(extra=1))
    assert keys(Fake(trials=2), seed=0) > keys(Fake(trials=1), seed=1)  # trials are seeds


def test_rerunning_does_only_what_is_missing(tmp_path: Path) -> None:
    results, notes = tmp_path / "r.jsonl", tmp_path / "notes"
    first = grid.run(Fake(notes, trials=1), "smoke", results, executor="serial", methods=["odd"])
    assert (first.cells, first.before, first.done) == (3, 0, 3)
    second = grid.run(Fake(notes, trials=2), "smoke", results, executor="serial")
    assert (second.cells, second.before, second.done, second.missing) == (12, 3, 9, 0)
    ran = notes.read_text(encoding="utf-8").split()
    assert len(ran) == len(set(ran)) == 12
    third = grid.run(Fake(notes, trials=2), "smoke", results, executor="serial")
    assert (third.before, third.done) == (12, 0)
    assert len(third.rows) == 12
    assert len(lines(results)) == 12


def test_a_row_says_what_made_it(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    (row,) = grid.run(Fake(trials=1, size=1), "smoke", results, executor="serial", methods=["plain"], seed=3).rows
    assert row == lines(results)[0]
    assert row["parameters"] == {"method": "plain", "number": 0}
    assert (row["seed"], row["metrics"], row["status"]) == (3, {"square": 0.3, "threads": 1}, "done")
    assert row["code"] == version(Fake(), "plain")
    assert {"torch", "python", "device", "cores"} <= row["machine"].keys()
    assert row["command"] is None  # nobody typed one
    assert row["seconds"] >= 0
    assert row["started"].endswith("+00:00")


def test_a_row_keeps_the_command_that_made_it_whatever_is_typed_later(tmp_path: Path) -> None:
    results, given = tmp_path / "r.jsonl", {"executor": "serial", "methods": ["plain"]}
    grid.run(Fake(trials=1, size=2, fail=1), "smoke", results, command="one", **given)  # type: ignore[arg-type]
    rows = grid.run(Fake(trials=1, size=2, fail=1), "smoke", results, command="two", **given).rows  # type: ignore[arg-type]
    assert [(row["status"], row["command"]) for row in rows] == [("done", "one"), ("failed", "two")]


def test_neither_the_name_of_the_machine_nor_a_place_on_it_is_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("socket.gethostname", "platform.node"):
        monkeypatch.setattr(name, lambda: "secret-host")
    grid.run(Fake(trials=1, fail=1), "smoke", tmp_path / "r.jsonl", executor="serial")
    text = (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    assert "secret-host" not in text
    assert str(Path(__file__).parent) not in text
    assert str(Path(grid.__file__).parent) not in text


def test_rows_are_put_into_the_order_of_the_plan(tmp_path: Path) -> None:
    fake = Fake(trials=2)
    planned = grid.run(fake, "smoke", tmp_path / "r.jsonl", executor="serial", methods=["plain", "odd", "spare"]).rows
    stranger = {**planned[0], "parameters": {"method": "gone"}}
    mixed = [stranger, *planned[::-1]]
    assert grid.in_order(fake, "smoke", mixed) == [*planned, stranger]
    assert len(grid.in_order(fake, "a scale of another version", mixed)) == len(mixed)


def test_a_failing_cell_is_recorded_and_tried_again(tmp_path: Path) -> None:
    results, notes = tmp_path / "r.jsonl", tmp_path / "notes"
    broken = Fake(notes, trials=1, fail=1)
    first = grid.run(broken, "smoke", results, executor="serial", methods=["plain"])
    assert (first.done, first.failed, first.missing) == (2, 1, 1)
    (row,) = [row for row in first.rows if row["status"] == "failed"]
    assert row["error"] == "RuntimeError: this cell fails"
    assert 'raise RuntimeError("this cell' in row["traceback"]
    files = re.findall(r'File "([^"]*)"', row["traceback"])
    assert "neurise/experiments/parts/unit.py" in files
    assert not any(file.startswith("/") for file in files)
    assert row["metrics"] == {}
    again = grid.run(broken, "smoke", results, executor="serial", methods=["plain"])
    assert (again.before, again.done, again.failed) == (2, 0, 1)
    assert len(notes.read_text(encoding="utf-8").split()) == 4


def test_rows_of_other_code_do_not_count_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "r.jsonl"
    grid.run(Fake(trials=1), "smoke", results, executor="serial")
    other = {"neurise": "9", "digest": "other"}
    monkeypatch.setattr("neurise.experiments.parts.unit.version", lambda *_: other)
    monkeypatch.setattr("neurise.experiments._code.version", lambda *_: other)
    kept = grid.run(Fake(trials=1), "smoke", results, executor="serial", any_code=True)
    assert (kept.before, kept.done, kept.other_code) == (6, 0, 0)
    assert len(kept.rows) == 6
    new = grid.run(Fake(trials=1), "smoke", results, executor="serial")
    assert (new.before, new.done, new.other_code) == (0, 6, 6)
    assert {row["code"]["digest"] for row in new.rows} == {"other"}
    assert len(store.read(results).rows) == 12  # nothing is thrown away


def test_a_group_is_computed_and_stored_as_a_whole(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    units = grid.plan(Grouped(trials=2, size=3), "smoke", grouped=True)
    assert [len(unit.cells) for unit in units] == [6, 6]  # one for each method
    done = grid.run(Grouped(trials=2, size=3), "smoke", results, executor="serial", grouped=True)
    assert done.done == 12
    assert {row["metrics"]["square"] for row in done.rows} == {
        6000.0 + n * n + s / 10 for n in range(3) for s in (0, 1)
    }
    assert {row["cells"] for row in done.rows} == {6}
    assert len({row["unit"] for row in done.rows}) == 2
    again = grid.run(Grouped(trials=2, size=3), "smoke", results, executor="serial", grouped=True)
    assert (again.before, again.done) == (12, 0)
    alone = grid.run(Grouped(trials=2, size=3), "smoke", results, executor="serial", grouped=False)
    assert (alone.before, alone.done) == (0, 12)  # in a group a cell is another computation


def test_a_group_that_was_cut_short_is_computed_again(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    grid.run(Grouped(trials=2), "smoke", results, executor="serial", grouped=True, methods=["plain"])
    whole = results.read_text(encoding="utf-8").splitlines(keepends=True)
    results.write_text("".join(whole[:-1]) + whole[-1][:50], encoding="utf-8")
    again = grid.run(Grouped(trials=2), "smoke", results, executor="serial", grouped=True, methods=["plain"])
    assert (again.before, again.done, list(again.left_out)) == (0, 6, [6])
    assert len(again.rows) == 6


def test_a_group_that_fails_is_recorded_for_every_cell(tmp_path: Path) -> None:
    broken = Grouped(trials=2, fail=1)
    failed = grid.run(broken, "smoke", tmp_path / "r.jsonl", executor="serial", grouped=True, methods=["plain"])
    assert (failed.done, failed.failed) == (0, 6)
    assert {row["error"] for row in failed.rows} == {"RuntimeError: the group fails"}


@pytest.mark.slow
def test_processes_that_die_take_no_other_cell_with_them(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    mortal = Fake(notes, trials=1, die=1, lives=2)  # the second time it lives
    survived = grid.run(mortal, "smoke", tmp_path / "r.jsonl", workers=2, methods=["plain"])
    assert (survived.done, survived.failed) == (3, 0)
    dead = Fake(notes, trials=1, die=1, lives=99)
    lost = grid.run(dead, "smoke", tmp_path / "r.jsonl", workers=1, methods=["plain"])
    assert (lost.done, lost.failed) == (2, 1)
    assert [row["status"] for row in lost.rows] == ["done", "failed", "done"]
    assert "process" in next(row["error"] for row in lost.rows if row["error"])


def test_a_run_ends_in_time_and_the_same_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, clock = tmp_path / "r.jsonl", [0.0]
    monkeypatch.setattr("neurise.experiments.grid.time.monotonic", lambda: clock[0])
    ran = Fake.run

    def slow(self: Fake, *given: Any) -> Any:
        clock[0] += 10.0  # each cell takes ten seconds
        return ran(self, *given)

    monkeypatch.setattr(Fake, "run", slow)
    first = grid.run(Fake(trials=1), "smoke", results, executor="serial", seconds=35)
    assert (first.done, first.missing) == (3, 3)  # a fourth would end at 40
    second = grid.run(Fake(trials=1), "smoke", results, executor="serial", seconds=35)
    assert (second.before, second.done, second.missing) == (3, 3, 0)


def test_a_plan_says_what_is_left_and_how_long_it_takes(tmp_path: Path) -> None:
    results, fake = tmp_path / "r.jsonl", Fake(trials=2)
    grid.run(fake, "smoke", results, executor="serial", methods=["plain"], trials=1)
    units = grid.plan(fake, "smoke")
    rows = [{**row, "seconds": 4.0} for row in store.read(results).rows]
    plain, odd = parts(units, grid.missing(fake, units, results), rows)
    assert (plain.method, plain.cells, plain.units, plain.left, plain.seconds) == ("plain", 6, 6, 3, 12.0)
    assert (odd.method, odd.left, odd.seconds) == ("odd", 6, None)


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "r.jsonl"
    kept = store.append

    def interrupt(path: Path, rows: list[store.Row]) -> None:
        kept(path, rows)
        if len(lines(results)) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "append", interrupt)
    stopped = grid.run(Fake(trials=1), "smoke", results, executor="serial")
    assert stopped.interrupted
    assert len(stopped.rows) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "smokey"}, "unknown scale 'smokey'; did you mean smoke"),
        ({"methods": ["plane"]}, "unknown method of fake 'plane'; did you mean plain"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"executor": "proces"}, "unknown executor 'proces'; did you mean process"),
        ({"device": "tpu"}, "tpu"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grid.run(Fake(), str(options.pop("scale", "smoke")), tmp_path / "r.jsonl", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "r.jsonl").exists()
