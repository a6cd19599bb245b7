"""What the pages tell to type works as it stands there.

Python blocks run in order, page by page, each page in a namespace and a folder of its own; training is cut to a few steps, so
that what is asked is whether a snippet runs, not how good it is. A block behind ``<!-- not run: REASON -->`` is left out. Of
``neurise`` commands it is checked that each takes the options it is given.
"""

from __future__ import annotations

import re
import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from neurise.cli import app
from neurise.energies import choosing, regressions
from neurise.modeling import race
from neurise.modeling.trained import TrainedModel

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<kind>[^\n]*)\n(?P<code>.*?)```", re.DOTALL)
LEFT_OUT = 3
"""Python blocks that may be left out, at most."""
STEPS = 2


def blocks(page: Path, kind: str) -> list[re.Match[str]]:
    return [found for found in BLOCK.finditer(page.read_text(encoding="utf-8")) if found["kind"] == kind]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = TrainedModel.settings

    def few(model: TrainedModel, max_steps: Any, max_seconds: Any, sizes: Any = None) -> Any:
        return replace(settings(model, max_steps, max_seconds, sizes), max_steps=STEPS)

    monkeypatch.setattr(TrainedModel, "settings", few)
    monkeypatch.setattr(regressions, "ITERATIONS", 2)
    monkeypatch.setattr(race, "LEAST", 10**9)  # so short a run is not compared with anything
    monkeypatch.setattr(choosing, "QUICK", 2**10)  # energies of all pairs at once
    monkeypatch.setattr(choosing, "FEW_ROWS", 0)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python(page: Path) -> None:
    text, names = page.read_text(encoding="utf-8"), dict[str, Any]()
    for found in blocks(page, "python"):
        if found["reason"]:
            continue
        line = text.count("\n", 0, found.start("code"))
        code = compile("\n" * line + found["code"], str(page), "exec")  # so that errors name the line of the page
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two steps teach nothing, and models say so
            exec(code, names)


def test_hardly_anything_is_left_out() -> None:
    reasons = [found["reason"] for page in PAGES for found in blocks(page, "python") if found["reason"]]
    assert len(reasons) <= LEFT_OUT, reasons


def commands(page: Path) -> list[str]:
    lines = [line for found in blocks(page, "") for line in found["code"].splitlines()]
    inline = re.findall(r"`(neurise [^`\n]+)`", page.read_text(encoding="utf-8"))
    return [line for line in [*lines, *inline] if re.match(r"(torchrun .* -m )?neurise( |$)", line)]


def split(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return words[words.index("neurise") + 1 :]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_have_the_options_that_they_are_given(page: Path) -> None:
    for line in commands(page):
        command: Any = typer.main.get_command(app)
        words = split(line)
        while words and hasattr(command, "commands") and not words[0].startswith("-"):
            assert words[0] in command.commands, f"{name_of(page)}: {line}"
            command, words = command.commands[words[0]], words[1:]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        free = command.context_settings.get("ignore_unknown_options", False)
        for word in words:
            if re.match(r"--?[a-zA-Z]", word) and not free:
                assert word.partition("=")[0] in options | {"--help"}, f"{name_of(page)}: {line}"


def test_commands_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 40
