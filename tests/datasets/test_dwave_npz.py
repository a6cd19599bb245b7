"""Reads in ``.npz`` files, in every layout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neurise.datasets.dwave import dwave
from neurise.datasets.files import files, holds_reads

QUBITS, READS = 11, 6  # 11 bits leave five of two bytes unused


def instance(seed: int = 0) -> dict[str, Any]:
    """A random problem with reads of it; energies by explicit loops."""
    rng = np.random.default_rng(seed)
    edges = np.array([(i, i + 1) for i in range(QUBITS - 1)] + [(0, 5), (2, 9)])
    J, h = rng.uniform(-1, 1, len(edges)), rng.uniform(-1, 1, QUBITS)
    spins = rng.choice(np.array([-1, 1], dtype=np.int8), (READS, QUBITS))
    energies = [
        sum(float(c) * row[i] * row[j] for (i, j), c in zip(edges.tolist(), J, strict=True)) + sum(map(float, h * row))
        for row in spins.tolist()
    ]
    return {
        "spins": spins,
        "edges": edges,
        "J": J,
        "h": h,
        "energies": np.array(energies),
        "qubit_ids": np.arange(30, 30 + QUBITS),
        "batch": np.arange(READS) % 3,
        "num_occurrences": rng.integers(1, 9, READS),
        "chip": np.array("Advantage_system4.1"),
    }


def packed(arrays: dict[str, Any], key: str = "samples_packed") -> dict[str, Any]:
    rest = {name: values for name, values in arrays.items() if name != "spins"}
    return {key: np.packbits(arrays["spins"] > 0, axis=1), "n_qubits": np.int32(QUBITS), **rest}


def saved(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("layout", ["spins", "bits", "packed"])
def test_all_layouts_say_the_same(tmp_path: Path, layout: str) -> None:
    arrays = instance()
    spins = arrays["spins"].copy()
    if layout == "bits":
        arrays["samples"] = (arrays.pop("spins") + 1) // 2
    if layout == "packed":
        arrays = packed(arrays)
    data = dwave(saved(tmp_path / "reads.npz", arrays), test_fraction=0)
    assert data.train.dtype == np.int8
    assert np.array_equal(data.train, spins)
    assert data.info["qubit_ids"] == tuple(range(30, 41))
    assert data.info["chip"] == "Advantage_system4.1"
    assert np.array_equal(data.weights, arrays["num_occurrences"])
    assert np.array_equal(data.info["energies"], arrays["energies"])
    assert np.array_equal(data.info["batch"], arrays["batch"])
    assert np.array_equal(data.couplings, -arrays["J"])
    assert np.array_equal(data.fields, -arrays["h"])
    assert np.array_equal(data.edges, arrays["edges"])
    # 23 terms below 1: 23 roundings of at most 23 · 2^-53 on each side.
    assert np.abs(data.energy(spins) - arrays["energies"]).max() <= 2 * 23 * 23 * 2**-53


def test_a_histogram(tmp_path: Path) -> None:
    whole = packed(instance(), "configs_packed")
    arrays = {
        "configs_packed": whole["configs_packed"],
        "counts": whole["num_occurrences"],
        "n_qubits": np.int32(QUBITS),
    }
    data = dwave(saved(tmp_path / "histogram.npz", arrays), test_fraction=0)
    assert np.array_equal(data.train, instance()["spins"])
    assert np.array_equal(data.weights, arrays["counts"])
    assert data.couplings is None
    with pytest.raises(ValueError, match="no known energy"):
        data.energy(data.train)


def test_energies_that_are_missing_are_computed(tmp_path: Path) -> None:
    arrays = instance()
    energies = arrays.pop("energies")
    data = dwave(saved(tmp_path / "reads.npz", arrays), test_fraction=0)
    np.testing.assert_allclose(data.info["energies"], energies, rtol=0, atol=2 * 23 * 23 * 2**-53)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_packing_round_trip(tmp_path: Path, sites: int, n: int, seed: int) -> None:
    spins = np.random.default_rng(seed).choice(np.array([-1, 1]), (n, sites))
    arrays = {"samples_packed": np.packbits(spins > 0, axis=1), "n_qubits": sites}
    assert np.array_equal(dwave(saved(tmp_path / "reads.npz", arrays), test_fraction=0).train, spins)


def energy_turned(arrays: dict[str, Any]) -> dict[str, Any]:
    return {"energies": -arrays["energies"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: {"energies": a["energies"] + np.eye(READS)[3]}, ["row 3", "1 of 6 rows"]),
        (energy_turned, ["row 0", "all signs are turned"]),
        (lambda a: {"energies": a["energies"][:-1]}, ["energies", "(5,)", "6 rows"]),
        (lambda a: {"energies": a["energies"] * np.nan}, ["energies", "nan", "row 0"]),
        (lambda a: {"num_occurrences": np.array([1, 2, -3, 1, 1, 1])}, ["num_occurrences", "-3", "row 2"]),
        (lambda a: {"num_occurrences": np.array([1, 2, 1, 1.5, 1, 1])}, ["num_occurrences", "1.5", "row 3"]),
        (lambda a: {"num_occurrences": np.zeros(READS, dtype=int)}, ["0 reads"]),
        (lambda a: {"counts": a["num_occurrences"]}, ["num_occurrences, counts"]),
        (lambda a: {"spins": a["spins"] * 3}, ["row 0, column 0 (variable 30)", "-1 or 1"]),
        (lambda a: {"spins": np.where(np.eye(READS, QUBITS), 0, -1)}, ["row 0, column 1 (variable 31)", "0 or 1"]),
        (lambda a: {"spins": a["spins"][0]}, ["shape (11,)"]),
        (lambda a: {"spins": a["spins"][:0]}, ["no reads"]),
        (lambda a: {"qubit_ids": np.arange(10)}, ["qubit_ids", "(10,)"]),
        (lambda a: {"qubit_ids": np.zeros(QUBITS, dtype=int)}, ["the variable 0", "columns 0 and 1"]),
        (lambda a: {"edges": a["edges"] + 1}, ["coupler 9", "[10, 11]", "0 … 10"]),
        (lambda a: {"edges": a["edges"] * 0}, ["coupler 0", "30 to itself"]),
        (lambda a: {"edges": a["edges"] + 0.5}, ["couplers", "float64"]),
        (lambda a: {"J": a["J"][:-1]}, ["J", "(11,)", "12 couplers"]),
        (lambda a: {"J": a["J"] * np.inf}, ["J has", "inf", "position 0"]),
        (lambda a: {"h": a["h"][:-1]}, ["h", "(10,)", "11 variables"]),
        (lambda a: {"J": None}, ["edges and no J"]),
        (lambda a: {"spins": None}, ["no reads", "samples_packed"]),
        (lambda a: {"Energies": a["energies"]}, ["Energies", "not known"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: Any, words: list[str]) -> None:
    arrays = instance()
    arrays = {key: values for key, values in (arrays | change(arrays)).items() if values is not None}
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        dwave(saved(tmp_path / "wrong.npz", arrays))
    for word in ["wrong.npz", *words]:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_qubits": None}, "no n_qubits"),
        ({"n_qubits": np.int32(17)}, "17 qubits take 3 columns"),
        ({"n_qubits": np.int32(9)}, "bits beyond its 9 qubits"),
        ({"n_qubits": np.int32(0)}, "n_qubits is 0"),
        ({"samples_packed": np.zeros((READS, 2), dtype=np.int64)}, "int64"),
    ],
)
def test_packed_bits_that_do_not_fit(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    rows = {"spins": instance()["spins"]}
    arrays = {key: values for key, values in (packed(rows) | change).items() if values is not None}
    with pytest.raises(ValueError, match=words):
        dwave(saved(tmp_path / "wrong.npz", arrays))


@pytest.mark.parametrize("kept", [0, 10, 0.3, 0.9])
def test_truncated_files(tmp_path: Path, kept: float) -> None:
    path = saved(tmp_path / "short.npz", instance())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept if kept >= 1 else kept * len(whole))])
    with pytest.raises(ValueError, match=r"short\.npz is damaged, cut short"):
        dwave(path)


def test_python_objects_are_never_read(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, samples=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match=r"objects\.npz holds Python objects, which are never read"):
        dwave(path)


@pytest.mark.parametrize("rows", ["samples", "spins", "configs"])
def test_a_file_of_reads_is_known_by_its_names(tmp_path: Path, rows: str) -> None:
    reads = np.random.default_rng(0).choice([-1, 1], (50, 3)).astype(np.int8)
    path = tmp_path / "reads.npz"
    np.savez(path, **{rows: reads}, num_occurrences=np.ones(50, int), energies=np.zeros(50))
    found, expected = files(path), dwave(path)
    np.testing.assert_array_equal(found.train, expected.train)
    np.testing.assert_array_equal(found.test, expected.test)
    assert len(found.test) == 10


def test_other_archives_are_not_taken_for_reads(tmp_path: Path) -> None:
    x = np.zeros((4, 3), int)
    for number, arrays in enumerate([{"spins": x}, {"samples": x, "counts": np.ones(4, int)}, {"X": x}]):
        np.savez(tmp_path / f"{number}.npz", **arrays)
        assert len(files(tmp_path / f"{number}.npz").train) == 4
        assert not holds_reads(tmp_path / f"{number}.npz")
    (tmp_path / "no.npz").write_bytes(b"nothing of the kind")
    assert not holds_reads(tmp_path / "no.npz")
    assert not holds_reads(tmp_path / "nowhere.npz")
