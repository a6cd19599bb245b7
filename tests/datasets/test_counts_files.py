"""Counts as JSON, tables of Arrow, and the conventions of alignments, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

import neurise
from neurise.cli import app
from neurise.datasets import files
from neurise.datasets.files import check_ending

COUNTS = {"0101": 37, "1100": 30, "0001": 20}
ROWS = [[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1]]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def written(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (COUNTS, {}),
        ({"01 01": 37, "11 00": 30, "00 01": 20}, {}),
        ({"0x5": 37, "0xc": 30, "0x1": 20}, {"bits": 4}),
        ({"1010": 37, "0011": 30, "1000": 20}, {"endian": "little"}),
        ({"shots": 87, "counts": COUNTS}, {}),
        (
            {
                "results": [
                    {"data": {"counts": {"0x5": 37, "0xc": 30, "0x1": 20}}, "header": {"memory_slots": 4}},
                ]
            },
            {},
        ),
    ],
)
def test_counts_are_read_however_they_are_written(tmp_path: Path, data: Any, options: dict[str, Any]) -> None:
    found = files(written(tmp_path / "counts.json", data), **options)
    assert found.train is not None
    assert found.weights is not None
    assert (found.train.tolist(), found.weights.tolist()) == (ROWS, [37, 30, 20])


def test_a_list_of_bit_strings_is_rows(tmp_path: Path) -> None:
    found = files(written(tmp_path / "x.json", ["0101", "1100"]))
    assert found.train is not None
    assert (found.train.tolist(), found.weights) == (ROWS[:2], None)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"01": 1, "011": 2}, r"x.json: has '011' of 3 bits"),
        ({"a": {"b": 3}}, r"x.json is JSON of another kind \(an object with 'a'\)"),
        ({"results": [{}, {}]}, "holds 2 experiments"),
        ({"results": [{}]}, "of another kind"),
        ([1, 2], "of another kind"),
        (3, "of another kind"),
    ],
)
def test_what_is_wrong_in_json_is_named(tmp_path: Path, data: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        files(written(tmp_path / "x.json", data))


def test_counts_on_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path / "counts.json", COUNTS)
    facts = json.loads(run("data", "info", path, "--json").stdout)
    assert (facts["rows"], facts["sites"], facts["weights"]["sum"]) == (3, 4, 87)
    assert run("train", path, "-o", tmp_path / "model", "--model", "independent").exit_code == 0
    expected = neurise.Independent().fit(COUNTS)
    np.testing.assert_array_equal(neurise.load(tmp_path / "model").log_prob(ROWS), expected.log_prob(ROWS))
    again = run("evaluate", tmp_path / "model", "--data", path, "--samples", 50, "--no-baselines", "--json")
    assert again.exit_code == 0
    little = run("data", "info", f"{path}:endian=little", "--json")
    assert json.loads(little.stdout)["rows"] == 3
    wrong = run("train", written(tmp_path / "bad.json", {"01": -1}), "-o", tmp_path / "other")
    assert wrong.exit_code == 1
    assert "-1 for the key '01'" in wrong.stderr


def table(rows: np.ndarray, **more: Any) -> pa.Table:
    return pa.table({f"s{k}": column for k, column in enumerate(rows.T)} | more)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
def test_tables_of_arrow_are_files_like_others(tmp_path: Path, ending: str) -> None:
    rows, path = np.array(ROWS), tmp_path / f"x{ending}"
    whole = table(rows, label=["a", "b", "a"], count=[37, 30, 20])
    if ending == ".parquet":
        parquet.write_table(whole, path)
    else:
        with pa.ipc.new_file(path, whole.schema) as sink:  # Feather is the same
            sink.write_table(whole)
    found = files(path)
    assert found.train is not None
    assert found.labels is not None
    assert found.weights is not None
    assert (found.train.tolist(), found.labels.tolist()) == (ROWS, ["a", "b", "a"])
    assert found.weights.tolist() == [37, 30, 20]
    assert files(path, label_column="s0", count_column=5).labels.tolist() == [0, 1, 0]  # type: ignore[union-attr]
    assert files(path, drop_column="s0,s2").train.names == ("s1", "s3")  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="no column 'kind'"):
        files(path, label_column="kind")
    with pytest.raises(ValueError, match=f"rows are not written to {ending} files"):
        check_ending(path)


def test_folders_and_patterns_on_the_command_line(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (400, 4))
    (tmp_path / "rows").mkdir()
    for k in range(2):
        parquet.write_table(table(rows[200 * k :][:200]), tmp_path / "rows" / f"{k}.parquet", row_group_size=50)
    expected = neurise.Independent().fit(rows)
    for source in (tmp_path / "rows", tmp_path / "rows" / "*.parquet"):
        done = run("train", source, "-o", tmp_path / "model", "--model", "independent", "--force", "--json")
        assert (done.exit_code, json.loads(done.stdout)["rows"]) == (0, 400), done.stderr
        np.testing.assert_allclose(neurise.load(tmp_path / "model").log_prob(rows), expected.log_prob(rows))
    assert json.loads(run("data", "info", tmp_path / "rows", "--json").stdout)["rows"] == 400
    refused = run("train", tmp_path / "rows", "-o", tmp_path / "m", "--test-fraction", 0.2)
    assert "keep some of its files apart" in refused.stderr.replace("\n", " ")
    (tmp_path / "none").mkdir()
    assert "no file that ends in" in run("train", tmp_path / "none", "-o", tmp_path / "m").stderr.replace("\n", " ")


ALIGNMENT = ">one\nACdeF.-\n>two\nAC..FgB\n"


def letters(rows: Any) -> list[str]:
    return ["".join(row) for row in rows.tolist()]


@pytest.mark.parametrize("ending", [".a2m", ".fasta"])
def test_inserts_are_dropped_or_kept(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    path.write_text(ALIGNMENT)
    assert letters(files(path).train) == ["ACF-", "ACF-"]
    assert letters(files(path, inserts="keep").train) == ["ACDEF--", "AC--FG-"]
    with pytest.raises(ValueError, match="inserts must be one of 'auto', 'drop', 'keep'"):
        files(path, inserts="maybe")


def test_kept_inserts_of_unequal_length_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.a3m"
    path.write_text(">one\nACdeF\n>two\nACF\n")
    assert letters(files(path).train) == ["ACF", "ACF"]
    with pytest.raises(ValueError, match="'two' has 3 sites, and those before have 5"):
        files(path, inserts="keep")


def test_stockholm(tmp_path: Path) -> None:
    path = tmp_path / "x.sto"
    path.write_text("# STOCKHOLM 1.0\n#=GF ID x\n\none/1-5 AC.D\ntwo     ACgD\n\none/1-5 EF\ntwo     -F\n//\n")
    found = files(path)
    assert (letters(found.train), found.info["sequences"]) == (["ACDEF", "ACD-F"], ["one/1-5", "two"])
    assert letters(files(path, inserts="keep").train) == ["AC-DEF", "ACGD-F"]
    path.write_text(">one\nAC\n")
    with pytest.raises(ValueError, match="begins with '# STOCKHOLM"):
        files(path)
    path.write_text("# STOCKHOLM 1.0\none\n")
    with pytest.raises(ValueError, match="line 2: 'one'; a name and a part"):
        files(path)


def test_counts_of_four_outcomes(tmp_path: Path) -> None:
    place = written(tmp_path / "counts.json", {"031": 30, "120": 10})
    data = files(place, states=4)
    assert data.train is not None
    assert data.train.tolist() == [[0, 3, 1], [1, 2, 0]]
    assert data.space.states == 4
    assert run("data", "info", f"{place}:states=4").exit_code == 0
    assert "states=4" in run("data", "info", place).output
