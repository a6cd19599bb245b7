"""Work on other machines: a Dask cluster that is there, or one of Slurm jobs that is started and ended here."""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from neurise.executors import _tls
from neurise.executors._options import SLURM_OPTIONS, TLS_OPTIONS, parsed
from neurise.executors._pool import Pool

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer."""
AHEAD = 8
"""Pieces that wait at each worker of a cluster, so that none is idle while a result travels."""
SLURM_DEFAULTS: Mapping[str, str] = {"memory": "4GB", "walltime": "24:00:00"}
"""What a job asks for, unless it is said otherwise: ``slurm:queue=gpu,gpus=1,walltime=02:00:00``."""


def address(spec: str) -> tuple[str, dict[str, str]]:
    """Translate ``dask://HOST:PORT,ca=FILE,cert=FILE,key=FILE`` to the address that Dask knows, and its PEM files."""
    place, _, text = spec.partition(",")
    parts = urlsplit(place)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme != "dask" or not host or port is None or parts.path.strip("/") or parts.query or parts.username:
        raise ValueError(f"{spec!r} is no address of a Dask scheduler; it is written dask://HOST:PORT, PORT often 8786")
    written = "dask://HOST:PORT,ca=FILE,cert=FILE,key=FILE"
    given = _tls.files(spec, parsed(spec, text, TLS_OPTIONS, written))
    return f"{'tls' if given else 'tcp'}://{f'[{host}]' if ':' in host else host}:{port}", given


def slurm_options(spec: str) -> dict[str, str]:
    """Read the options of ``slurm:name=value,name=value``."""
    options = parsed(spec, spec.partition(":")[2], SLURM_OPTIONS, "slurm:name=value,name=value")
    return options | _tls.files(spec, options)


@contextmanager
def dask(spec: str) -> Iterator[Pool]:
    """Connect to a scheduler."""
    place, given = address(spec)
    client = _connected(place, given)
    try:
        yield _of_client(client, f"dask at {place}")
    finally:
        client.close()


def _connected(place: str, given: Mapping[str, str]) -> Any:
    distributed = _need("distributed")
    try:
        return distributed.Client(
            place, timeout=CONNECT_SECONDS, set_as_default=False, security=_tls.security(distributed, given)
        )
    except (OSError, TimeoutError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {place}: tried to connect for {CONNECT_SECONDS:g} s ({error or type(error).__name__}); "
            "start one with `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`, or check host and port; "
            "one that was started with certificates wants dask://HOST:PORT,ca=FILE,cert=FILE,key=FILE"
        ) from error


def _of_client(client: Any, name: str) -> Pool:
    def ahead() -> int:
        return AHEAD * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))

    # Not pure: a cell that failed by a lost file, say, must be computed again and not be remembered.
    return Pool(client.get_executor(pure=False), ahead, name)


@contextmanager
def slurm(spec: str, jobs: int) -> Iterator[Pool]:
    """Submit jobs, and cancel them at the end."""
    options = slurm_options(spec)
    distributed, jobqueue = _need("distributed"), _need("dask_jobqueue")
    if shutil.which("sbatch") is None:
        raise OSError(
            "sbatch is not found: the executor slurm hands its work to Slurm from a machine that can submit jobs"
        )
    with tempfile.TemporaryDirectory(prefix="neurise-slurm-") as scratch:
        cluster = jobqueue.SLURMCluster(
            **job_settings(options, scratch), security=_tls.security(distributed, tls_part(options))
        )
        try:
            cluster.scale(jobs=jobs)
            with distributed.Client(cluster, set_as_default=False) as client:
                yield _of_client(client, f"slurm, {jobs} {'job' if jobs == 1 else 'jobs'}")
        finally:
            cluster.close()


def tls_part(options: Mapping[str, str]) -> dict[str, str]:
    """Return the PEM files among the options."""
    return {name: options[name] for name in TLS_OPTIONS if name in options}


def job_settings(options: Mapping[str, str], scratch: str) -> dict[str, Any]:
    """Say what dask-jobqueue is to write into a job script."""
    chosen = {name: value for name, value in {**SLURM_DEFAULTS, **options}.items() if name not in TLS_OPTIONS}
    directives = [f"--gres=gpu:{chosen.pop('gpus')}"] if "gpus" in chosen else []
    return {
        "cores": 1,
        "processes": 1,
        "python": sys.executable,
        "job_extra_directives": directives,
        "local_directory": scratch,
        "log_directory": chosen.pop("logs", scratch),
        **chosen,
    }


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); install it with: pip install 'neurise[cluster]'"
        ) from error
