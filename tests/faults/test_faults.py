"""A small part of the fault suite: some events of some works. ``make test-faults`` tries all of them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pytest

from faults import injection, real, together
from faults.grids import Experiment, Tune
from faults.injection import Fault
from faults.plan import FAR, Hall, blind_spots
from faults.runs import launcher
from faults.training import Train
from faults.trials import Count, spread, sweep
from faults.works import Save, Work, data_make, sample

pytestmark = pytest.mark.slow

WORKS = (Train(), Save(), Experiment(size=2), Tune(), sample(".csv"), data_make(".npz"))
FAULTS: dict[str, tuple[Callable[[int], Fault], int]] = {
    "kill": (injection.kill, 3),
    "disk full": (injection.disk_full, 2),
    "SIGTERM": (partial(injection.told, number=signal.SIGTERM), 1),
    "read-only": (injection.read_only, 1),
    "folder moved away": (injection.vanish, 1),
    "clock forth": (partial(injection.jump, seconds=FAR), 1),
    "clock back": (partial(injection.jump, seconds=-FAR), 1),
}


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    place = tmp_path_factory.mktemp("faults")
    library = injection.library(place)
    if library is None:
        pytest.skip("faults are injected on Linux, by a library that a C compiler makes; there is none")
    with launcher(library, place) as ready:
        yield Hall(ready, place)


def losses(counts: Iterable[Count]) -> list[str]:
    return [f"{count.work}, {count.fault}, {count.event}: {loss}" for count in counts for loss in count.losses]


def test_works_that_lose_something_are_found(hall: Hall) -> None:
    assert blind_spots(hall) == []


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_nothing_is_lost(work: Work, hall: Hall) -> None:
    bench = hall.bench(work)
    assert losses(count for name, (fault, most) in FAULTS.items() for count in sweep(bench, name, fault, most)) == []
    assert losses([real.small_files(bench, (100,))]) == []


@pytest.mark.parametrize(
    ("work", "rival"),
    [(Train(), together.OtherTrain()), (Experiment(size=2), Experiment(size=2)), (Tune(), Tune())],
    ids=["train", "experiment", "tune"],
)
def test_two_at_once_lose_nothing(work: Work, rival: Work, hall: Hall) -> None:
    assert losses([together.collide(hall.bench(work), rival, 2)]) == []


def test_events_are_spread_evenly() -> None:
    assert list(spread(5, None)) == [1, 2, 3, 4, 5]
    assert list(spread(101, 3)) == [1, 51, 101]
    assert list(spread(9, 1)) == [1]
