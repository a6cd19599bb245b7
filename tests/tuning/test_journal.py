"""A journal whose writers may die at any moment."""

from __future__ import annotations

import errno
import os
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


def test_a_full_disk_under_the_journal_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, real = [], os.fsync

    def full(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tune(cases.search(tmp_path, 9), verbose=False)
