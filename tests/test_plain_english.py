"""The list of phrases finds those that readers stumbled over, and leaves what only looks like them."""

import subprocess
import sys
from pathlib import Path

import pytest
from plain_english import findings, main

STUMBLES = [
    "By default it has an output layer a site.",
    "How a file is made: one format a file",
    "It costs two additions an entry.",
    "one number\n    # a row",
    "in nats a row and bits a site",
    "A few float64 numbers a site and token.",
    "The schema translates at the door.",
    "Whether it converges hangs on rounding.",
    "Who knows which sites depend on each other says so.",
    "one kernel there and one back",
]
FINE = [
    "One output layer per site.",
    "How many states a site has.",
    "The time a row takes grows.",
    "One row at a time.",
    "Each has one file.\n\nA model is a folder.",
    "a part of a model",
    "a row or a line",
    "Hold on a minute.",
]


@pytest.mark.parametrize("text", STUMBLES)
def test_it_is_found(text: str) -> None:
    assert list(findings(text))


@pytest.mark.parametrize("text", FINE)
def test_it_is_left(text: str) -> None:
    assert not list(findings(text))


def test_a_finding_names_its_file_line_and_what_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nThere is one label a row.\n")
    assert main([str(page)]) == 1
    assert f'{page}:3: "one label a row": a rate: write "per"' in capsys.readouterr().out
    script = Path(__file__).with_name("plain_english.py")
    assert subprocess.run([sys.executable, script, page], capture_output=True, check=False).returncode == 1
