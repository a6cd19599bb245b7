"""What is tried: every work under every fault, in sections that can be run by themselves."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from faults import injection, real, together
from faults.broken import Forgetful, InPlace, LitterBug, Unlocked
from faults.clusters import DaskExperiment, SlurmExperiment, TorchrunTrain, TuneTogether, slurm, why_no_slurm
from faults.grids import Experiment, Tune
from faults.runs import Launcher
from faults.training import Checkpoint, TimedTrain, Train, TrainOver
from faults.trials import Bench, Count, sweep
from faults.works import Save, Work, data_make, sample

Most = int | None
"""At most so many events of a sweep are tried, spread evenly; None for all of them."""
Section = Callable[["Hall", Most], Iterator[Count]]
FAR = 10**6
"""Seconds that clocks jump by."""


class Hall:
    """Where works are tried: each is prepared once."""

    def __init__(self, launcher: Launcher, place: Path, say: Callable[[str], None] = print) -> None:
        self.launcher, self.place, self.say = launcher, place, say
        self._benches: dict[str, Bench] = {}

    def bench(self, work: Work) -> Bench:
        """Return the bench of a work."""
        name = f"{type(work).__name__} {work.name} {work.executor}".replace(" ", "-").replace(":", "")
        if name not in self._benches:
            self._benches[name] = Bench(self.launcher, work, self.place / name)
        return self._benches[name]


def alone() -> list[Work]:
    """Works in one process."""
    files = [
        *map(sample, (".csv", ".npz", ".npy", ".tsv", ".csv.gz")),
        *map(data_make, (".npz", ".csv", ".npy", ".tsv", ".csv.gz")),
    ]
    return [Experiment(size=8), Save(), *files, Tune(), Train(), TrainOver(), Checkpoint()]


def kills(hall: Hall, most: Most) -> Iterator[Count]:
    """``kill -9`` at every file event."""
    for work in alone():
        yield from sweep(hall.bench(work), "kill", injection.kill, most)


def executors(hall: Hall, most: Most) -> Iterator[Count]:
    """``kill -9`` of whoever comes to an event, parent or worker, and of all at once."""
    few = 6 if most is None else min(most, 6)
    pool = hall.bench(Experiment("process", 2, 2))
    yield from sweep(pool, "kill", injection.kill, few)
    yield from sweep(pool, "kill of all", injection.kill_all, few)
    for work in (TuneTogether(), TorchrunTrain(), DaskExperiment()):
        yield from sweep(hall.bench(work), "kill", injection.kill, few)
    if why := why_no_slurm():
        hall.say(f"Slurm is left out: {why}")
        return
    with slurm(hall.place / "slurm"):
        yield from sweep(hall.bench(SlurmExperiment()), "kill", injection.kill, few)


def signals(hall: Hall, most: Most) -> Iterator[Count]:
    """SIGTERM and SIGINT at file events."""
    for work in (Train(), TrainOver(), Experiment(size=8), Tune(), sample(".csv"), data_make(".npz")):
        for number in (signal.SIGTERM, signal.SIGINT):
            yield from sweep(hall.bench(work), number.name, partial(injection.told, number=number), most or 12)


def full(hall: Hall, most: Most) -> Iterator[Count]:
    """A disk that is full from every write on, and one error alone."""
    for work in alone():
        yield from sweep(hall.bench(work), "disk full", injection.disk_full, most)
        yield from sweep(hall.bench(work), "one I/O error", injection.hiccup, most or 12)


def folders(hall: Hall, most: Most) -> Iterator[Count]:
    """Folders that become read-only, and folders that vanish."""
    for work in alone():
        yield from sweep(hall.bench(work), "read-only", injection.read_only, most or 6)
        yield from sweep(hall.bench(work), "folder moved away", injection.vanish, most or 6)


def clocks(hall: Hall, most: Most) -> Iterator[Count]:
    """Clocks that jump by eleven days, forth and back."""
    for work in (Train(), TimedTrain(), Experiment(size=8), Tune(), sample(".csv"), data_make(".npz")):
        for seconds in (FAR, -FAR):
            yield from sweep(
                hall.bench(work), f"clock {seconds:+} s", partial(injection.jump, seconds=seconds), most or 4
            )
    for seconds in (FAR, -FAR):
        pool = hall.bench(Experiment("process", 2, 2))
        yield from sweep(pool, f"clock {seconds:+} s", partial(injection.jump, seconds=seconds), 1)


def disks(hall: Hall, most: Most) -> Iterator[Count]:
    """Real disks that are too small or read-only, and a limit on the size of files."""
    works = [Train(), TrainOver(), Experiment(size=8), Tune(), sample(".csv"), data_make(".npz")]
    for work in works:
        yield real.small_files(hall.bench(work), (0, 100, 1000, 5000))
    if why := real.why_no_mounts(hall.place):
        hall.say(f"real disks are left out: {why}")
        return
    for work in works:
        yield real.small_disks(hall.bench(work), (0, 4096, 16384))
        yield real.read_only_disk(hall.bench(work))


def twice(hall: Hall, most: Most) -> Iterator[Count]:
    """Two of everything at once."""
    pairs = [(Train(), together.OtherTrain()), (TrainOver(), TrainOver()), (Experiment(size=8), Experiment(size=8))]
    pairs += [(Tune(), Tune()), *((work, work) for work in (sample(".csv"), sample(".npz"), data_make(".npz")))]
    for work, rival in pairs:
        yield together.collide(hall.bench(work), rival, most or 10)


SECTIONS: dict[str, Section] = {
    "kills": kills,
    "executors": executors,
    "signals": signals,
    "full": full,
    "folders": folders,
    "clocks": clocks,
    "disks": disks,
    "twice": twice,
}


def blind_spots(hall: Hall) -> list[str]:
    """Name the broken works that the suite takes for sound ones: none, or the suite cannot be trusted."""
    found = [
        count
        for work in (InPlace(), LitterBug(), Forgetful())
        for count in sweep(hall.bench(work), "kill", injection.kill)
    ]
    found.append(together.collide(hall.bench(Unlocked()), Unlocked(), 1))
    lost = {count.work for count in found if count.lost}
    return sorted({count.work for count in found} - lost)
