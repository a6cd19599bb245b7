"""Write files so that a reader finds the old one or the new one, whole, whatever happens to the writer.

A file is written under ``.neurise-tmp`` beside its place, brought to the disk, and renamed. What a killed process leaves
there bears the number of that process, and the next writer into the same folder removes it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

SCRATCH = ".neurise-tmp"
"""The folder beside a file that holds what is not whole yet."""
STALE = 24 * 3600
"""Seconds without a change after which a temporary file belongs to nobody, whoever made it."""
ATTEMPTS = 1000
"""How often a scratch folder is made again that another writer removes at the same moment."""


class Staged:
    """A file on its way: write to ``place``, then :meth:`commit`."""

    def __init__(self, target: Path, place: Path) -> None:
        self.target, self.place = target, place
        # Created here, so that the file gets the permissions that the umask leaves: some writers put 0600 in its place.
        descriptor = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        self.mode = os.fstat(descriptor).st_mode & 0o7777
        os.close(descriptor)

    def flush(self) -> None:
        """Bring the bytes to the disk before the name changes, or a power cut could leave an empty file."""
        self.place.chmod(self.mode)
        _sync(self.place)

    def commit(self) -> None:
        """Put the file in its place; the rename is on the disk when this returns."""
        self.flush()
        rename(self.place, self.target)


@contextmanager
def staged(path: Path) -> Iterator[Staged]:
    """Give a place to write a file to, beside ``path``; without a commit nothing is left of it."""
    target = Path(os.path.realpath(path))  # through a link, as an ordinary write goes
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.parent / SCRATCH
    remove_leftovers(target.parent)
    own = _make_own(scratch)
    try:
        yield Staged(target, own / target.name)
    finally:
        shutil.rmtree(own, ignore_errors=True)
        with suppress(OSError):  # another writer is at work
            scratch.rmdir()


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` on a temporary place and rename what it wrote to ``path``: the old file is whole until the new one is."""
    if path.is_char_device() or path.is_fifo():  # /dev/stdout, say, which no file may take the place of
        write(path)
        return
    with staged(path) as new:
        write(new.place)
        new.commit()


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, whole or not at all."""
    write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))


def rename(path: Path, target: Path) -> None:
    """Rename a file, and wait until its folder is on the disk."""
    path.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; where a system cannot do this for folders, nothing is done."""
    with suppress(OSError):
        _sync(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes of this machine that are gone, and those that are older than a day."""
    scratch = folder / SCRATCH
    with suppress(OSError):  # most often there is none
        for place in scratch.iterdir():
            if _is_abandoned(place):
                shutil.rmtree(place, ignore_errors=True)
        scratch.rmdir()


def is_running(pid: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to somebody else
        return True
    return True


@lru_cache
def machine() -> str:
    """Name what process numbers are unique in: the host since it was started, and a container by itself."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _make_own(scratch: Path) -> Path:
    own = scratch / f"{machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    for attempt in range(ATTEMPTS):
        scratch.mkdir(exist_ok=True)
        try:
            own.mkdir()
        except FileNotFoundError:  # another writer has just removed the scratch folder, which was empty
            if attempt == ATTEMPTS - 1:
                raise
        else:
            break
    return own


def _is_abandoned(place: Path) -> bool:
    where, _, rest = place.name.partition("-")
    pid = rest.partition("-")[0]
    if where == machine() and pid.isdecimal() and sys.platform != "win32":
        return not is_running(int(pid))
    newest = max((entry.stat().st_mtime for entry in (place, *place.iterdir())), default=0.0)
    return time.time() - newest > STALE


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
