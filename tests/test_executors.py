"""Executors: one thread each, wherever work runs, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
from fake_work import facts, linger, meet

from neurise import executors
from neurise.executors import _cluster


def fail() -> None:
    raise ArithmeticError("as it must")


def test_serial_work_is_done_when_it_is_handed_over() -> None:
    torch.set_num_threads(2)
    try:
        with executors.opened("serial") as pool:
            assert pool.executor.submit(os.getpid).done()
            assert pool.executor.submit(fail).exception().args == ("as it must",)  # type: ignore[union-attr]
            executors.use_one_thread()
            assert pool.executor.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


@pytest.mark.slow
def test_each_process_has_one_thread_and_one_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(executors, "gpus", lambda device: ["card-0", "card-1"])
    with executors.opened("process", workers=3) as pool:
        found = [future.result() for future in [pool.executor.submit(meet, tmp_path, 3) for _ in range(3)]]
    assert {threads for threads, _, _ in found} == {1}
    assert len({process for _, _, process in found}) == 3  # all were busy at once
    assert sorted(str(card) for _, card, _ in found) == ["card-0", "card-0", "card-1"]


def test_there_is_one_process_for_each_gpu_unless_more_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "gpus", lambda device: ["card-0", "card-1", "card-2", "card-3", "card-4"])
    with executors.opened("process") as pool:  # no process is started before there is work
        assert pool.ahead() == 5


@pytest.mark.parametrize(
    ("visible", "count", "device", "found"),
    [
        (None, 3, None, ["0", "1", "2"]),
        ("2, 5", 2, "cuda", ["2", "5"]),
        (None, 0, None, []),
        (None, 3, "cpu", []),
        (None, 3, "cuda:1", []),
    ],
)
def test_gpus_are_those_that_may_be_seen(
    visible: str | None, count: int, device: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert executors.gpus(device) == found


def test_a_process_has_one_thread_and_one_gpu_and_an_error_leaves_none_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before, begun, ended = set(multiprocessing.active_children()), tmp_path / "begun", tmp_path / "ended"
    monkeypatch.setattr(executors, "gpus", lambda device: ["card-0", "card-1"])

    def interrupted() -> None:
        with executors.opened("process", workers=1) as pool:
            threads, card, process = pool.executor.submit(facts).result()
            assert (threads, card) == (1, "card-0")
            assert process != os.getpid()
            work = pool.executor.submit(linger, begun, ended, 60.0)
            while not begun.exists():
                assert not work.done()
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert set(multiprocessing.active_children()) <= before
    assert not ended.exists()  # it was ended, and not waited for


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("serail", "unknown executor 'serail'; did you mean serial"),
        ("threads", "there are: serial, process, dask://HOST:PORT and slurm"),
        ("process:4", "unknown executor 'process:4'"),
        ("dask", "'dask' is no address of a Dask scheduler; it is written dask://HOST:PORT"),
        ("dask://here", "'dask://here' is no address"),
        ("dask://here:many", "'dask://here:many' is no address"),
        ("slurm:queue", "options are written slurm:name=value"),
        ("slurm:colour=red", "names queue, account"),
        ("slurm:queue=gpu,queue=cpu", "queue was given twice, as 'gpu' and as 'cpu'"),
        ("slurm:queue=gpu\n#SBATCH --wrap=evil", "queue must be the name of a partition"),
        ("slurm:queue=a b", "queue must be the name of a partition"),
        ("slurm:queue=$(id)", "queue must be the name of a partition"),
        ("slurm:account='x'", "account must be the name of an account"),
        ("slurm:account=--uid=0", "account must be the name of an account"),
        ("slurm:memory=much", "memory must be an amount with its unit, as 500MB"),
        ("slurm:memory=-4GB", "memory must be an amount"),
        ("slurm:memory=0GB", "memory must be an amount"),
        ("slurm:memory=4GB\n", "memory must be an amount"),
        ("slurm:walltime=tomorrow", "walltime must be a time as Slurm writes it"),
        ("slurm:walltime=1:2:3:4", "walltime must be a time"),
        ("slurm:walltime=00:00:00", "walltime must be a time"),
        ("slurm:gpus=0", "gpus must be a number of GPUs"),
        ("slurm:gpus=two", "gpus must be a number of GPUs"),
        ("slurm:gpus=1\nrm -rf x", "gpus must be a number of GPUs"),
        ("slurm:interface=ib0;id", "interface must be the name of a network interface"),
        ("slurm:logs=/tmp/a b", "logs must be a folder"),
        ('slurm:logs=/tmp/"', "logs must be a folder"),
        ("dask://here:1,colour=red", "names ca, cert, key"),
        ("dask://here:1,ca=absent.pem", "needs ca, cert and key; cert and key missing"),
        ("dask://here:1,ca=absent.pem,cert=a,key=b", "ca must be a PEM file; there is none at .*absent.pem"),
        ("dask://name:word@here:1", "is no address"),
    ],
)
def test_wrong_names_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):  # before anything starts
        executors.kind_of(spec)


@pytest.mark.parametrize(
    "options",
    [
        "",
        "queue=gpu_a100,account=phys-12.x,memory=16GB,walltime=04:00:00,gpus=1,interface=ib0,logs=/tmp/logs-1",
        "memory=1.5TiB,walltime=2-12:30,gpus=a100:2",
        "memory=500MB,walltime=90",
        "walltime=7-00:00:00",
    ],
)
def test_what_slurm_takes_is_taken_and_is_a_line_of_the_job_script_each(options: str, tmp_path: Path) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    chosen = _cluster.slurm_options(f"slurm:{options}")
    assert ",".join(f"{name}={value}" for name, value in chosen.items()) == options
    settings = _cluster.job_settings(chosen, str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = jobqueue.slurm.SLURMJob("tcp://here:1", "name", **settings).job_script()
    lines = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    for option, flag in (("queue", "-p"), ("account", "-A"), ("walltime", "-t")):
        if option in chosen:
            assert f"#SBATCH {flag} {chosen[option]}" in lines
    if "gpus" in chosen:
        assert f"#SBATCH --gres=gpu:{chosen['gpus']}" in lines


def test_too_few_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="workers must be positive, got 0"), executors.opened("process", workers=0):
        pass


def test_addresses_are_those_of_dask() -> None:
    assert _cluster.address("dask://head:8786") == ("tcp://head:8786", {})
    assert _cluster.address("dask://[::1]:8786") == ("tcp://[::1]:8786", {})


def test_a_scheduler_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(_cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as taken:  # bound and not listening: whoever connects is refused
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        expected = rf"no Dask scheduler answers at tcp://127.0.0.1:{port}: tried to connect for 0.5 s"
        with pytest.raises(ConnectionError, match=expected), executors.opened(f"dask://127.0.0.1:{port}"):
            pass


def test_slurm_without_slurm_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="sbatch is not found"), executors.opened("slurm"):
        pass


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"neurise\[cluster\]"), executors.opened("dask://here:1"):
        pass


def test_workers_begin_with_signals_blocked() -> None:
    """A process that starts while Ctrl-C is pressed must not end in a traceback: what it inherits counts, not what it sets."""
    context = multiprocessing.get_context("spawn")
    with executors.Undisturbed(1, mp_context=context) as pool:  # without the initializer, which blocks them too
        blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
    assert {signal.SIGINT, signal.SIGTERM} <= set(blocked)
    assert not {signal.SIGINT, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, ())
