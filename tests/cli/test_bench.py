"""``neurise bench``: a table, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from neurise.bench import speed
from neurise.bench.speed import Bench, Timed
from neurise.cli import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["bench", "--device", "cpu", *words], env={"COLUMNS": "160"})


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(self: Bench, section: str) -> Iterator[Timed]:
        yield Timed(section, f"some {section}", 12_345.6, "rows/s", 7.25, 0.125, 3 * 2**20)
        yield Timed(section, "exponent", 1.01, "of the time per row")

    monkeypatch.setattr(speed, "peak_flops", lambda device: 2e12)
    monkeypatch.setattr(Bench, "run", measured)


def test_a_table_a_section() -> None:
    result = run("--section", "sites", "--section", "training", "--quick")
    assert result.exit_code == 0
    for part in ("some sites", "some training", "12,346", "7.25", "12.5%", "3 MiB", "1.01", "roofline 2 TFLOP/s"):
        assert part in result.stdout
    assert "some width" not in result.stdout


def test_json_holds_every_section() -> None:
    facts = json.loads(run("--json", "--precision", "bfloat16").stdout)
    assert (facts["roofline_flops"], facts["precision"], facts["quick"]) == (2e12, "bfloat16", False)
    assert list(dict.fromkeys(figure["section"] for figure in facts["figures"])) == list(speed.SECTIONS)
    assert facts["figures"][0]["ratio"] == 7.25
    assert "ratio" not in facts["figures"][1]


def test_an_unknown_section_is_refused_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "peak_flops", None)
    result = run("--section", "speed")
    assert result.exit_code == 1
    assert "section must be one of 'sampling', 'forms'" in result.stderr
    assert "got 'speed'" in result.stderr
