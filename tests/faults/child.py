"""What runs in a process that is going to fail. Imported once, before the processes are forked from it, so that a try is short."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pkgutil
import sys
import tempfile
import time
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import tiny
import torch

from neurise.cli import main
from neurise.experiments import store
from neurise.modeling import round_robin
from neurise.training import loop
from neurise.training.state import TrainingState
from neurise.tuning import search

for _folder in ("cli", "datasets", "datasets.formats", "models", "networks", "noise", "sampling", "tuning.samplers"):
    for _found in pkgutil.iter_modules(import_module(f"neurise.{_folder}").__path__, f"neurise.{_folder}."):
        import_module(_found.name)
for _heavy in ("optuna.storages.journal", "optuna.samplers", "rich.table", "pydantic"):
    with suppress(ImportError):
        import_module(_heavy)

CRASHED = 70
"""Exit code of a child that ended by an error which no verb expects."""


@dataclass(frozen=True)
class Job:
    """One run of a piece of work, and where its traces go."""

    work: Callable[[], None]
    log: Path  # what it prints
    acks: Path  # what it was told is safe
    control: Path | None = None  # of the fault
    library: Path | None = None


def warm_up() -> None:
    """Learn something small once, so that all that is imported late is there before processes are forked."""
    torch.set_num_threads(1)
    round_robin.fit_terms = lambda *_, **__: None  # no file is touched in it, and it takes most of the time
    with tempfile.TemporaryDirectory() as folder:
        fitted = tiny.model(members=2, architecture__pairwise=True).fit(
            tiny.spins(), max_steps=10, device="cpu", verbose=False
        )
        fitted.save(folder)
        fitted.sample(2, seed=0)
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise RuntimeError("processes cannot be forked from one that has several threads")


def neurise_main(*words: str) -> None:
    """Run the command line."""
    sys.argv = ["neurise", *words]
    main()


def run(job: Job) -> None:
    """Do a piece of work in this process, in a session of its own, and end."""
    os.setsid()
    here = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (here, 1), (here, 2)):
        os.dup2(source, target)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))  # noqa: PTH123, SIM115
    sys.modules["__main__"] = types.ModuleType("__main__")  # processes that this one spawns need not import the suite
    _acknowledge(job.acks)
    loop.CHECKPOINT_SHARE = 1e9  # a state is written at every evaluation, whatever it costs: no clock has a say
    if job.control is not None:
        os.environ["NEURISE_FAULTS"] = str(job.control)
        ctypes.CDLL(str(job.library)).faults_arm(str(job.control).encode())
    code: Any = 0
    try:
        job.work()
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        import traceback

        traceback.print_exc()
        code = CRASHED
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 1)


def _acknowledge(place: Path) -> None:
    """Note outside of the folder what the program believes to be safe, as soon as it does."""
    note = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def after(function: Callable[..., Any], line: Callable[..., str]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            os.write(note, (line(*args) + "\n").encode())
            return result

        return noted

    TrainingState.save = after(TrainingState.save, lambda state, path, *_: f"{path} {state.step}")  # type: ignore[method-assign]
    store.append = after(
        store.append, lambda path, rows: "\n".join(f"row {row['key']} {row['status']}" for row in rows)
    )
    search._keep = after(search._keep, lambda wanted, study: f"trials {sum(search.counts(study).values())}")


def jumping(work: Callable[[], None], control: Path, at: int, seconds: int) -> None:
    """Do a piece of work while ``time.time`` and ``time.monotonic`` jump, at a file event."""
    from faults.injection import CONTROL

    shared = control.open("rb")
    for name in ("time", "monotonic", "perf_counter"):
        real = getattr(time, name)

        def told(real: Callable[[], float] = real) -> float:
            shared.seek(0)
            return real() + (seconds if CONTROL.unpack(shared.read(CONTROL.size))[0] >= at else 0)

        setattr(time, name, told)
    work()


if multiprocessing.parent_process() is None and "forkserver" in str(sys.orig_argv):
    warm_up()
