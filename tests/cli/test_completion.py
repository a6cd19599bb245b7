"""Completion scripts: they parse, and a real shell completes with them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from neurise import discovery
from neurise.cli import app
from neurise.cli._completion_scripts import SCRIPTS
from neurise.cli._completion_words import commands_of

COMMANDS = list(commands_of(typer.main.get_command(app)))
needs = {
    shell: pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed") for shell in SCRIPTS
}


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "script"
    path.write_text(SCRIPTS[request.param](COMMANDS), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("script", "shell"), [pytest.param(s, s, marks=needs[s]) for s in SCRIPTS], indirect=["script"]
)
def test_the_shell_reads_it(script: Path, shell: str) -> None:
    subprocess.run([shell, "-n", script], check=True)


CASES = {
    ("",): {"train", "data", "completion"},
    ("tr",): {"train"},
    ("data", ""): {"make", "list", "info"},
    ("data", "make", "edw"): {"edwards_anderson"},
    ("train", "--mod"): {"--model"},
    ("train", "rows.csv", "--model", "pai"): {"pairwise"},
    ("train", "rows.csv", "--network", ""): set(discovery.names("neurise.networks")),
    ("train", "isi"): {"ising"},
    ("evaluate", "model", "--data", "pot"): {"potts"},
    ("experiment", "run", "gh"): {"ghz"},
    ("completion", ""): {"bash", "zsh", "fish"},
    ("train", "rows.csv", "-o", "a f"): {"a file"},
}


@needs["bash"]
@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes_verbs_options_names_and_files(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "a file").touch()
    lines = [f"source {shlex.quote(str(script))}", f"cd {shlex.quote(str(folder))}"]
    equals = {("train", "--model", "=", "pai"): {"pairwise"}, ("train", "--model", "="): {"neurise", "ggm", "pairwise"}}
    cases = CASES | equals
    for words in cases:
        line = shlex.join(["neurise", *words])
        lines.append(
            f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _neurise; printf '%s\\t' \"${{COMPREPLY[@]}}\"; echo"
        )
    done = subprocess.run(["bash", "--norc", "-c", "\n".join(lines)], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    for (words, expected), shown in zip(cases.items(), done.stdout.split("\n"), strict=False):
        found = set(shown.split("\t")) - {""}
        assert (expected <= found) if words[-1] in ("", "=") else (found == expected), words


@needs["fish"]
@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes_them(script: Path, tmp_path: Path) -> None:
    asked = [
        f"complete -C {shlex.quote('neurise ' + ' '.join(words))}; echo =" for words in CASES if words[-1] != "a f"
    ]
    code = "\n".join([f"source {shlex.quote(str(script))}", f"cd {shlex.quote(str(tmp_path))}", *asked])
    done = subprocess.run(["fish", "--no-config", "-c", code], check=True, capture_output=True, text=True)
    for (words, expected), shown in zip(CASES.items(), done.stdout.split("=\n")[:-1], strict=False):
        found = {line.partition("\t")[0] for line in shown.splitlines()}
        assert expected <= found, words


def test_every_verb_and_every_option_is_there() -> None:
    verbs = {command.path[0] for command in COMMANDS if command.path}
    assert set(discovery.names("neurise.cli")) == verbs
    for shell, write in SCRIPTS.items():
        text = write(COMMANDS)
        for command in COMMANDS:
            for option in command.options:
                for spelling in option.spellings:
                    written = spelling if shell != "fish" else f"-l {spelling[2:]}" if spelling[:2] == "--" else "-s"
                    assert written in text


def test_the_verb_prints_a_script_and_refuses_other_shells() -> None:
    done = CliRunner().invoke(app, ["completion", "bash"])
    assert done.exit_code == 0
    assert done.stdout == SCRIPTS["bash"](COMMANDS)
    wrong = CliRunner().invoke(app, ["completion", "tcsh"])
    assert wrong.exit_code == 1
    assert wrong.stderr == "there is no completion for 'tcsh'; it must be one of: bash, zsh, fish\n"
