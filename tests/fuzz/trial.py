"""Give a reader many hostile inputs, and find those that end in anything but an answer or a message."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readers import Reader, corpus_of

CAP = 64 * 10**6
"""Bytes that packed inputs may unpack to here, and that no single input may add to the memory held."""
DOCUMENTED = (ValueError, OSError, MemoryError)
PATIENCE = 300
"""Seconds after which a batch of inputs is given up: by then one of them has long failed."""
BATCH = 50
"""Inputs between two looks at the memory held."""


@dataclass
class Report:
    """What came of the inputs of one reader."""

    reader: str
    inputs: int = 0
    read: int = 0  # without an error
    refused: int = 0  # with a documented one that names the file
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    most_memory_bytes: int = 0  # that a batch of inputs added to the most that was ever held
    memory: int = 0  # held before this batch
    faults: dict[str, bytes] = field(default_factory=dict)  # what was wrong, and the first input that showed it

    def facts(self) -> dict[str, Any]:
        """Everything but the inputs themselves, in JSON's types."""
        return {
            "reader": self.reader,
            "inputs": self.inputs,
            "read": self.read,
            "refused": self.refused,
            "crashes": len(self.faults),
            "seconds": round(self.seconds, 1),
            "slowest_seconds": round(self.slowest_seconds, 3),
            "most_memory_bytes": self.most_memory_bytes,
        }


class TooLong(BaseException):
    """An input that is never done."""


def allowed_seconds(size: int) -> float:
    """Return how long an input of so many bytes may take: 1 s and 10 ms for each kilobyte."""
    return 1 + 0.01 * size / 1000


@contextmanager
def place_of(name: str, reader: Reader) -> Iterator[Path]:
    """Give a file in memory where there is one, and set the limits of this trial."""
    memory = Path("/dev/shm")
    before = os.environ.get("NEURISE_MAX_UNPACKED")
    os.environ["NEURISE_MAX_UNPACKED"] = str(CAP)
    try:
        with (
            tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
            warnings.catch_warnings(),
            _alarm(),
        ):
            warnings.simplefilter("ignore")
            yield Path(folder) / f"input-{name}{reader.ending}"
    finally:
        os.environ.pop("NEURISE_MAX_UNPACKED")
        if before is not None:
            os.environ["NEURISE_MAX_UNPACKED"] = before


def attempt(reader: Reader, path: Path, data: bytes, report: Report) -> None:
    """Give a reader one input, and write down what happened."""
    if report.inputs % BATCH == 0:  # asking the system costs more than many an input does
        report.memory = _memory()
        signal.alarm(PATIENCE)
    report.inputs += 1
    reader.write(path, data)
    began = time.perf_counter()
    fault = _outcome(reader, path, report)
    spent = time.perf_counter() - began
    if spent > allowed_seconds(
        len(data)
    ):  # other work on the machine is not its fault: again, by the time of this process
        reader.write(path, data)
        signal.alarm(PATIENCE)
        began = time.process_time()
        fault = fault or _outcome(reader, path, Report(report.reader))
        spent = time.process_time() - began
        if spent > allowed_seconds(len(data)):
            fault = f"takes {spent:.1f} s, and {len(data):,} bytes may take {allowed_seconds(len(data)):.1f} s"
    report.slowest_seconds = max(report.slowest_seconds, spent)
    if fault is not None:
        report.faults.setdefault(fault, data)


def check_memory(report: Report, data: bytes) -> None:
    """Look at what the last inputs have added to the memory held; ``data`` is the last of them."""
    grown = _memory() - report.memory
    report.most_memory_bytes = max(report.most_memory_bytes, grown)
    if grown > CAP:
        report.faults.setdefault(f"takes {grown:,} bytes of memory, or one of the {BATCH} before it does", data)


def _outcome(reader: Reader, path: Path, report: Report) -> str | None:
    try:
        reader.read(path)
        report.read += 1
    except DOCUMENTED as error:
        report.refused += 1
        if path.stem not in str(error):
            return f"names no file: {_place(error)}"
    except TooLong:
        return "never done"
    except Exception as error:
        return _place(error)
    return None


def fuzz(name: str, reader: Reader, inputs: int, seed: int = 0, seconds: float | None = None) -> Report:
    """Try the corpus, and then inputs that are made of it: each is given by the seed and its number alone."""
    report, good = Report(name), corpus_of(name, reader)
    with place_of(name, reader) as path:
        for data in good:  # modules are loaded where they are first needed, which is no time or memory of an input
            attempt(reader, path, data, Report(name))
        began = time.monotonic()
        for number in range(inputs):
            if seconds is not None and time.monotonic() - began > seconds:
                break
            data = good[number] if number < len(good) else mutant(reader, good, seed, number)
            attempt(reader, path, data, report)
            if report.inputs % BATCH == 0 or number == inputs - 1:
                check_memory(report, data)
        report.seconds = time.monotonic() - began
    return report


def mutant(reader: Reader, good: list[bytes], seed: int, number: int) -> bytes:
    """Make one input."""
    rng = random.Random(seed * 2**40 + number)
    data = reader.mutate(rng, rng.choice(good), good)
    return reader.mutate(rng, data, good) if rng.random() < 0.3 else data


@contextmanager
def _alarm() -> Iterator[None]:
    def give_up(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _place(error: BaseException) -> str:
    """Say what an error is and where in our own code it comes from, without the values of this input."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "neurise" in frame.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return (
        f"{type(error).__name__} at {where}: {str(error)[:100]}" if not frames else f"{type(error).__name__} at {where}"
    )
