"""A real Dask cluster with certificates: those who have none of its authority are not heard."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import certificates
import pytest
from fake_experiments import Fake
from local_dask import cluster

from neurise import executors
from neurise.executors import _cluster
from neurise.experiments import grid

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
pytest.importorskip("distributed")


@pytest.mark.slow
def test_cells_run_over_an_encrypted_connection_and_others_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, others = (certificates.made(tmp_path / name) for name in ("ours", "others"))
    with cluster(tmp_path, 1, "--protocol", "tls", *certificates.as_words(ours)) as started:
        spec = f"{started.address},{certificates.as_options(ours)}"
        with executors.opened(spec) as pool:
            assert pool.name.startswith("dask at tls://")
            assert pool.executor.submit(os.getpid).result() == started.workers[0].pid
        summary = grid.run(Fake(trials=1, size=2), "smoke", tmp_path / "r.jsonl", executor=spec)
        assert (summary.done, summary.failed) == (4, 0)

        monkeypatch.setattr(_cluster, "CONNECT_SECONDS", 3.0)
        for wrong in (started.address, f"{started.address},{certificates.as_options(others)}"):
            with pytest.raises(ConnectionError, match="started with certificates"), executors.opened(wrong):
                pass


def test_files_that_are_no_certificates_are_refused_at_once(tmp_path: Path) -> None:
    files = certificates.made(tmp_path / "pem")
    assert executors.kind_of(f"dask://here:1,{certificates.as_options(files)}") == "dask"
    assert _cluster.slurm_options(f"slurm:{certificates.as_options(files)}")["ca"] == str(files["ca"])
    swapped = files | {"key": certificates.made(tmp_path / "other")["key"]}
    poem, locked = tmp_path / "poem.txt", tmp_path / "locked.key"
    poem.write_text("roses are red\n", encoding="utf-8")
    encrypt = ["openssl", "ec", "-aes256", "-passout", "pass:word", "-in", str(files["key"]), "-out", str(locked)]
    subprocess.run(encrypt, check=True, capture_output=True)
    for wrong in (swapped, files | {"ca": poem}, files | {"cert": poem}, files | {"key": locked}):
        with pytest.raises(ValueError, match="must be PEM certificates, and key the key of cert without a password"):
            executors.kind_of(f"dask://here:1,{certificates.as_options(wrong)}")


def test_jobs_of_slurm_are_given_the_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobqueue, distributed = pytest.importorskip("dask_jobqueue"), pytest.importorskip("distributed")
    files = certificates.made(tmp_path / "pem")
    options = _cluster.slurm_options(f"slurm:{certificates.as_options(files)}")
    security = _cluster._tls.security(distributed, _cluster.tls_part(options))
    with jobqueue.SLURMCluster(
        **_cluster.job_settings(options, str(tmp_path)), security=security, scheduler_options={"dashboard": False}
    ) as started:
        assert started.scheduler_address.startswith("tls://")
        script = started.job_script()
    for word, path in zip(("--tls-ca-file", "--tls-cert", "--tls-key"), files.values(), strict=True):
        assert f"{word} {path}" in script
