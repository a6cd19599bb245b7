import io

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


def test_a_terminal_is_redrawn_in_place(clock: Clock) -> None:
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    for step in (1, 2, 3):
        clock.now += 1
        bar.update(step * 100, step / 4, f"loss {step}")
    assert stream.getvalue().count("\n") == 0
    drawn = stream.getvalue().split("\r\x1b[2K")[1:]
    assert len(drawn) == 3
    assert drawn[0] == "━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ training   25%  100 steps  100/s  0:03 left  loss 1"
    assert drawn[2].startswith("━━━━━━━━━━━━━━━╌╌╌╌╌ training   75%  300 steps  100/s  0:01 left")
    bar.update(400, 1.0, last=True)
    assert stream.getvalue().endswith("400 steps  133/s  0:03\n")


def test_a_terminal_is_not_redrawn_more_often_than_an_eye_can_see(clock: Clock) -> None:
    stream = Terminal()
    bar = Progress("training", "steps", verbose=None, stream=stream)
    for step in range(1, 1000):
        clock.now += 0.001
        bar.update(step, step / 1000)
    assert 9 <= stream.getvalue().count("\r") <= 10


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
    assert stream.getvalue().endswith("steps  10/s  0:01 left\na remark\n")


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
