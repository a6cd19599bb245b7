"""One try: a run in which something goes wrong, a look at what is left, and the same command again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from faults.child import CRASHED, jumping
from faults.injection import Action, Fault
from faults.runs import Ended, Launcher
from faults.works import Work

NOT_REACHED = "none"
"""The event of a run that ended before it came to the one where something was to go wrong."""


@dataclass
class Count:
    """How tries of one kind went."""

    work: str
    executor: str
    fault: str
    event: str
    tries: int = 0
    survived: int = 0
    lost: int = 0
    seconds: float = 0.0
    losses: list[str] = field(default_factory=list)

    def add(self, why: str, seconds: float) -> None:
        """Count one try, and what was lost in it: nothing, one hopes."""
        self.tries += 1
        self.survived += not why
        self.lost += bool(why)
        self.seconds += seconds
        self.losses += [why] if why else []


class Bench:
    """A work in its folders, with what it leads to when nothing goes wrong."""

    def __init__(self, launcher: Launcher, work: Work, place: Path) -> None:
        self.launcher, self.work, self.place = launcher, work, place
        self.template = place / "template"
        self.template.mkdir(parents=True)
        work.prepare(self.template)
        self.old = work.result(self.template) if work.is_there(self.template) else None
        straight = self.fresh("straight")
        with work.around(place / "straight.control", launcher.library):
            ended = launcher.start(work.run(straight), straight, Fault(), place / "straight.control").finish()
        if ended.code != 0:
            raise RuntimeError(f"{work.name} fails without any fault ({ended.code}):\n{ended.printed}")
        self.events, self.new, self.names = ended.events, work.result(straight), _names(straight)
        self.made = 0

    def fresh(self, name: str) -> Path:
        """Make a folder as the work finds it."""
        folder = self.place / name
        return Path(shutil.copytree(self.template, folder))

    def number_of(self, fault: Callable[[int], Fault]) -> int:
        """How many events of a run count for a fault."""
        return sum(kind in fault(1).counted for kind in self.events)

    def attempt(self, fault: Fault) -> tuple[str, str]:
        """Try once; return the kind of event that it happened at, and what was lost."""
        self.made += 1
        folder, control = self.fresh(f"{self.made}"), self.place / f"{self.made}.control"
        with self.work.around(control, self.launcher.library):
            work = self.work.run(folder)
            if fault.action is Action.JUMP:
                work = partial(jumping, work, control, fault.at, fault.jump)
            ended = self.launcher.start(work, folder, fault, control).finish()
            if fault.action is Action.VANISH:
                ended = _brought_back(folder, ended)
            kind = ended.events[fault.at - 1] if ended.fired else NOT_REACHED
            why = self.verdict(folder, ended)
        if not why:
            shutil.rmtree(folder)
        return kind, why

    def verdict(self, folder: Path, ended: Ended) -> str:
        """Say what a run that went wrong has lost, now or when the same command is run again; empty for nothing."""
        return self._after_fault(folder, ended) or self._in_the_end(folder, ended)

    def _after_fault(self, folder: Path, ended: Ended) -> str:
        if ended.code is None:
            return "it hung"
        if ended.code == CRASHED:
            return f"it ended in a traceback: {ended.printed.strip().splitlines()[-1][:300]}"
        try:
            damage = self.work.damage(folder, ended.acks, self.old, self.new)
        except Exception as error:
            return f"right after: {type(error).__name__}: {error}"
        if ended.code == 0 and not damage and self.work.result(folder) != self.new:
            return "it said that all went well, and the result is another one"
        return f"right after: {damage}" if damage else ""

    def _in_the_end(self, folder: Path, before: Ended) -> str:
        after = self.launcher.run(self.work.again(folder), folder)
        if after.code != 0:
            return f"the same command again ended with {after.code}: {after.printed.strip()[-300:]}"
        try:
            same = self.work.result(folder) == self.new
        except Exception as error:
            return f"in the end: {type(error).__name__}: {error}"
        if not same:
            return "in the end: the result is another one"
        if more := _names(folder) - self.names:
            return f"left behind: {', '.join(sorted(more))}"
        return self.work.repeated(before.acks, after.acks)


def _brought_back(folder: Path, ended: Ended) -> Ended:
    """Put a folder back that was moved away; what was written in its old place since then, and promised, does not count."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f"{folder.name}.gone").rename(folder)
    return replace(ended, acks=[], code=ended.code or 1) if ended.code is not None else ended


def spread(n: int, most: int | None) -> Sequence[int]:
    """Take at most so many of the numbers 1 to n, spread evenly."""
    if most is None or n <= most:
        return range(1, n + 1)
    return sorted({1 + round(k * (n - 1) / max(1, most - 1)) for k in range(most)})


def sweep(bench: Bench, name: str, fault: Callable[[int], Fault], most: int | None = None) -> list[Count]:
    """Try a fault at every event that counts for it, or at some of them; count by kinds of events."""
    counts: dict[str, Count] = {}
    for at in spread(bench.number_of(fault), most):
        began = time.monotonic()
        kind, why = bench.attempt(fault(at))
        count = counts.setdefault(kind, Count(bench.work.name, bench.work.executor, name, kind))
        count.add(why and f"event {at}: {why}", time.monotonic() - began)
    return list(counts.values())


def _names(folder: Path) -> set[str]:
    """List what is in a folder; half a line that was set aside is there on purpose."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".damaged"}
