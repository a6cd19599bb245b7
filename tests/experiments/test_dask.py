"""Cells on a real Dask cluster: the same numbers as at home, also when a worker is killed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from fake_experiments import Fake
from local_dask import cluster

from neurise import experiments
from neurise.experiments import grid, store

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
pytest.importorskip("distributed")


def test_metrics_are_identical_under_every_executor(tmp_path: Path) -> None:
    curves = experiments.find("ising_curves")
    with cluster(tmp_path, 2) as started:
        found = {
            executor: grid.run(curves, "smoke", tmp_path / f"{place}.jsonl", executor=executor, workers=2)
            for place, executor in enumerate(("serial", "process", started.address))
        }
    serial, *others = ([row["metrics"] for row in summary.rows] for summary in found.values())
    assert len(serial) == 2 * len(curves.methods)  # rows of two sizes
    for other in others:
        assert other == serial


def test_a_killed_worker_loses_no_cell_and_repeats_none(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    slow = Fake(trials=4, size=4, wait=0.2)
    with cluster(tmp_path, 2) as started:

        def kill_one() -> None:
            while not results.exists() or len(results.read_bytes().splitlines()) < 4:
                time.sleep(0.01)
            started.workers[0].kill()

        killer = threading.Thread(target=kill_one)
        killer.start()
        summary = grid.run(slow, "smoke", results, executor=started.address)
        killer.join()
        assert started.workers[0].wait() == -9
    assert (summary.cells, summary.done, summary.failed) == (32, 32, 0)
    contents = store.read(results)
    assert len(results.read_bytes().splitlines()) == len({row["key"] for row in contents.rows}) == 32
    assert {row["metrics"]["threads"] for row in contents.rows} == {1}
