"""Folders that one process at a time works in.

A lock is the operating system's (``flock``): it ends with the process that holds it, also when that is killed. The file
that it is taken on says who holds it, and is removed when it is given back. Where the file system has no such locks, work
goes on without.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from neurise.files import machine

RUN, SAVE = ".run.lock", ".save.lock"
"""A training run, which lasts; and a save, which others wait for."""
PAUSE = 0.01
LONGEST = 600.0
"""Seconds to wait for a save of another process."""
BUSY = (errno.EWOULDBLOCK, errno.EACCES)

_mine: ContextVar[frozenset[Path]] = ContextVar("locks that this thread's run holds", default=frozenset())
_open: set[int] = set()


class FolderInUse(FileExistsError):
    """Another process works in the folder."""


@contextmanager
def running_in(folder: Path) -> Iterator[None]:
    """Hold a folder for a training run; raise :class:`FolderInUse` at once where another run holds it.

    What the run itself calls may hold the folder again.
    """
    key = Path(os.path.realpath(folder))
    if key in _mine.get():
        yield
        return
    with _locked(key, RUN, wait=False):
        token = _mine.set(_mine.get() | {key})
        try:
            yield
        finally:
            _mine.reset(token)


@contextmanager
def saving_in(folder: Path) -> Iterator[None]:
    """Hold a folder for a save: wait for another save, and refuse to write under a training run of another process."""
    key = Path(os.path.realpath(folder))
    _refuse_foreign_run(key)
    with _locked(key, SAVE, wait=True):
        yield


@contextmanager
def _locked(folder: Path, name: str, *, wait: bool) -> Iterator[None]:
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    descriptor = _acquire(path, wait=wait)
    try:
        yield
    finally:
        if descriptor in _open:  # and not in a process that was forked meanwhile
            with suppress(OSError):
                path.unlink()  # while it is held, so that nobody takes hold of a file that is about to go
            _open.discard(descriptor)
            os.close(descriptor)
        for place in made:  # folders that were made for the lock alone
            with suppress(OSError):
                place.rmdir()


def _acquire(path: Path, *, wait: bool) -> int | None:
    """Take the lock; None where the file system has none."""
    if sys.platform == "win32":
        return None
    import fcntl

    give_up = time.monotonic() + LONGEST
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the holder before has removed the folder that it had made
            path.parent.mkdir(parents=True, exist_ok=True)
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in BUSY:
                return None
            if not wait or time.monotonic() > give_up:
                raise _in_use(path) from None
            time.sleep(PAUSE)
            continue
        if _is_still(path, descriptor):
            break
        os.close(descriptor)  # the holder before has removed the file: take the one that is there now
    os.truncate(descriptor, 0)
    os.write(descriptor, f"{machine()} {os.getpid()} {socket.gethostname()}\n".encode())
    _open.add(descriptor)
    return descriptor


def _refuse_foreign_run(folder: Path) -> None:
    """Raise FolderInUse where a run of another process holds the folder."""
    path = folder / RUN
    if sys.platform == "win32" or not path.exists():
        return
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # it has just ended, or is not ours to look at
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY and _holder(path)[:2] != [machine(), str(os.getpid())]:
            raise _in_use(path) from None
    finally:
        os.close(descriptor)


def _in_use(path: Path) -> FolderInUse:
    """Say who works in a folder, and what to do."""
    holder = _holder(path)
    who = f"process {holder[1]} on {holder[2]}" if len(holder) == 3 else "another process"
    what = "trains a model" if path.name == RUN else "saves a model"
    return FolderInUse(f"{path.parent} is in use: {who} {what} there; wait until it has ended, or name another folder")


def _holder(path: Path) -> list[str]:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").split()
    return []


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _forget() -> None:
    """Close, in a forked process, what its parent holds: a lock must end with the parent alone."""
    for descriptor in _open:
        with suppress(OSError):
            os.close(descriptor)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
