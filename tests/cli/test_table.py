"""Tables at every width: whatever has to give way, no number is cut."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as some
from rich.cells import cell_len
from typer.testing import CliRunner

from neurise.bench import speed
from neurise.bench.speed import Bench, Timed
from neurise.cli import app
from neurise.cli._table import NOTHING, Table

WIDTHS = range(40, 201)
NUMBER = re.compile(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?%?")

cells = some.one_of(
    some.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.4g} ± {abs(value) / 100:.1g} nats"),
    some.integers(-(10**9), 10**9).map(lambda value: f"{value:,}"),
    some.sampled_from([NOTHING, "", "a name of several words, 12 of them", "correlation_frobenius", "四个字 123.456"]),
)


def numbers_of(text: str) -> list[str]:
    return sorted(NUMBER.findall(text))


def check(table: Table, width: int) -> None:
    """Every number of a cell occurs whole and as often as it should, and lines end where the terminal does."""
    text = table.text(width)
    shown = [k for k in range(len(table.columns)) if k == 0 or any(row[k] != NOTHING for row in table.rows)]
    lines = [table.columns, *table.rows]
    body = text.removeprefix(table.title)
    for k in shown[1:]:
        wanted = numbers_of("\n".join(line[k] for line in lines))
        found = numbers_of(body)
        assert all(found.count(number) >= wanted.count(number) for number in wanted), (width, body)
    for word in " ".join(line[k] for line in lines for k in shown).split():
        assert word in body
    longest = max((cell_len(word) for word in body.split() if "─" not in word), default=0)
    for line in body.splitlines():
        assert cell_len(line) <= width or longest > width // 2 - 2, (width, line)


@settings(max_examples=150, deadline=None)
@given(some.data(), some.integers(1, 7), some.integers(0, 5), some.sampled_from(WIDTHS))
def test_no_number_is_cut(data: some.DataObject, columns: int, rows: int, width: int) -> None:
    line = some.lists(cells, min_size=columns, max_size=columns)
    head = data.draw(some.lists(some.sampled_from(["", "value", "independent", "of roofline"]), min_size=columns))
    numbers = data.draw(some.sets(some.integers(0, columns - 1)))
    check(Table("a title", head[:columns], data.draw(some.lists(line, min_size=rows, max_size=rows)), numbers), width)


def test_what_fits_stands_side_by_side_and_the_rest_below() -> None:
    table = Table("", ["", "value", "floor"], [["one", "1,234.5 ± 0.1", "0.25"], ["two", "2", "0.5"]], (1, 2))
    assert table.fits(29)
    assert not table.fits(24)
    assert table.text(40).splitlines()[3] == " one   1,234.5 ± 0.1    0.25"
    assert [line.split() for line in table.text(24).splitlines() if "one" in line] == [
        ["one", "1,234.5", "±", "0.1"],
        ["one", "0.25"],
    ]


def test_words_are_wrapped_before_columns_move_below() -> None:
    table = Table("", ["", "value"], [["a name of many words that is far too long for this", "12,345,678.9"]], (1,))
    assert table.text(40).count("12,345,678.9") == 1
    assert [cell_len(line) <= 40 for line in table.text(40).splitlines()] == [True] * 6


def test_a_column_without_values_is_left_out() -> None:
    assert "memory" not in Table("", ["", "speed", "memory"], [["one", "3", NOTHING]], (1, 2)).text(80)


def test_a_long_word_sticks_out_whole() -> None:
    path = "/a/" + "very_long_folder/" * 5 + "model-0.12345678901234567890"
    assert path in Table("", ["", ""], [["saved in", path]]).text(40)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Table]]:
    """The tables of every command, recorded as they are printed."""
    place = tmp_path_factory.mktemp("tables")
    recorded: list[Table] = []
    np.save(place / "rows.npy", tiny.spins(120, 4))
    small = ["--width", 8, "--depth", 1, "--batch-size", 64, "--max-steps", 20]
    known = ["edwards_anderson:side=2", "-n", 100]
    commands: dict[str, list[object]] = {
        "data list": ["data", "list"],
        "data make": ["data", "make", *known, "-o", place / "known.npz"],
        "data info": ["data", "info", place / "known.npz"],
        "train": ["train", place / "known.npz", "-o", place / "model", *small],
        "sample": ["sample", place / "model", "-n", 10, "-o", place / "drawn.csv"],
        "evaluate": ["evaluate", place / "model", "--data", place / "known.npz", "--samples", 100],
        "structure": ["structure", place / "model", "--data", place / "known.npz"],
        "theory": ["theory", "edwards_anderson:side=2", "--samples", 20, "--repeats", 1, "--cycles", 1],
        "bench": ["bench", "--device", "cpu"],
        "experiment list": ["experiment", "list"],
        "experiment run": [
            *("experiment", "run", "ising_curves", "--scale", "smoke", "--executor", "serial"),
            *("--methods", "memorize", "--results", place / "r.jsonl"),
        ],
        "experiment show": ["experiment", "show", place / "r.jsonl"],
        "report": ["report", place / "r.jsonl", "-o", place / "r.html"],
        "tune": ["tune", place / "rows.npy", "-o", place / "best.json", "--trials", 1, "--trial-steps", 2],
    }
    names = ["four networks of width 128, two with pairwise terms: incremental, float32", "exponent over 64 … 1024"]

    def measured(self: Bench, section: str) -> Iterator[Timed]:
        for name in names:
            yield Timed(section, name, 123_456.7, "examples/s of the time per row", 7.251, 0.125, 3 * 2**30)

    settings = {"width": 4, "depth": 1, "steps": 2, "members": 1, "architecture__pairwise": False}
    found: dict[str, list[Table]] = {}
    whole = Table.text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "peak_flops", lambda device: 2e12)
        patch.setattr(Bench, "run", measured)
        patch.setattr(importlib.import_module("neurise.theory.learning"), "SETTINGS", settings)
        patch.setattr(Table, "text", lambda table, width: recorded.append(table) or whole(table, width))
        for name, words in commands.items():
            recorded.clear()
            result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "80"})
            assert result.exit_code == 0, (name, result.output)
            found[name] = list(recorded)
    return found


@pytest.mark.slow
def test_no_command_cuts_a_number_at_any_width(printed: dict[str, list[Table]]) -> None:
    for name, tables in printed.items():
        assert tables, name
        for table in tables:
            for width in WIDTHS:
                check(table, width)


def test_a_terminal_of_eighty_columns_shows_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "4 × width 128, two with pairwise terms: incremental, float32"
    monkeypatch.setattr(speed, "peak_flops", lambda device: 2e12)
    monkeypatch.setattr(Bench, "run", lambda self, section: iter([Timed(section, long, 3552.1, "rows/s", 7.25, 0.125)]))
    words = ["bench", "--device", "cpu", "--section", "forms"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).stdout
    for figure in ("3,552", "7.25", "12.5%"):
        assert figure in numbers_of(shown)


def test_paths_with_numbers_are_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", tiny.spins(20, 3))
    place = tmp_path / "out-0.123456789" / "rows-987654321.npz"
    place.parent.mkdir()
    shown = CliRunner().invoke(
        app, ["data", "make", str(tmp_path / "rows.npy"), "-o", str(place)], env={"COLUMNS": "40"}
    )
    assert str(place) in shown.stdout
