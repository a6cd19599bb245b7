"""The public reads of real machines: from files at hand, and as their authors publish them."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurise.datasets import _download
from neurise.datasets._annealers import advantage as _advantage
from neurise.datasets.dwave import dwave

QUBITS, READS = 11, 6

DATA = Path(os.environ.get("NEURISE_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.parametrize(
    ("name", "sites", "reads"),
    [("advantage41_q263", 263, 2500), ("advantage41_q1312", 1312, 2500), ("advantage41_q2084", 2084, 20000)],
)
def test_real_reads_load_and_their_energies_recheck(
    monkeypatch: pytest.MonkeyPatch, name: str, sites: int, reads: int
) -> None:
    if not any(DATA.glob(f"dwave/{name}*.npz")):
        pytest.skip(f"{name} is not in NEURISE_DATA")
    monkeypatch.setenv("NEURISE_DATA", str(DATA))
    data = dwave(name, seed=3)
    assert data.space.sites == sites
    assert data.train.dtype == data.test.dtype == np.int8
    counts = [len(part) if weights is None else int(weights.sum()) for part, weights in
              ((data.train, data.weights), (data.test, data.test_weights))]  # fmt: skip
    assert counts == [reads - reads // 5, reads // 5]
    assert data.info["licence"] == "CC BY 4.0"
    assert len(data.info["qubit_ids"]) == sites
    # Sums of at most 14,503 couplers below 1, twice: 14503 · 7204 · 2^-53 · 2 = 2.3e-8, far below the 1e-6 that is asked.
    some = slice(0, 500)
    assert np.abs(data.energy(data.test[some]) - data.info["test_energies"][some]).max() <= 1e-6
    assert data.energy(data.train[:50]).mean() < 0  # low energies are likely, and ours is a law exp(-E)
    # Reads of every batch are on both sides: the machine drifts, so that a split by batch would not be fair.
    assert set(data.info["batch"].tolist()) == set(data.info["test_batch"].tolist())


def test_real_histogram_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(DATA.glob("dwave/dwave2x_q62*.npz")):
        pytest.skip("dwave2x_q62 is not in NEURISE_DATA")
    monkeypatch.setenv("NEURISE_DATA", str(DATA))
    data = dwave("dwave2x_q62", test_fraction=0.1)
    assert data.space.sites == 62
    assert (int(data.weights.sum()), int(data.test_weights.sum())) == (360_000, 40_000)


def publish(folder: Path, qubits: int, batches: int, *, numbers: bool) -> list[dict[str, Any]]:
    """Write an instance and its reads as their authors do: couplings as a pickled dictionary, keys and values of any type."""
    rng = np.random.default_rng(0)
    ends = np.array([(i, i + 1) for i in range(QUBITS - 1)] + [(0, 5), (2, 9)])
    strengths = rng.uniform(-1, 1, len(ends))
    labels = 10 * np.arange(QUBITS) + 7
    kind: Any = (np.int64, np.float64) if numbers else (int, float)
    pairs = [(kind[0](labels[i]), kind[0](labels[j])) for i, j in ends.tolist()]
    J = {pair: kind[1](value) for pair, value in zip(pairs, strengths, strict=True)}
    place = folder / "instances" / "4.1" / f"N_{qubits}_realization_1"
    place.mkdir(parents=True)
    np.savez(place / "J.npz", J=J)  # type: ignore[arg-type]
    place = folder / "results" / "forward" / "4.1" / f"N_{qubits}_realization_1"
    place.mkdir(parents=True)
    whole = []
    for number in range(1, batches + 1):
        spins = rng.choice(np.array([-1, 1], dtype=np.int8), (READS, QUBITS))
        part = {
            "solutions": spins,
            "energies": np.prod(spins[:, ends], axis=2, dtype=float) @ strengths,
            "num_occurrences": rng.integers(1, 9, READS),
        }
        np.savez_compressed(place / f"{number}.npz", timing={"qpu_access_time": 1.0}, **part)  # type: ignore[arg-type]
        whole.append(part)
    return whole


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that stands for the authors' repository, and an empty cache."""
    monkeypatch.delenv("NEURISE_DATA", raising=False)
    monkeypatch.setenv("NEURISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_advantage, "FOLDER", (tmp_path / "web").as_uri())
    monkeypatch.setattr(_advantage, "ADVANTAGE", {263: 2, QUBITS: 2})
    monkeypatch.setattr(_download, "PAUSE", 0.0)
    return tmp_path / "web"


@pytest.mark.parametrize("numbers", [False, True])
def test_published_reads_are_downloaded(published: Path, numbers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = publish(published, QUBITS, 2, numbers=numbers)
    # The package binds the function over the module of the same name.
    monkeypatch.setattr(sys.modules["neurise.datasets.dwave"], "NAMES", (f"advantage41_q{QUBITS}",))
    data = dwave(f"advantage41_q{QUBITS}", test_fraction=0)
    assert np.array_equal(data.train, np.concatenate([part["solutions"] for part in whole]))
    assert np.array_equal(data.weights, np.concatenate([part["num_occurrences"] for part in whole]))
    assert data.info["qubit_ids"] == tuple(range(7, 117, 10))
    assert data.info["batch"].tolist() == [1] * READS + [2] * READS
    assert data.info["chip"] == "Advantage_system4.1"
    for file in published.rglob("*.npz"):
        file.unlink()
    assert np.array_equal(dwave(f"advantage41_q{QUBITS}", test_fraction=0).train, data.train)  # from the cache


def test_a_published_file_cannot_run_anything(published: Path, tmp_path: Path) -> None:
    publish(published, 263, 2, numbers=False)

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "evil"),)

    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|O", "fortran_order": False, "shape": ()})
    with zipfile.ZipFile(published / "instances" / "4.1" / "N_263_realization_1" / "J.npz", "w") as archive:
        archive.writestr("J.npy", buffer.getvalue() + pickle.dumps(np.array(Evil(), dtype=object), protocol=4))
    with pytest.raises(ValueError, match=r"posix\.mkdir, which is never loaded"):
        dwave("advantage41_q263")
    assert not (tmp_path / "evil").exists()
    assert not list((tmp_path / "cache").rglob("J.npz*"))  # what is not right is not kept


def test_published_files_that_are_damaged(published: Path, tmp_path: Path) -> None:
    publish(published, 263, 2, numbers=False)
    with pytest.raises(ValueError, match="couples 11 qubits, and 263 were expected"):
        dwave("advantage41_q263")
    place = published / "instances" / "4.1" / "N_263_realization_1" / "J.npz"
    whole = place.read_bytes()
    for kept in (len(whole) // 2, 5, 0):
        (tmp_path / "cache" / "dwave" / "advantage41_q263" / "J.npz").unlink(missing_ok=True)
        place.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match="damaged"):
            dwave("advantage41_q263")
    np.savez(place, J=np.arange(3))
    with pytest.raises(ValueError, match="a single Python object was expected"):
        dwave("advantage41_q263")
    place.unlink()
    with pytest.raises(OSError, match=r"J\.npz"):
        dwave("advantage41_q263")
