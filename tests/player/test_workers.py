"""Work in turns: nobody waits for another to finish, and what nobody waits for ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from neurise.player import workers
from neurise.player.workers import END, MOST_JOBS, MOST_WAITING, Busy, Workers

PATIENCE = 60


@pytest.fixture
def crew() -> Iterator[Workers]:
    made = Workers(threads=1)
    yield made
    made.end()


async def everything(job: Any) -> list[Any]:
    found = []
    while (result := await job.next(PATIENCE)) is not END:
        found.append(result)
    return found


def test_results_come_in_order_and_end(crew: Workers) -> None:
    async def run() -> list[Any]:
        return await everything(crew.begin("one", iter(range(200))))

    assert asyncio.run(run()) == list(range(200))
    assert crew.running == 0


def test_clients_take_turns(crew: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with many long jobs and one with a short one: the short one waits for a slice of each client, not for all."""
    monkeypatch.setattr(workers, "SLICE", 0.0)
    order: list[str] = []

    def steps(name: str, count: int) -> Iterator[int]:
        for number in range(count):
            order.append(name)
            yield number

    async def run() -> None:
        with crew.changed:  # nothing begins before all is queued
            jobs = [crew.begin("greedy", steps("greedy", 20)) for _ in range(3)]
            jobs += [crew.begin(f"other {k}", steps(f"other {k}", 3)) for k in range(9)]
        await asyncio.gather(*map(everything, jobs))

    asyncio.run(run())
    for k in range(9):
        last = max(place for place, name in enumerate(order) if name == f"other {k}")
        assert order[: last + 1].count("greedy") <= 4  # one slice a round, of four rounds


def test_what_goes_wrong_is_told_and_the_others_go_on(crew: Workers) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("a reason")

    async def run() -> list[Any]:
        with pytest.raises(ValueError, match="a reason"):
            await everything(crew.begin("one", broken()))
        return await everything(crew.begin("one", iter("ab")))

    assert asyncio.run(run()) == ["a", "b"]
    assert crew.running == 0


def test_work_that_nobody_fetches_pauses_and_work_that_is_cancelled_ends(crew: Workers) -> None:
    made, closed = [], []

    def endless() -> Iterator[int]:
        try:
            while True:
                made.append(0)
                yield len(made)
        finally:
            closed.append(True)

    async def run() -> None:
        job = crew.begin("one", endless())
        while not job.parked:
            await asyncio.sleep(0.01)
        assert len(made) == MOST_WAITING
        for _ in range(MOST_WAITING):  # fetched, it goes on
            await job.next(PATIENCE)
        assert await job.next(PATIENCE) == MOST_WAITING + 1
        job.cancel()
        end = time.monotonic() + PATIENCE
        while crew.running:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)

    asyncio.run(run())
    assert closed == [True]


def test_a_client_may_not_ask_for_everything_at_once(crew: Workers) -> None:
    async def run() -> None:
        jobs = [crew.begin("one", iter(lambda: 0, 1)) for _ in range(MOST_JOBS)]
        with pytest.raises(Busy, match="wait for one"):
            crew.begin("one", iter("a"))
        assert await everything(crew.begin("two", iter("a"))) == ["a"]
        for job in jobs:
            job.cancel()

    asyncio.run(run())
