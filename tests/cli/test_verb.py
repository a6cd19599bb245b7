"""Errors: one line where the user can do something about it, everything where the program is at fault."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable

import pytest
import typer
from safetensors import SafetensorError
from typer.testing import CliRunner, Result

from neurise.cli._verb import verb
from neurise.training.loop import TrainingDiverged


def run(raises: Callable[[], None], *words: str) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)

    def act(number: int = 3) -> None:
        raises()

    app.command("act")(verb(act))
    return CliRunner().invoke(app, ["act", *words])


def thrower(error: BaseException) -> Callable[[], None]:
    def throw() -> None:
        raise error

    return throw


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("width is\n  wrong"), "width is wrong"),
        (FileNotFoundError("there is no file x"), "there is no file x"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.csv"), "x.csv: No such file or directory"),
        (FileExistsError("x exists"), "x exists"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (MemoryError("this needs 3 TB"), "this needs 3 TB"),
        (MemoryError(), "MemoryError"),
        (NotImplementedError("no likelihood"), "no likelihood"),
        (TrainingDiverged("the loss became nan"), "the loss became nan"),
        (SafetensorError("I/O error: No space left on device"), "I/O error: No space left on device"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_expected_errors_are_one_line_on_stderr(error: Exception, line: str) -> None:
    result = run(thrower(error))
    assert result.exit_code == 1
    assert result.stderr == line + "\n"
    assert result.stdout == ""


def test_errors_are_red_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with pytest.raises(typer.Exit):
        verb(thrower(ValueError("wrong")))()
    assert capsys.readouterr().err == "\x1b[31mwrong\x1b[0m\n"


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),  # empty is as good as unset, by no-color.org
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_are_given_and_left_out_on_request(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    terminal: bool,
    coloured: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    with pytest.raises(typer.Exit):
        verb(thrower(ValueError("wrong")))()
    assert capsys.readouterr().err == ("\x1b[31mwrong\x1b[0m\n" if coloured else "wrong\n")


def test_debug_shows_where_it_comes_from() -> None:
    error = ValueError("width is wrong")
    assert run(thrower(error), "--debug").exception is error


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), KeyError("x"), ZeroDivisionError()])
def test_faults_of_the_program_are_not_hidden(error: Exception) -> None:
    assert run(thrower(error)).exception is error


def test_ctrl_c_has_its_code() -> None:
    assert run(thrower(KeyboardInterrupt())).exit_code == 130


def test_warnings_are_one_line_and_do_not_stop() -> None:
    result = run(lambda: warnings.warn("few samples", stacklevel=1))
    assert (result.exit_code, result.stderr) == (0, "warning: few samples\n")


def test_a_closed_pipe_is_left_to_the_shell() -> None:
    assert run(thrower(BrokenPipeError(errno.EPIPE, "Broken pipe"))).stderr == ""
