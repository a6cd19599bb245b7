"""Where independent pieces of work run: here, in processes of this machine, on a Dask cluster, or through Slurm.

Each is a :class:`concurrent.futures.Executor`. Every one of them gives a piece of work one thread, so that the result does
not depend on where it was computed.
"""

from __future__ import annotations

import difflib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.queues import Queue
from typing import Any

from neurise._orphans import end_with_parent
from neurise.executors import _cluster
from neurise.executors._pool import Pool
from neurise.interrupts import SIGNALS

KINDS = ("serial", "process", "dask", "slurm")
OPTIONS = {"dask": _cluster.address, "slurm": _cluster.slurm_options}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class SerialExecutor(Executor):
    """Runs a piece of work when it is handed over. Ctrl-C interrupts it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it now; an error waits in the future, as it does with other executors."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def kind_of(spec: str) -> str:
    """Find which executor is meant, and check its options; near names are suggested for an unknown one."""
    kind = spec.partition(":")[0]
    rest = spec[len(kind) :]
    if kind in ("serial", "process") and not rest:
        return kind
    if kind in OPTIONS:
        OPTIONS[kind](spec)
        return kind
    close = difflib.get_close_matches(kind, KINDS, n=1)
    hint = f"did you mean {close[0]}?" if close else "there are: serial, process, dask://HOST:PORT and slurm"
    raise ValueError(f"unknown executor {spec!r}; {hint}")


@contextmanager
def opened(spec: str = "process", *, workers: int | None = None, device: str | None = None) -> Iterator[Pool]:
    """Start an executor, and end it with all that it started, also when it is left by an error or by Ctrl-C.

    ``spec`` is ``serial``, ``process``, ``dask://HOST:PORT`` or ``slurm``, which takes options of its jobs
    (``slurm:queue=gpu,gpus=1``). Both clusters take ``ca``, ``cert`` and ``key``, PEM files, and are then encrypted.

    ``workers`` are processes or jobs: without it as many as there are cores, or GPUs where work goes to a GPU. With several
    GPUs each process sees one.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be positive, got {workers}")
    kind = kind_of(spec)
    if kind == "serial":
        with _threads_restored():
            yield Pool(SerialExecutor(), lambda: 1, "serial")
    elif kind == "process":
        with _processes(workers, gpus(device)) as pool:
            yield pool
    elif kind == "dask":
        with _cluster.dask(spec) as pool:
            yield pool
    else:
        with _cluster.slurm(spec, workers or 1) as pool:
            yield pool


def use_one_thread() -> None:
    """Compute with one thread from now on. Libraries that are not loaded yet are told by the environment."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    import torch

    torch.set_num_threads(1)


def gpus(device: str | None) -> list[str]:
    """Identify the GPUs that work may be spread over; none where a device other than any GPU is named."""
    if device not in (None, "cuda"):
        return []
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = [name.strip() for name in visible.split(",") if name.strip()] if visible else [str(k) for k in range(found)]
    return names[:found]


@contextmanager
def _threads_restored() -> Iterator[None]:
    import torch

    threads, before = torch.get_num_threads(), {name: os.environ.get(name) for name in THREADS}
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@contextmanager
def _processes(workers: int | None, cards: list[str]) -> Iterator[Pool]:
    count = workers or len(cards) or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0])
    context = multiprocessing.get_context("spawn")
    places: Queue[str] | None = None
    if cards:
        places = context.Queue()
        for number in range(count):
            places.put(cards[number % len(cards)])
    others = set(multiprocessing.active_children())
    executor = Undisturbed(count, mp_context=context, initializer=prepare_worker, initargs=(places,))
    try:
        yield Pool(executor, lambda: count, f"{count} processes" if count > 1 else "1 process")
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        started = set(multiprocessing.active_children()) - others
        for child in started:
            child.kill()  # they leave the signals that ask to this process
        for child in started:
            child.join()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        if places is not None:
            places.close()


class Undisturbed(ProcessPoolExecutor):
    """Processes that never see Ctrl-C or SIGTERM, not even while they start: they inherit that both are blocked."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand a piece of work over, for which a process may be started."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def prepare_worker(places: Queue[str] | None) -> None:
    """Set up a process: it ends with its parent, leaves Ctrl-C and SIGTERM to it, and sees one GPU."""
    end_with_parent()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    if places is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = places.get()
    use_one_thread()
