"""Inputs that once ended in a crash, one for each kind."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurise import presets
from neurise.alphabet import Alphabet
from neurise.datasets import dwave, files, idx
from neurise.datasets._annealers.inert import object_in_npz
from neurise.fields import Field
from neurise.laws import as_law
from neurise.persistence import load_tensors

MODEL: dict[str, Any] = {
    "type": "BinaryQuadraticModel",
    "variable_labels": ["a", "b", [1, 2]],
    "variable_type": "SPIN",
    "offset": 0.5,
    "linear_biases": [0.1, 0.0, 0.2],
    "quadratic_biases": [1.0, -0.5],
    "quadratic_head": [0, 1],
    "quadratic_tail": [1, 2],
}


NO_VARIABLES: dict[str, Any] = {
    "type": "SampleSet",
    "version": {"sampleset_schema": "3.2.0"},
    "num_variables": 0,
    "num_rows": 2,
    "sample_data": {"type": "array", "data": [[5], [3]], "data_type": "uint32", "shape": [2, 1], "use_bytes": False},
    "sample_type": "int8",
    "sample_packed": True,
    "vectors": {
        name: {"type": "array", "data": [1, 1], "data_type": "int64", "shape": [2], "use_bytes": False}
        for name in ("energy", "num_occurrences")
    },
    "variable_labels": [],
    "variable_type": "SPIN",
    "info": {},
}


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.mark.parametrize("field", ["quadratic_head", "quadratic_tail"])
@pytest.mark.parametrize("end", [3, -1, 10**9, "a", None, True])
def test_a_coupler_to_nowhere_is_refused(tmp_path: Path, field: str, end: object) -> None:
    """It was handed to dimod, which wrote to where no variable is: the process ended."""
    path = written(tmp_path / "model.json", {**MODEL, field: [0, end]})
    with pytest.raises(ValueError, match=rf"model\.json: a coupler ends at {end!r}, and there are the variables 0 … 2"):
        dwave(problem=path, reads=2)


def test_the_models_of_dimod_are_read_as_dimod_reads_them(tmp_path: Path) -> None:
    dimod = pytest.importorskip("dimod")
    imports = importlib.import_module("neurise.datasets._annealers.imports")
    for kind in ("SPIN", "BINARY"):
        given = dimod.BinaryQuadraticModel(
            {"a": 0.5, "b": -1, (1, 2): 0}, {("a", "b"): 2.0, ("b", (1, 2)): -3.0}, 0.25, kind
        )
        path = written(tmp_path / "model.json", given.to_serializable())
        labels = imports.variables_of(path)
        assert labels == tuple(given.variables)
        rows = np.array([[1, 1, 1], [-1, 1, 1], [-1, -1, 1], [1, -1, -1]])
        own = imports.as_problem(path, labels).energy(rows)
        symbols = rows if kind == "SPIN" else (rows + 1) // 2
        np.testing.assert_allclose(own, given.energies((symbols, labels)), atol=1e-12)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[" * 100_000, "nested more than 100 levels deep"),
        ('{"solutions": ' + "1" * 5_000 + "}", "damaged, cut short or no JSON"),
        ({"type": "SampleSet", "num_rows": 10**400}, "damaged SampleSet"),
        (NO_VARIABLES, "has reads of no variables"),
        ({"variable_ids": [1], "solutions": [{"solution": [1], "num_occurrences": [[1], 2]}]}, "num_occurrences"),
        (
            {"variable_ids": [1], "solutions": [{"solution": [1], "energy": 10**400}]},
            "has 401 digits, which is more than a float can hold",
        ),
    ],
)
def test_documents_that_were_no_message(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"reads\.json.*{message}"):
        dwave(written(tmp_path / "reads.json", document))


def test_a_text_in_a_file_is_no_name_of_another_file(tmp_path: Path) -> None:
    written(tmp_path / "other.json", MODEL)
    with pytest.raises(ValueError, match=r"x\.json is JSON of another kind, of type str"):
        dwave(problem=written(tmp_path / "x.json", json.dumps(str(tmp_path / "other.json"))), reads=2)


@pytest.mark.parametrize("model", [None, [], {}, 3, "neuris"])
def test_configurations_of_no_model(tmp_path: Path, model: object) -> None:
    path = written(tmp_path / "c.json", {"format": 1, "model": model, "params": {}})
    with pytest.raises(ValueError, match=r"c\.json(: unknown model|\.model must be text)"):
        presets.read(path)


def test_letters_that_are_none_and_laws_of_letters(tmp_path: Path) -> None:
    rows = np.array([[0x41, 0x7FFFFFFF]], dtype=np.uint32).view("U1")
    np.savez(tmp_path / "x.npz", X=rows)
    with pytest.raises(ValueError, match=r"x\.npz .*letters that are none"):
        files(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", X=np.array([[0, 1], [1, 0]]), pmf=np.array(["a"] * 4))
    with pytest.raises(ValueError, match=r"y\.npz: pmf holds values of type <U1; probabilities are numbers"):
        files(tmp_path / "y.npz")


def test_an_offset_that_is_no_number(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", samples=np.ones((2, 3), np.int8), h=np.zeros(3), offset=np.array("a"))
    with pytest.raises(ValueError, match=r"x\.npz: J, h and the offset must be numbers"):
        dwave(tmp_path / "x.npz")


def test_images_without_a_pixel(tmp_path: Path) -> None:
    sides = (2, 2, 0, 2**30, 2**31, 2**31)
    (tmp_path / "x.idx").write_bytes(bytes([0, 0, 8, len(sides)]) + b"".join(side.to_bytes(4, "big") for side in sides))
    with pytest.raises(ValueError, match=r"x\.idx holds numbers of shape .*, of which there are none"):
        idx(tmp_path / "x.idx")


@pytest.mark.parametrize("packed", [False, True])
def test_qubits_that_are_not_there(tmp_path: Path, packed: bool) -> None:
    """Names were made for all of them first: 10^12 numbers."""
    rows = {"samples_packed": np.zeros((2, 1), np.uint8)} if packed else {"samples": np.ones((2, 3), np.int8)}
    np.savez(tmp_path / "x.npz", n_qubits=np.int64(10**12), **rows)
    with pytest.raises(ValueError, match=r"x\.npz.*1000000000000"):
        dwave(tmp_path / "x.npz")


def test_a_pickle_that_counts_beyond_its_end(tmp_path: Path) -> None:
    """Its memory would be a list of as many entries as the number under which something is remembered: 16 GB."""
    path = tmp_path / "J.npz"
    np.savez(path, J=np.array({(0, 1): 0.5}, dtype=object))
    import zipfile

    with zipfile.ZipFile(path) as archive:
        content = archive.read("J.npy")
    header = content[: content.index(b"\n") + 1]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("J.npy", header + b"\x80\x02Nr\xff\xff\xff\x7f.")
    with pytest.raises(ValueError, match=r"J\.npz .*counts 2,147,483,647 things in \d+ bytes"):
        object_in_npz(path, "J")


def test_a_number_that_is_too_large_to_be_one(tmp_path: Path) -> None:
    entry = {"format": 1, "model": "independent", "params": {}, "score": 10**400}
    with pytest.raises(ValueError, match=r"c\.json.score must be a finite number"):
        presets.read(written(tmp_path / "c.json", entry))


@pytest.mark.parametrize("error", [TypeError, OverflowError, ValueError])
def test_tensors_of_types_that_torch_may_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Older versions of torch raise a TypeError for the small floats that newer ones know."""

    def refuse(path: Path) -> None:
        raise error("no such type")

    monkeypatch.setattr("neurise.persistence.load_file", refuse)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged or no safetensors file"):
        load_tensors(tmp_path / "model.safetensors")


