"""Where independent pieces of work run: here, in processes of this machine, on a Dask cluster, or through Slurm.

Each is a :class:`concurrent.futures.Executor`. Every one of them gives a piece of work one thread, so that the result does
not depend on where it was computed.
"""

from __future__ import annotations

import difflib
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any
from urllib.parse import urlsplit

from neurise._orphans import end_with_parent
from neurise.interrupts import SIGNALS

KINDS = ("serial", "process", "dask", "slurm")
CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer."""
AHEAD = 8
"""Pieces that wait at each worker of a cluster, so that none is idle while a result travels."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SLURM_OPTIONS: Mapping[str, str] = {"memory": "4GB", "walltime": "24:00:00"}
"""What a job asks for, unless it is said otherwise: ``slurm:queue=gpu,gpus=1,walltime=02:00:00``."""


@dataclass(frozen=True)
class Pool:
    """An executor, how many pieces to hand to it at a time, and what to call it."""

    executor: Executor
    ahead: Callable[[], int]
    name: str


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
    """Find which executor is meant; near names are suggested for an unknown one."""
    kind = spec.partition(":")[0]
    rest = spec[len(kind) :]
    if (kind in ("serial", "process") and not rest) or kind == "slurm":
        return kind
    if kind == "dask":
        address(spec)
        return kind
    close = difflib.get_close_matches(kind, KINDS, n=1)
    hint = f"did you mean {close[0]}?" if close else "there are: serial, process, dask://HOST:PORT and slurm"
    raise ValueError(f"unknown executor {spec!r}; {hint}")


@contextmanager
def opened(spec: str = "process", *, workers: int | None = None, device: str | None = None) -> Iterator[Pool]:
    """Start an executor, and end it with all that it started, also when it is left by an error or by Ctrl-C.

    ``spec`` is ``serial``, ``process``, ``dask://HOST:PORT`` or ``slurm``, which takes options of its jobs
    (``slurm:queue=gpu,gpus=1``). ``workers`` are processes or jobs: without it as many as there are cores, or GPUs
    where work goes to a GPU. With several GPUs each process sees one.
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
        with _dask(address(spec)) as pool:
            yield pool
    else:
        with _slurm(_slurm_options(spec), workers or 1) as pool:
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


def address(spec: str) -> str:
    """Translate ``dask://HOST:PORT`` to the address that Dask knows."""
    parts = urlsplit(spec)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme != "dask" or not host or port is None or parts.path.strip("/"):
        raise ValueError(f"{spec!r} is no address of a Dask scheduler; it is written dask://HOST:PORT, PORT often 8786")
    return f"tcp://{f'[{host}]' if ':' in host else host}:{port}"


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
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=prepare_worker, initargs=(places,))
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


def prepare_worker(places: Queue[str] | None) -> None:
    """Set up a process: it ends with its parent, leaves Ctrl-C and SIGTERM to it, and sees one GPU."""
    end_with_parent()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    if places is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = places.get()
    use_one_thread()


@contextmanager
def _dask(place: str) -> Iterator[Pool]:
    client = _connected(place)
    try:
        yield _of_client(client, f"dask at {place}")
    finally:
        client.close()


def _connected(place: str) -> Any:
    distributed = _need("distributed")
    try:
        return distributed.Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {place}: tried to connect for {CONNECT_SECONDS:g} s ({error or type(error).__name__}); "
            "start one with `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`, or check host and port"
        ) from error


def _of_client(client: Any, name: str) -> Pool:
    def ahead() -> int:
        return AHEAD * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))

    # Not pure: a cell that failed by a lost file, say, must be computed again and not be remembered.
    return Pool(client.get_executor(pure=False), ahead, name)


@contextmanager
def _slurm(options: dict[str, str], jobs: int) -> Iterator[Pool]:
    distributed, jobqueue = _need("distributed"), _need("dask_jobqueue")
    if shutil.which("sbatch") is None:
        raise OSError(
            "sbatch is not found: the executor slurm hands its work to Slurm from a machine that can submit jobs"
        )
    chosen = {**SLURM_OPTIONS, **options}
    directives = [f"--gres=gpu:{chosen.pop('gpus')}"] if "gpus" in chosen else []
    with tempfile.TemporaryDirectory(prefix="neurise-slurm-") as scratch:
        cluster = jobqueue.SLURMCluster(
            cores=1,
            processes=1,
            python=sys.executable,
            job_extra_directives=directives,
            local_directory=scratch,
            log_directory=chosen.pop("logs", scratch),
            **chosen,
        )
        try:
            cluster.scale(jobs=jobs)
            with distributed.Client(cluster, set_as_default=False) as client:
                yield _of_client(client, f"slurm, {jobs} {'job' if jobs == 1 else 'jobs'}")
        finally:
            cluster.close()


def _slurm_options(spec: str) -> dict[str, str]:
    text = spec.partition(":")[2]
    pairs = [part.partition("=") for part in text.split(",") if part]
    known = ("queue", "account", "memory", "walltime", "gpus", "interface", "logs")
    for name, equals, value in pairs:
        if not equals or not value or name not in known:
            raise ValueError(
                f"{spec!r}: options of slurm are written slurm:name=value,name=value, names {', '.join(known)}"
            )
    return {name: value for name, _, value in pairs}


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); install it with: pip install 'neurise[cluster]'"
        ) from error
