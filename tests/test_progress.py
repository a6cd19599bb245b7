from __future__ import annotations

import io
import re
import sys
import types

import pytest

from neurise import progress
from neurise.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Progress, "drawing", None)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")


def drawings(stream: io.StringIO) -> list[str]:
    """What was drawn one over the other, without colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "\x1b[?25l" not in plain  # the cursor is never hidden, and so need not be shown again
    return [part for part in plain.split("\r\x1b[2K") if part]


def test_a_terminal_is_redrawn_in_place(clock: Clock) -> None:
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    for step in (1, 2, 3):
        clock.now += 1
        bar.update(step * 100, step / 4, f"loss [{step}]")
    assert stream.getvalue().count("\n") == 0
    drawn = drawings(stream)
    assert [line[21:].rstrip() for line in drawn] == [
        "training   25%  100 steps  100/s  0:03 left  loss [1]",
        "training   50%  200 steps  100/s  0:02 left  loss [2]",
        "training   75%  300 steps  100/s  0:01 left  loss [3]",
    ]
    assert all(re.fullmatch(r"[━╸╺]{20}", line[:20]) for line in drawn)
    bar.update(400, 1.0, last=True)
    assert drawings(stream)[-1] == "━" * 20 + " training  100%  400 steps  133/s  0:03\n"


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("rich", [True, False])
def test_a_line_is_never_wider_than_the_terminal(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, columns: int, rich: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    clock.now += 1
    bar.update(123_456, 0.25, "loss 0.1234", "validation 0.123456789", "best 0.1")
    (line,) = drawings(stream)
    assert len(line) - len("\r\x1b[2K") * line.startswith("\r") <= columns
    assert ("123,456 steps" in line) == (columns >= 72)  # what matters less is left out first
    if columns >= 40:
        assert "25%  0:03 left" in line or columns >= 72


def test_without_rich_a_plain_line_is_redrawn(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    for step in (1, 2):
        clock.now += 1
        bar.update(step, step / 2, last=step == 2)
    assert stream.getvalue() == (
        "\r\x1b[2Ktraining   50%  1 steps  1/s  0:01 left\r\x1b[2Ktraining  100%  2 steps  1/s  0:02\n"
    )


@pytest.mark.parametrize("coloured", [True, False])
def test_colours_are_left_out_on_request(clock: Clock, monkeypatch: pytest.MonkeyPatch, coloured: bool) -> None:
    if not coloured:
        monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    clock.now += 1
    bar.update(1, 0.5, last=True)
    assert bool(re.search(r"\x1b\[[0-9;]*3", stream.getvalue())) == coloured


def test_a_log_file_has_no_bar_even_where_colours_are_forced(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    Progress("training", "steps", verbose=True, stream=stream).update(10, 1.0, last=True)
    assert stream.getvalue() == "training  100%  10 steps  10,000,000,000/s  0:00\n"


def test_a_terminal_that_cannot_go_back_has_plain_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    Progress("training", "steps", verbose=True, stream=stream).update(10, 1.0, last=True)
    assert stream.getvalue().startswith("training  100%")


def test_a_new_bar_begins_on_a_line_of_its_own_whatever_was_left_open(clock: Clock) -> None:
    stream = Terminal()
    first, second = (Progress(what, "steps", verbose=None, stream=stream) for what in ("counting", "training"))
    clock.now += 1
    first.update(1, 0.5)
    second.update(1, 0.5)
    first.close()  # is over already, and does not end the other's line
    assert stream.getvalue().count("\n") == 1
    second.close()
    assert stream.getvalue().count("\n") == 2
    assert [re.findall("counting|training", line) for line in stream.getvalue().split("\n")] == [
        ["counting"] * 2,
        ["training"] * 2,
        [],
    ]


class Cell:
    """What a notebook shows below a cell."""

    def __init__(self) -> None:
        self.shown = list[str]()

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Cell:
        assert raw
        assert display_id
        assert data["text/plain"].startswith(("counting", "training"))
        self.shown.append(data["text/html"])
        return self

    def update(self, data: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown[-1] = data["text/html"]


@pytest.mark.parametrize("rich", [True, False])
def test_a_notebook_shows_one_bar_per_phase(clock: Clock, monkeypatch: pytest.MonkeyPatch, rich: bool) -> None:
    cell, shell = Cell(), types.SimpleNamespace(kernel="a kernel")
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[misc]
    display = types.SimpleNamespace(display=cell.display)
    monkeypatch.setitem(sys.modules, "IPython.display", display)  # type: ignore[misc]
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    for what in ("counting", "training"):
        bar = Progress(what, "steps", verbose=True)
        for step in (1, 2):
            clock.now += 1
            bar.update(step, step / 2, "<b>", last=step == 2)
    if rich:
        assert [re.sub("<[^>]*>", "", page).strip()[:43] for page in cell.shown] == [
            f"{'━' * 20} {what}  100%  2 step" for what in ("counting", "training")
        ]
        assert all("&lt;b&gt;" in page and "<pre" in page for page in cell.shown)
        assert stream.getvalue() == ""
    else:
        assert cell.shown == []
        assert len(stream.getvalue().splitlines()) == 2


def test_a_terminal_is_not_redrawn_more_often_than_an_eye_can_see(clock: Clock) -> None:
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    for step in range(1, 1000):
        clock.now += 0.001
        bar.update(step, step / 1000)
    assert 9 <= len(drawings(stream)) <= 10


def test_elsewhere_there_is_a_plain_line_now_and_then(clock: Clock) -> None:
    stream = io.StringIO()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    for step in range(1, 36):
        clock.now += 1
        bar.update(step, step / 40)
    assert stream.getvalue().splitlines() == [
        "training   25%  10 steps  1/s  0:30 left",
        "training   50%  20 steps  1/s  0:20 left",
        "training   75%  30 steps  1/s  0:10 left",
    ]


@pytest.mark.parametrize(("verbose", "lines"), [(None, 0), (True, 1), (False, 0)])
def test_a_short_run_in_a_log_is_shown_only_on_request(clock: Clock, verbose: bool | None, lines: int) -> None:
    stream = io.StringIO()
    bar = Progress("training", "steps", verbose=verbose, stream=stream)
    clock.now += 1
    bar.update(10, 1.0, last=True)
    assert len(stream.getvalue().splitlines()) == lines


def test_the_last_line_of_a_long_run_is_shown(clock: Clock) -> None:
    stream = io.StringIO()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    clock.now += 20
    bar.update(10, 0.5)
    clock.now += 1
    bar.update(11, 1.0, last=True)
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_silence(clock: Clock, stream: io.StringIO) -> None:
    bar = Progress("training", "steps", verbose=False, stream=stream)
    clock.now += 100
    bar.update(10, 0.5)
    bar.say("a remark")
    bar.update(20, 1.0, last=True)
    bar.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize("ended", [False, True])
def test_a_remark_begins_on_a_line_of_its_own(clock: Clock, ended: bool) -> None:
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    clock.now += 1
    bar.update(10, 0.5, last=ended)
    bar.say("a remark")
    bar.close()
    assert drawings(stream)[-1].endswith("steps  10/s  0:01 left\na remark\n")


def test_the_rate_of_a_resumed_run_is_that_of_now(clock: Clock) -> None:
    stream = io.StringIO()
    bar = Progress("training", "steps", verbose=True, stream=stream, done=500, fraction=0.5)
    clock.now += 20
    bar.update(600, 0.6)
    assert stream.getvalue() == "training   60%  600 steps  5/s  1:20 left\n"


def test_hours_are_written_as_such(clock: Clock) -> None:
    stream = io.StringIO()
    bar = Progress("training", "steps", verbose=True, stream=stream)
    clock.now += 3 * 3600 + 4 * 60 + 5
    bar.update(10, 1.0, last=True)
    assert stream.getvalue().endswith("3:04:05\n")


def test_the_stream_is_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progress("training", "steps", verbose=True)
    bar.update(1, 1.0, last=True)
    shown = capsys.readouterr()
    assert shown.err.startswith("training  100%")
    assert shown.out == ""