@pytest.mark.parametrize("qubit", ["a", None, 1.5, (1,)])
def test_couplings_of_no_qubits(tmp_path: Path, qubit: object) -> None:
    path = tmp_path / "J.npz"
    np.savez(path, J=np.array({(0, qubit): 1.0}, dtype=object))
    couplings = importlib.import_module("neurise.datasets._annealers.advantage")._couplings
    with pytest.raises(ValueError, match=r"J\.npz"):
        couplings(path)


@pytest.mark.parametrize("dtype", ["f4,(", "(", "i4,,", ")f8"])
def test_types_that_numpy_reads_like_a_program(dtype: str) -> None:
    field = Field({"codes": [0, 1], "dtype": dtype, "tensor": False}, "schema.alphabet")
    with pytest.raises(ValueError, match=r"schema\.alphabet\.dtype must be"):
        Alphabet.from_field(field, 2)


def test_counts_of_no_rows_and_laws_in_another_order_of_bytes(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", X=np.zeros((0, 2), np.int8), counts=np.zeros(0, "U1"))
    with pytest.raises(ValueError, match=r"c\.npz"):
        files(tmp_path / "c.npz")
    law = as_law(np.array([0.25, 0.75], dtype=">f8"), 2, "pmf")
    assert law.tolist() == [0.25, 0.75]
