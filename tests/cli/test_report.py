"""``neurise report``: a page from results files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_rows
from typer.testing import CliRunner, Result

from neurise.cli import app


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return report_rows.write(tmp_path / "results.jsonl", report_rows.rows("potts", trials=1))


def test_writes_the_page_and_says_what_is_on_it(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "report.html"
    done = run("report", results, "-o", page, "--title", "Mine & yours")
    assert done.exit_code == 0
    assert "potts" in done.stdout
    assert "<h1>Mine &amp; yours</h1>" in page.read_text()


def test_without_a_name_the_page_stands_beside_the_results(results: Path) -> None:
    assert run("report", results).exit_code == 0
    assert "<html" in results.with_suffix(".html").read_text()


def test_json_counts_cells_and_files_are_joined(results: Path, tmp_path: Path) -> None:
    more = report_rows.write(tmp_path / "more.jsonl", report_rows.rows("ghz", trials=1))
    facts = json.loads(run("report", results, more, "-o", tmp_path / "r.html", "--json").stdout)
    assert [section["experiment"] for section in facts["sections"]] == ["potts", "ghz"]
    assert all(section["done"] == section["planned"] for section in facts["sections"])


def test_a_damaged_last_line_is_told_and_the_rest_is_shown(results: Path, tmp_path: Path) -> None:
    with results.open("a") as file:
        file.write('{"format": 1, "sta')
    done = run("report", results, "-o", tmp_path / "r.html")
    assert done.exit_code == 0
    assert " was left out: it is no JSON" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "there are no results"),
        ("a,b\n", "no results file"),
        ('{"format": 9}\n', "reads format 1"),
        (None, "there is no"),
    ],
    ids=["empty", "other", "version", "missing"],
)
def test_refuses_in_one_line_and_writes_nothing(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "r.jsonl").write_text(content)
    done = run("report", tmp_path / "r.jsonl", "-o", tmp_path / "r.html")
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


def test_nothing_is_overwritten_unasked(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("mine")
    assert run("report", results, "-o", page).exit_code == 1
    assert page.read_text() == "mine"
    assert run("report", results, "-o", page, "--force").exit_code == 0
    before = results.read_bytes()
    assert "would replace it" in run("report", results, "-o", results, "--force").stderr
    assert results.read_bytes() == before
