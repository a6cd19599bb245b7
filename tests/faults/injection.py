"""What can go wrong at a file event: the control file of ``inject.c``, and the library itself.

An event is a call that changes a file under one folder. Writes count twice: before the first byte, and when half of the bytes are
there ("torn").
"""

from __future__ import annotations

import enum
import errno
import mmap
import shutil
import signal
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

KINDS = ("open", "write", "torn", "fsync", "rename", "unlink", "mkdir", "truncate", "link", "lock")
"""Kinds of events, in the order of ``enum kind``."""
CONTROL = struct.Struct("QQqIIII512s")
"""``struct control`` without the record of kinds that follows it."""
RECORDED = 1 << 16
SOURCE = Path(__file__).parent / "inject.c"


class Action(enum.IntEnum):
    """What happens at the chosen event, in the order of ``enum action``."""

    COUNT = 0
    KILL = 1  # the process that came to the event
    KILL_ALL = 2  # all processes of the run at once, as when a machine loses its power
    FAIL_ONCE = 3
    FAIL_ON = 4  # from then on
    SIGNAL = 5
    VANISH = 6  # the folder is moved away
    JUMP = 7  # the clock jumps


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, at event number ``at`` (from 1) of the kinds ``counted``."""

    action: Action = Action.COUNT
    at: int = 0
    value: int = 0  # the error or the signal
    counted: tuple[str, ...] = KINDS
    jump: int = 0  # seconds


FILLS = ("open", "write", "torn", "fsync", "mkdir", "link", "truncate")
"""What fails on a full disk; to rename and to remove still works."""
CHANGES = tuple(kind for kind in KINDS if kind not in ("fsync", "lock"))
"""What fails in a folder that may only be read."""


def kill(at: int) -> Fault:
    """``kill -9`` of the process that comes to an event."""
    return Fault(Action.KILL, at)


def kill_all(at: int) -> Fault:
    """``kill -9`` of all processes of the run."""
    return Fault(Action.KILL_ALL, at)


def disk_full(at: int) -> Fault:
    """A disk without room, from an event on."""
    return Fault(Action.FAIL_ON, at, errno.ENOSPC, FILLS)


def read_only(at: int) -> Fault:
    """A file system that is mounted read-only, from an event on."""
    return Fault(Action.FAIL_ON, at, errno.EROFS, CHANGES)


def hiccup(at: int) -> Fault:
    """One input/output error, as a network file system has them."""
    return Fault(Action.FAIL_ONCE, at, errno.EIO)


def told(at: int, number: signal.Signals) -> Fault:
    """A signal that asks the process to end."""
    return Fault(Action.SIGNAL, at, number)


def jump(at: int, seconds: int) -> Fault:
    """The clocks jump."""
    return Fault(Action.JUMP, at, jump=seconds)


def vanish(at: int) -> Fault:
    """The folder is moved away under the run."""
    return Fault(Action.VANISH, at)


class Control:
    """The control file of one run."""

    def __init__(self, path: Path, root: Path, fault: Fault) -> None:
        self.path = path
        mask = sum(1 << KINDS.index(kind) for kind in fault.counted)
        place = str(root.absolute()).encode()
        head = CONTROL.pack(0, fault.at, fault.jump, fault.action, fault.value, mask, 0, place)
        with path.open("r+b" if path.exists() else "wb") as file:  # in place: processes may have it mapped
            file.write(head + bytes(RECORDED))

    def read(self) -> tuple[list[str], bool]:
        """Return the kinds of the events that came to pass, and whether the fault has happened."""
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as shared:
            count, _, _, _, _, _, fired, _ = CONTROL.unpack_from(shared)
            kinds = shared[CONTROL.size : CONTROL.size + min(count, RECORDED)]
        return [KINDS[kind] for kind in kinds], bool(fired)


def library(folder: Path) -> Path | None:
    """Compile ``inject.c`` into a folder; None where there is no C compiler, or no LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not Path("/proc/self/fd").is_dir():
        return None
    made = folder / "inject.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(made), str(SOURCE), "-ldl"]
    subprocess.run(words, check=True)
    return made
