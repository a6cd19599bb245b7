"""Lines that survive, and lines that do not."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurise.experiments import store


def row(key: str = "k", status: str = "done", **fields: Any) -> store.Row:
    plain = {"experiment": "e", "scale": "smoke", "unit": key, "parameters": {"rows": 5, "method": "m"}, "seed": 1}
    made = {
        "metrics": {"tv": 0.5},
        "times": {"train_seconds": 2.0},
        "arrays": {},
        "code": {"neurise": "0", "digest": "d"},
    }
    return {"format": store.FORMAT, "status": status, "key": key, **plain, **made, **fields}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep/r.jsonl"
    store.append(path, [row("a"), row("b")])
    store.append(path, [row("c", metrics={"tv": float("nan"), "kl": float("inf")})])
    contents = store.read(path)
    assert [found["key"] for found in contents.rows] == ["a", "b", "c"]
    assert contents.rows[2]["metrics"] == {"tv": None, "kl": None}
    assert contents.damaged == []


def test_values_are_found_wherever_they_stand() -> None:
    one = row()
    names = ("tv", "train_seconds", "rows", "method", "seed", "missing")
    assert [store.value(one, name) for name in names] == [0.5, 2.0, 5, "m", 1, None]


def test_the_last_row_of_a_cell_counts_and_success_above_failure(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    store.append(
        path, [row("a", "failed"), row("a", metrics={"tv": 1.0}), row("a", metrics={"tv": 2.0}), row("a", "failed")]
    )
    store.append(path, [row("a", "failed", code={"neurise": "0", "digest": "other"})])
    found = store.read(path).rows
    assert [(one["status"], one["metrics"]["tv"]) for one in found] == [("done", 2.0), ("failed", 0.5)]


@pytest.mark.parametrize("rubbish", [b'{"format": 1, "status": "do', b"\xff\xfe", b"[]", b'{"format": 1}', b"12"])
def test_a_damaged_last_line_is_kept_skipped_and_reported(tmp_path: Path, rubbish: bytes) -> None:
    path = tmp_path / "r.jsonl"
    store.append(path, [row("a")])
    with path.open("ab") as file:
        file.write(rubbish)
    assert store.read(path).damaged == [2]
    store.append(path, [row("b")])
    contents = store.read(path)
    assert [found["key"] for found in contents.rows] == ["a", "b"]
    assert contents.damaged == [2]
    assert path.read_bytes().splitlines()[1] == rubbish


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    store.append(path, [row("a"), row("b", format=store.FORMAT + 1)])
    with pytest.raises(
        ValueError, match=rf"r\.jsonl, line 2 has format {store.FORMAT + 1}.*reads format {store.FORMAT}"
    ):
        store.read(path)


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("roses are red\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no results file of neurise"):
        store.read(path)
    with pytest.raises(FileNotFoundError, match="there is no results file"):
        store.read(tmp_path / "absent.jsonl")


WRITER = """
import json, sys
from neurise.experiments import store
path, name, row = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for number in range(30):
    one = {**row, "key": f"{name}{number}", "text": "x" * 20_000}
    store.append(path, [one, {**row, "key": f"{name}{number}'"}])
"""


@pytest.mark.parametrize("length", [1, 5, 40])
def test_a_first_line_that_was_cut_short_is_no_foreign_file(tmp_path: Path, length: int) -> None:
    path = tmp_path / "r.jsonl"
    store.append(path, [row("a")])
    path.write_bytes(path.read_bytes()[:length])
    assert (store.read(path).rows, list(store.read(path).left_out)) == ([], [1])
    store.append(path, [row("a")])
    assert [found["key"] for found in store.read(path).rows] == ["a"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    store.append(path, [row("a")])
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.append(path, [row("b")])
    assert path.read_bytes() == before
    store.append(path, [row("b")])
    assert store.read(path).damaged == []


def test_lines_of_two_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    words = [[sys.executable, "-c", WRITER, str(path), name, json.dumps(row())] for name in "ab"]
    for writer in [subprocess.Popen(command) for command in words]:
        assert writer.wait() == 0
    contents = store.read(path)
    assert len(contents.rows) == 120
    assert contents.damaged == []
    keys = [json.loads(line)["key"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(second == first + "'" for first, second in zip(keys[::2], keys[1::2], strict=True))


def test_small_pictures_are_kept_as_text() -> None:
    pictures = np.random.default_rng(0).integers(0, 2, (2, 3, 5, 7))
    packed = json.loads(json.dumps(store.pack(pictures)))
    np.testing.assert_array_equal(store.unpack(packed), pictures)
    with pytest.raises(ValueError, match="zeros and ones"):
        store.pack(pictures + 1)
