"""Work in short slices: clients take turns, so that none waits for another to finish."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

SLICE = 0.05
"""Seconds that a job may go on, once it was begun, before it is another client's turn."""
MOST_JOBS = 6
"""Jobs of one client at a time."""
MOST_WAITING = 32
"""Results that a client has not fetched before its job pauses."""
LAST_SLICE = 5.0
"""Seconds that the last slices may take when everything ends."""
END = object()


class Busy(RuntimeError):
    """A client asks for more at a time than it may."""


class Job:
    """A generator whose results are fetched by one client."""

    def __init__(self, client: str, work: Iterator[Any], workers: Workers) -> None:
        self.client, self.work, self.workers = client, work, workers
        self.loop, self.results = asyncio.get_running_loop(), asyncio.Queue[Any]()
        self.waiting, self.cancelled, self.parked = 0, False, False

    async def next(self, seconds: float) -> Any:
        """Return the next result, END after the last; raise what the work raised, and TimeoutError if nothing has come."""
        found = await asyncio.wait_for(self.results.get(), seconds)
        with self.workers.changed:
            self.waiting -= 1
            go_on = self.parked and self.waiting < MOST_WAITING // 2
        if go_on:
            self.workers.wake(self)
        if isinstance(found, BaseException):
            raise found
        return found

    def cancel(self) -> None:
        """Let the work end with the step that is being made."""
        with self.workers.changed:
            self.cancelled, parked = True, self.parked
        if parked:
            self.workers.wake(self)

    def give(self, result: Any) -> None:
        """Hand a result over, from any thread."""
        with self.workers.changed:
            self.waiting += 1
        try:
            self.loop.call_soon_threadsafe(self.results.put_nowait, result)
        except RuntimeError:  # the server has ended
            self.cancelled = True


class Workers:
    """Threads that advance jobs in turns: one slice of one job of each client, and so on."""

    def __init__(self, threads: int = 2) -> None:
        self.changed = threading.Condition()
        self.turns = deque[str]()  # clients, the next one first
        self.jobs = dict[str, deque[Job]]()
        self.count = dict[str, int]()
        self.ended = False
        self.threads = [threading.Thread(target=self._run, daemon=True, name=f"play-{k}") for k in range(threads)]
        for thread in self.threads:
            thread.start()

    def begin(self, client: str, work: Iterator[Any]) -> Job:
        """Queue a job of a client."""
        with self.changed:
            if self.count.get(client, 0) >= MOST_JOBS:
                raise Busy(f"{MOST_JOBS} things are being computed for this page already; wait for one of them")
            self.count[client] = self.count.get(client, 0) + 1
        job = Job(client, work, self)
        self._queue(job)
        return job

    @property
    def running(self) -> int:
        """How many jobs there are."""
        with self.changed:
            return sum(self.count.values())

    @property
    def working(self) -> bool:
        """Whether a thread is alive; after the end, one that is still inside a long computation."""
        return any(thread.is_alive() for thread in self.threads)

    def wake(self, job: Job) -> None:
        """Go on with a job that paused."""
        job.parked = False
        self._queue(job)

    def end(self) -> None:
        """Let the threads end."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        for thread in self.threads:  # a thread inside torch must not outlive the interpreter
            thread.join(LAST_SLICE)

    def _queue(self, job: Job) -> None:
        with self.changed:
            if job.client not in self.jobs:
                self.jobs[job.client] = deque()
                self.turns.append(job.client)
            self.jobs[job.client].append(job)
            self.changed.notify()

    def _take(self) -> Job | None:
        with self.changed:
            while not self.turns and not self.ended:
                self.changed.wait()
            if self.ended:
                return None
            client = self.turns.popleft()
            job = self.jobs[client].popleft()
            if self.jobs[client]:
                self.turns.append(client)
            else:
                del self.jobs[client]
            return job

    def _run(self) -> None:
        while (job := self._take()) is not None:
            if self._advance(job):
                self._queue(job)

    def _advance(self, job: Job) -> bool:
        """Make one slice of a job; return whether it is to go on now."""
        until = time.monotonic() + SLICE
        try:
            while not job.cancelled:
                job.give(next(job.work))
                with self.changed:
                    job.parked = job.waiting >= MOST_WAITING and not job.cancelled
                if job.parked:
                    return False
                if time.monotonic() >= until:
                    return True
        except StopIteration:
            job.give(END)
        except Exception as error:
            job.give(error)
        else:
            getattr(job.work, "close", lambda: None)()
        with self.changed:
            self.count[job.client] -= 1
            if not self.count[job.client]:
                del self.count[job.client]
        return False
