"""The lock of a journal: one writer at a time, and a journal that is whole whenever it is taken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from optuna.storages.journal import JournalFileSymlinkLock

from neurise.files import write_atomically


class JournalLock(JournalFileSymlinkLock):
    """A lock on the journal itself, which the system takes back when its holder dies.

    A lock file, as Optuna has it, stays behind when its holder is killed: everyone else waits for half a minute, and two that lose
    patience at once write at once. Where the system has no locks of this kind, Optuna's is used.
    """

    def __init__(self, filepath: str) -> None:
        super().__init__(filepath)
        self._path = Path(filepath)
        self._held: BinaryIO | None = None

    def acquire(self) -> bool:
        """Wait until no other writer is left; then see to it that the journal ends with a whole line."""
        try:
            import fcntl
        except ImportError:
            return super().acquire()
        file = self._path.open("ab+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            _mend(self._path, file)
        except BaseException:
            file.close()
            raise
        self._held = file
        return True

    def release(self) -> None:
        """Let the next writer in."""
        if self._held is None:
            super().release()
        else:
            self._held.close()
            self._held = None


def _mend(path: Path, file: BinaryIO) -> None:
    """Set aside the half line that a crash or a full disk left at the end: the next line would be written behind it."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    if end == 0 or file.read(1) == b"\n":
        return
    file.seek(0)
    content = file.read()
    if content.startswith(b"{"):  # whatever else it is, it is no journal, and not ours to cut
        whole = content.rfind(b"\n") + 1
        write_atomically(path.with_name(f"{path.name}.damaged"), lambda place: place.write_bytes(content[whole:]))
        file.truncate(whole)
