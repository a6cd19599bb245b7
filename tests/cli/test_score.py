"""``neurise score``: the library's numbers for every row, in their order, and the most surprising rows on the screen."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner, Result

import neurise
from neurise import scoring
from neurise.cli import _scores, app

ROWS = np.array(list("abc"))[np.random.default_rng(0).choice(3, (60, 4), p=[0.7, 0.2, 0.1])]
LABELS = np.where(ROWS[:, 0] == "a", "x", "y")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("score")
    tiny.model("independent").fit(ROWS).save(place / "plain")
    tiny.model("independent").fit(ROWS, LABELS).save(place / "labelled")
    tiny.model(keep_prob=0.5, cycles=2).fit(ROWS, verbose=False).save(place / "soft")
    tiny.model("memorize").fit(ROWS).save(place / "copy")
    lines = [
        f"{','.join(row)},{label},{1 + number % 3}"
        for number, (row, label) in enumerate(zip(ROWS, LABELS, strict=True))
    ]
    (place / "rows.csv").write_text("p,q,r,s,label,count\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (place / "few.fasta").write_text(">first\nACDA\n>second\nA-DA\n", encoding="utf-8")
    return place


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("model", ["plain", "labelled"])
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_every_row_is_written_in_its_order(
    folder: Path, tmp_path: Path, model: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "BLOCK", 40)  # ten rows at a time
    monkeypatch.setattr(_scores, "BLOCK", 100)
    path = tmp_path / f"scores{ending}"
    result = run("score", folder / model, folder / "rows.csv", "-o", path)
    assert result.exit_code == 0, result.output
    expected = neurise.surprise(neurise.load(folder / model), ROWS, LABELS if model == "labelled" else None)
    found = table(path)
    assert list(found[0]) == ["row", "label", "count", "log_prob", "rank", *(f"surprise_s{site}" for site in range(4))]
    assert [int(line["row"]) for line in found] == list(range(60))
    assert [line["label"] for line in found] == LABELS.tolist()
    assert [int(line["count"]) for line in found] == [1 + number % 3 for number in range(60)]
    assert [float(line["log_prob"]) for line in found] == expected.log_prob.tolist()  # no digit is lost
    assert [int(line["rank"]) for line in found] == expected.rank.tolist()
    sites = [[float(line[f"surprise_s{site}"]) for site in range(4)] for line in found]
    np.testing.assert_allclose(sites, expected.sites, rtol=1e-6)
    assert list(tmp_path.iterdir()) == [path]  # what was spooled is gone


def test_the_screen_shows_the_most_surprising_rows_and_why(folder: Path) -> None:
    expected = neurise.surprise(neurise.load(folder / "plain"), ROWS)
    worst = int(expected.log_prob.argmin())
    site = int(expected.sites[worst].argmax())
    result = run("score", folder / "plain", folder / "rows.csv", "--top", 2)
    line = next(line for line in result.stdout.splitlines() if f"{expected.log_prob[worst]:.6g}" in line)
    assert f" {worst} " in line
    assert f"s{site} = {ROWS[worst, site]} ({expected.sites[worst, site]:.3g})" in line
    found = json.loads(run("score", folder / "plain", folder / "rows.csv", "--top", 2, "--json").stdout)
    assert found["top"][0]["row"] == worst
    assert found["top"][0]["because"][0] == {
        "site": f"s{site}",
        "symbol": str(ROWS[worst, site]),
        "surprise": pytest.approx(expected.sites[worst, site], rel=1e-6),
    }
    weights = 1 + np.arange(60) % 3
    assert found["mean_log_prob"] == pytest.approx(np.average(expected.log_prob, weights=weights))


def test_a_bound_is_named_and_comes_with_its_error(folder: Path, tmp_path: Path) -> None:
    result = run("score", folder / "soft", folder / "rows.csv", "-o", tmp_path / "scores.npz", "--json")
    assert json.loads(result.stdout)["of"] == "elbo"
    with np.load(tmp_path / "scores.npz") as found:
        assert {"elbo", "error", "rank", "surprise", "sites"} <= set(found)
        np.testing.assert_allclose(found["surprise"].sum(1), -found["elbo"], rtol=1e-5)


def test_models_without_terms_and_without_sites(folder: Path, tmp_path: Path) -> None:
    for model, words in (("copy", []), ("plain", ["--no-sites"])):
        result = run("score", folder / model, folder / "rows.csv", "-o", tmp_path / "scores.csv", "--force", *words)
        assert result.exit_code == 0, result.output
        assert list(table(tmp_path / "scores.csv")[0]) == ["row", "label", "count", "log_prob", "rank"]


def test_sequences_are_named_and_not_weighed(tmp_path: Path, folder: Path) -> None:
    letters = np.array(list("ACD-"))[np.random.default_rng(1).integers(0, 4, (30, 4))]
    neurise.Independent().fit(letters).save(tmp_path / "model")
    result = run("score", tmp_path / "model", folder / "few.fasta", "-o", tmp_path / "s.csv.gz", "--json")
    assert result.exit_code == 0, result.output
    assert {row["name"] for row in json.loads(result.stdout)["top"]} == {"first", "second"}
    assert "weight" not in json.loads(result.stdout)["top"][0]
    assert (tmp_path / "s.csv.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_parts_of_a_data_set(tmp_path: Path) -> None:
    X = tiny.spins(30, 3)
    np.savez(tmp_path / "parts.npz", X=X, test=X[:7])
    neurise.Independent().fit(X).save(tmp_path / "model")
    found = json.loads(run("score", tmp_path / "model", tmp_path / "parts.npz", "--part", "test", "--json").stdout)
    assert found["rows"] == 7
    for part, message in (("validation", "has no validation rows; it has: train, test"), ("tset", "must be train")):
        result = run("score", tmp_path / "model", tmp_path / "parts.npz", "--part", part)
        assert result.exit_code == 1
        assert message in result.stderr


def test_wrong_words_are_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old", encoding="utf-8")
    (tmp_path / "other.csv").write_text("a,b\nb,a\n", encoding="utf-8")
    wrong = [
        ([folder / "plain", folder / "rows.csv", "-o", tmp_path / "scores.fasta"], "scores are written to .csv, .tsv"),
        ([folder / "plain", folder / "rows.csv", "-o", tmp_path / "old.csv"], "exists; --force overwrites it"),
        ([folder / "plain", folder / "nothing.csv"], "there is no file"),
        ([folder / "nothing", folder / "rows.csv"], "nothing"),
        ([folder / "plain", tmp_path / "other.csv"], "X has 2 "),
    ]
    for words, message in wrong:
        result = run("score", *words)
        assert result.exit_code == 1
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    assert (tmp_path / "old.csv").read_text(encoding="utf-8") == "old"


def survey(path: Path, n: int = 80, *, order: tuple[int, ...] = (0, 1, 2)) -> None:
    """Write a table of columns with alphabets of their own; the third follows from the first."""
    rng = np.random.default_rng(4)
    colour, size = rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]), rng.choice([1, 10], n)
    columns = [("colour", colour), ("size", size), ("warm", np.where(colour == "red", "yes", "no"))]
    lines = [",".join(["id", *(columns[place][0] for place in order)])]
    lines += [",".join([f"p{row}", *(str(columns[place][1][row]) for place in order)]) for row in range(n)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_columns_of_a_table_are_called_by_their_names(tmp_path: Path) -> None:
    survey(tmp_path / "table.csv")
    survey(tmp_path / "turned.csv", order=(2, 0, 1))
    words = ["--drop-column", "id", "-o", tmp_path / "model", "--model", "independent"]
    assert run("train", tmp_path / "table.csv", *words).exit_code == 0
    for name in ("table", "turned"):
        result = run(
            "score", tmp_path / "model", tmp_path / f"{name}.csv", "--drop-column", "id", "-o", tmp_path / f"{name}.tsv"
        )
        assert result.exit_code == 0, result.output
        assert "colour = blue" in result.stdout
    assert (tmp_path / "table.tsv").read_bytes() == (tmp_path / "turned.tsv").read_bytes()
    assert list(table(tmp_path / "table.tsv")[0])[-3:] == ["surprise_colour", "surprise_size", "surprise_warm"]
    result = run("score", tmp_path / "model", tmp_path / "table.csv")
    assert result.exit_code == 1
    assert "has 'id', which the model does not know" in result.stderr


def test_gaps_of_a_table_are_no_surprise(tmp_path: Path) -> None:
    survey(tmp_path / "table.csv")
    words = ["--drop-column", "id", "-o", tmp_path / "model", "--model", "independent"]
    assert run("train", tmp_path / "table.csv", *words).exit_code == 0
    (tmp_path / "gaps.csv").write_text("colour,size,warm\nblue,,no\nred,1,yes\n", encoding="utf-8")
    result = run("score", tmp_path / "model", tmp_path / "gaps.csv", "-o", tmp_path / "scores.csv")
    assert result.exit_code == 0, result.output
    first, second = table(tmp_path / "scores.csv")
    assert first["surprise_size"] == ""
    assert float(first["log_prob"]) == pytest.approx(-float(first["surprise_colour"]) - float(first["surprise_warm"]))
    assert float(second["surprise_size"]) > 0
    assert "size = None" not in result.stdout
