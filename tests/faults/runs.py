"""Start runs that may fail, and wait for all of their processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from faults.injection import Control, Fault

LONGEST = 300.0
"""Seconds after which a run that should take one counts as hung."""


@dataclass(frozen=True)
class Ended:
    """How a run ended, what it did to the files, what it was told is safe, and what it printed."""

    code: int | None  # None where it hung
    events: list[str]
    fired: bool
    acks: list[str]
    printed: str


@dataclass
class Under:
    """A run under way."""

    process: BaseProcess
    control: Control | None
    log: Path
    acks: Path

    def finish(self, seconds: float = LONGEST) -> Ended:
        """Wait for the run and for every process that it started."""
        self.process.join(seconds)
        code = self.process.exitcode
        _end_session(self.process.pid, patience=30.0 if code is not None else 0.0)
        self.process.join()
        events, fired = self.control.read() if self.control else ([], False)
        read = [
            place.read_text(encoding="utf-8", errors="replace") if place.exists() else ""
            for place in (self.acks, self.log)
        ]
        return Ended(code, events, fired, read[0].splitlines(), read[1])


@dataclass
class Launcher:
    """Forks runs from a process that has everything imported and the library of ``inject.c`` loaded."""

    library: Path
    scratch: Path  # for logs and control files, outside of the folders at risk
    started: int = field(default=0)

    def start(
        self, work: Callable[[], None], folder: Path, fault: Fault | None = None, control: Path | None = None
    ) -> Under:
        """Begin a run whose file events under a folder are counted, and go wrong as the fault says."""
        from faults import child

        self.started += 1
        names = [self.scratch / f"{self.started}.{kind}" for kind in ("log", "acks", "control")]
        made = None if fault is None else Control(control or names[2], folder, fault)
        job = child.Job(work, names[0], names[1], None if made is None else made.path, self.library)
        process = multiprocessing.get_context("forkserver").Process(target=child.run, args=(job,))
        process.start()
        return Under(process, made, names[0], names[1])

    def run(self, work: Callable[[], None], folder: Path, fault: Fault | None = None) -> Ended:
        """Do a run to its end, whatever that is."""
        return self.start(work, folder, fault).finish()


@contextmanager
def launcher(library: Path, scratch: Path) -> Iterator[Launcher]:
    """Have a process ready that runs are forked from. There is one in a program."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faults.child"])
    added = {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    tests = str(Path(__file__).parents[1])
    added["PYTHONPATH"] = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        from multiprocessing.forkserver import ensure_running

        ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    yield Launcher(library, scratch)


def _end_session(leader: int | None, patience: float) -> None:
    """Wait until no process of a session is left; those that outlive the patience are killed."""
    assert leader is not None
    deadline = time.monotonic() + patience
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:
            os.killpg(leader, 0)
            time.sleep(0.01)
        os.killpg(leader, signal.SIGKILL)
