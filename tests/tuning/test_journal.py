"""A journal whose writers may die at any moment."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest
import tuning_cases as cases
from optuna.storages.journal import JournalFileBackend

from neurise.tuning.journal import JournalLock
from neurise.tuning.search import counts, tune


def test_the_lock_file_of_a_killed_writer_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(_: float) -> None:
        raise AssertionError("it waits for a process that is gone")

    (tmp_path / "study.journal.lock").symlink_to(tmp_path / "study.journal")  # as Optuna's own lock leaves it
    monkeypatch.setattr(time, "sleep", waits)
    search = cases.search(tmp_path, 1)
    tune(search, verbose=False)
    assert sum(counts(search.open()).values()) == 1


def test_nothing_is_joined_to_the_half_line_of_a_writer_that_died_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    journal = JournalFileBackend(str(path), lock_obj=JournalLock(str(path)))
    journal.append_logs([{"number": 1}])
    with path.open("ab") as another:
        another.write(b'{"num')
    journal.append_logs([{"number": 2}])
    assert list(journal.read_logs(0)) == [{"number": 1}, {"number": 2}]
    assert (tmp_path / "study.journal.damaged").read_bytes() == b'{"num'


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "study.journal"
    lock = JournalLock(str(path))
    lock.acquire()
    with path.open("ab") as another:
        with pytest.raises(BlockingIOError):
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.release()
        fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("room", range(2, 12))
def test_a_full_disk_under_the_journal_is_called_so(tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is that finds no room: a parameter, an intermediate score, the end of a trial."""
    written, real = list[object](), JournalFileBackend.append_logs

    def full(self: JournalFileBackend, logs: list[dict[str, object]]) -> None:
        if len(written) >= room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(logs)
        real(self, logs)

    monkeypatch.setattr(JournalFileBackend, "append_logs", full)
    with pytest.raises(OSError, match="No space left"):
        tune(cases.search(tmp_path, 9), verbose=False)
