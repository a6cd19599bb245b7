"""Every kind of file is written and read back; what is known of the truth comes back from ``.npz``."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neurise.dataset import Dataset
from neurise.datasets import edwards_anderson, files, ghz, ising, potts
from neurise.datasets.files import write_dataset, write_rows
from neurise.datasets.formats.fasta import LETTERS, sequence_weights
from neurise.space import Space

ANY_ENDING = [".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz"]
# Digits are read as numbers, and a zero is no letter.
LETTER = st.characters(exclude_categories=["Cs", "Nd"], exclude_characters="\0") | st.sampled_from("\r\n\t,\"' \ufeff")
SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 5))


def number_rows(low: int, high: int) -> st.SearchStrategy[np.ndarray]:
    return SHAPES.flatmap(lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(low, high)))


def letter_rows(letters: st.SearchStrategy[str]) -> st.SearchStrategy[np.ndarray]:
    return SHAPES.flatmap(
        lambda shape: st.lists(letters, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda found: np.array(found, dtype="U1").reshape(shape)
        )
    )


ROWS = st.one_of(
    number_rows(-1, 1),
    number_rows(0, 3),
    number_rows(-100, 155).filter(lambda x: len(np.unique(x)) < 250),
    letter_rows(LETTER),
)


def dataset(rows: np.ndarray, **more: Any) -> Dataset:
    symbols = np.unique(rows)
    return Dataset("made", Space(rows.shape[1], len(symbols)), symbols, train=rows, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("write")


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ANY_ENDING)
@settings(max_examples=30, deadline=None)
@given(rows=ROWS)
def test_rows_come_back(folder: Path, ending: str, rows: np.ndarray) -> None:
    for write in (lambda path: write_rows(path, rows), lambda path: write_dataset(path, dataset(rows))):
        write(folder / f"x{ending}")
        found = files(folder / f"x{ending}")
        assert found.train.tolist() == rows.tolist()
        assert found.weights is None
        assert found.symbols.tolist() == np.unique(rows).tolist()


@pytest.mark.parametrize("ending", [".npz", ".csv", ".tsv.gz"])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), rows=ROWS)
def test_labels_and_weights_come_back(folder: Path, ending: str, data: st.DataObject, rows: np.ndarray) -> None:
    n = len(rows)
    weights = data.draw(
        st.one_of(
            hnp.arrays(np.int64, n, elements=st.integers(0, 10**9)),
            hnp.arrays(np.float64, n, elements=st.floats(0, 1e12, allow_subnormal=False)),
        )
    )
    words = st.text("abcxyz,\t\" '", min_size=1, max_size=4).map(str.strip).filter(bool)
    labels = data.draw(
        st.one_of(hnp.arrays(np.int64, n, elements=st.integers(-9, 9)), st.lists(words, min_size=n, max_size=n))
    )
    write_dataset(folder / f"x{ending}", dataset(rows, labels=np.array(labels), weights=weights))
    found = files(folder / f"x{ending}")
    assert found.train.tolist() == rows.tolist()
    assert found.labels.tolist() == np.array(labels).tolist()
    assert found.weights.tolist() == weights.tolist()


def test_a_row_of_a_histogram_is_not_taken_for_a_header_that_counts_the_columns(tmp_path: Path) -> None:
    rows, counts = np.array([[0, 1], [0, 0], [0, 0]]), np.array([0, 3, 0])
    write_dataset(tmp_path / "x.csv", dataset(rows, weights=counts), kind="histogram")
    found = files(tmp_path / "x.csv", kind="histogram")
    assert (found.train.tolist(), found.weights.tolist()) == (rows.tolist(), counts.tolist())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), rows=number_rows(-1, 1))
def test_histograms_come_back(folder: Path, ending: str, data: st.DataObject, rows: np.ndarray) -> None:
    counts = data.draw(hnp.arrays(np.int64, len(rows), elements=st.integers(0, 1000)))
    write_dataset(folder / f"x{ending}", dataset(rows, weights=counts), kind="histogram")
    found = files(folder / f"x{ending}", kind="histogram")
    assert (found.train.tolist(), found.weights.tolist()) == (rows.tolist(), counts.tolist())


@pytest.mark.parametrize("ending", [".fasta", ".fa", ".faa.gz"])
@pytest.mark.parametrize("alphabet", list(LETTERS))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_alignments_come_back(folder: Path, ending: str, alphabet: str, data: st.DataObject) -> None:
    rows = data.draw(letter_rows(st.sampled_from(LETTERS[alphabet][0])))
    names = data.draw(st.lists(st.text("ab|/ 1", min_size=1).map(str.strip), min_size=len(rows), max_size=len(rows)))
    write_dataset(folder / f"x{ending}", dataset(rows, info={"sequences": names}))
    found = files(folder / f"x{ending}", alphabet=alphabet)
    assert found.train.tolist() == rows.tolist()
    assert found.info["sequences"] == names
    np.testing.assert_array_equal(found.weights, sequence_weights(rows))
    write_rows(folder / f"x{ending}", rows)
    assert files(folder / f"x{ending}", alphabet=alphabet, theta=None).train.tolist() == rows.tolist()


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
@settings(max_examples=25, deadline=None)
@given(rows=letter_rows(LETTER.filter(lambda letter: letter not in "\r\ufeff")))  # no letters of a text: see the reader
def test_texts_come_back(folder: Path, ending: str, rows: np.ndarray) -> None:
    write_dataset(folder / f"x{ending}", dataset(rows))
    assert files(folder / f"x{ending}", window=rows.shape[1]).train.tolist() == rows.tolist()


@pytest.mark.parametrize("first", [[0, 1, 2], [2, 0, 1]])
def test_rows_that_look_like_something_else_get_a_header(folder: Path, first: list[int]) -> None:
    """Without one, 0,1,2 would be taken for the numbers of the columns, and 2,0,1 for a histogram."""
    rows = [first, [1, 1, 0], [1, 0, 0], [1, 1, 1]]
    write_rows(folder / "x.csv", np.array(rows))
    assert files(folder / "x.csv").train.tolist() == rows


# --- everything ------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(data=st.data(), sites=st.integers(1, 3), states=st.integers(1, 3))
def test_an_archive_holds_everything(folder: Path, data: st.DataObject, sites: int, states: int) -> None:
    symbols = np.array(data.draw(st.permutations([-3, 0, 7]))[:states])
    draws = np.random.default_rng(data.draw(st.integers(0, 99)))
    parts: dict[str, Any] = {}
    for split in ("", "validation_", "test_"):
        n = data.draw(st.integers(1, 4))
        rows = symbols[draws.integers(0, states, (n, sites))]
        parts |= {split.rstrip("_") or "train": rows}
        parts |= {f"{split}labels": draws.integers(0, 3, n), f"{split}weights": draws.random(n)}
    law = draws.dirichlet(np.ones(states**sites))
    info = {"text": "ä", "list": [1, None, True], "array": draws.random(3), "nested": {"a": np.float64(0.5)}}
    made = Dataset("made", Space(sites, states), symbols, **parts, law=lambda: law, shape=(1, sites), info=info)
    write_dataset(folder / "x.npz", made)
    found = files(folder / "x.npz")
    assert found.space == made.space
    assert found.symbols.tolist() == symbols.tolist()  # in their order, which the law depends on
    for name, values in parts.items():
        np.testing.assert_array_equal(getattr(found, name), values)
    np.testing.assert_allclose(found.pmf, law, rtol=1e-12)  # normalised once more: a rounding or two
    assert found.shape == (1, sites)
    np.testing.assert_array_equal(found.info["array"], info["array"])
    kept = {key: value for key, value in found.info.items() if key != "array"}
    assert kept == {"name": "made", "text": "ä", "list": [1, None, True], "nested": {"a": 0.5}}


TRUTHS = {
    "edwards_anderson": lambda: edwards_anderson(side=3, seed=4),
    "ising": lambda: ising([(0, 2), (2, 1), (0, 2)], [0.3, -0.7, 0.2], [0.1, 0.0, -0.4]),
    "potts": lambda: potts(side=2, states=3, seed=1),
    "two_state_potts": lambda: potts(side=2, states=2, seed=1),
}


@pytest.mark.parametrize("name", list(TRUTHS))
def test_the_truth_of_pairwise_models_comes_back(tmp_path: Path, name: str) -> None:
    made = TRUTHS[name]()
    made = replace(made, train=made.sample(40, seed=0))
    write_dataset(tmp_path / "x.npz", made)
    found = files(tmp_path / "x.npz")
    np.testing.assert_array_equal(found.edges, made.edges)
    np.testing.assert_array_equal(found.couplings, made.couplings)
    np.testing.assert_array_equal(found.fields, made.fields)
    assert found.shape == made.shape
    everything = np.array(list(itertools.product(made.symbols, repeat=made.space.sites)))
    # The same dozens of terms of order 1 are summed in both: 1e-12 is a thousand times their rounding.
    np.testing.assert_allclose(found.energy(everything), made.energy(everything), atol=1e-12)
    np.testing.assert_allclose(found.pmf, made.pmf, rtol=1e-12)
    assert found.info["log_z"] == made.info["log_z"]
    assert set(map(tuple, found.sample(50, seed=0).tolist())) <= set(map(tuple, everything.tolist()))


def test_an_energy_with_a_constant_comes_back(tmp_path: Path) -> None:
    made = ising([(0, 1)], [0.5], [0.1, 0.2])
    shifted = replace(made, train=made.sample(10, seed=0), log_weight=lambda X: made.log_weight(X) - 12.5)
    write_dataset(tmp_path / "x.npz", shifted)
    rows = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    np.testing.assert_allclose(files(tmp_path / "x.npz").energy(rows), made.energy(rows) + 12.5, atol=1e-12)


def test_an_energy_that_a_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    made = ising([(0, 1)], [0.5], [0.1, 0.2])
    rows = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    other = replace(made, train=rows, log_weight=lambda X: X[:, 0] * 3.0)
    with pytest.raises(ValueError, match="its energy is not that of its couplings and fields"):
        write_dataset(tmp_path / "x.npz", other)
    assert not list(tmp_path.iterdir())


def test_a_large_law_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ghz(qubits=4)
    made = replace(made, train=made.sample(10, seed=0))
    monkeypatch.setattr("neurise.datasets.formats.archive.SMALL", 255)
    write_dataset(tmp_path / "x.npz", made)
    assert files(tmp_path / "x.npz").pmf is None
    monkeypatch.setattr("neurise.datasets.formats.archive.SMALL", 256)
    write_dataset(tmp_path / "x.npz", made)
    np.testing.assert_allclose(files(tmp_path / "x.npz").pmf, made.pmf, rtol=1e-12)


# --- what cannot be written or does not fit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "options", "message"),
    [
        ("x.fasta", {}, {}, "an alignment holds letters"),
        ("x.txt", {}, {}, "a text holds letters"),
        ("x.xls", {}, {}, r"the ending '\.xls' is not known"),
        ("x.npy.gz", {}, {}, r"the ending '\.gz' is not known"),
        ("x.csv", {"weights": np.array([0.5, 1.0])}, {"kind": "histogram"}, "a histogram holds whole counts"),
        ("x.npz", {}, {"kind": "histogram"}, "kind must be left out or be 'histogram', for .csv or .tsv"),
        ("x.csv", {}, {"kind": "table"}, "got 'table'"),
    ],
)
def test_refused(tmp_path: Path, name: str, more: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_dataset(tmp_path / name, dataset(np.array([[0, 1], [1, 1]]), **more), **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".npz", ".csv"])
def test_a_law_without_rows_is_refused(tmp_path: Path, ending: str) -> None:
    with pytest.raises(ValueError, match="has no rows; draw some first"):
        write_dataset(tmp_path / f"x{ending}", edwards_anderson(side=2))


@pytest.mark.parametrize("ending", [".npz", ".csv", ".fasta.gz", ".txt"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / f"x{ending}", np.array([["A", "C"], ["C", "C"]])
    write_dataset(path, dataset(rows))
    before = path.read_bytes()

    def fails(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(OSError, match=r"cannot write .*No space left"):
        write_dataset(path, dataset(rows[::-1]))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


BASE: dict[str, Any] = {"X": np.array([[-1, 1], [1, 1]]), "edges": np.array([[0, 1]]), "couplings": np.array([0.5])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"couplings": None}, "has edges and no couplings"),
        ({"edges": None}, "has couplings and no edges"),
        ({"edges": np.array([[0, 2]])}, r"edge 0 is \(0, 2\); two different sites from 0 to 1"),
        ({"edges": np.array([[1, 1]])}, r"edge 0 is \(1, 1\)"),
        ({"edges": np.array([0, 1])}, "pairs of sites are needed"),
        ({"edges": np.array([[0.0, 1.0]])}, "pairs of sites are needed"),
        ({"couplings": np.array([np.nan])}, r"couplings has nan at \[0\]"),
        ({"couplings": np.ones(3)}, r"couplings has the shape \(3,\); one for each of 1 edges"),
        ({"fields": np.ones(3)}, r"fields has the shape \(3,\)"),
        ({"fields": np.array([1.0, np.inf])}, r"fields has inf at \[1\]"),
        ({"shape": np.array([3, 1])}, r"shape is \(3, 1\); its sides must multiply to the 2 sites"),
        ({"offset": np.array([1.0, 2.0])}, "offset is"),
        ({"info": np.array("[1]")}, "info is not a JSON object"),
        ({"info": np.array("{")}, "info is damaged, cut short or no JSON"),
        ({"info": np.array(3)}, "info is not a JSON object"),
        ({"counts": np.array([1.0, -2.0])}, r"counts has -2\.0 at row 1; a count is a whole number"),
        ({"counts": np.array([0.5, 2.0])}, r"counts has 0\.5 at row 0"),
        ({"counts": np.array([1.0, np.nan])}, "counts has nan at row 1"),
        ({"counts": np.array(["a", "b"])}, "counts has 'a' at row 0"),
    ],
)
def test_archives_that_do_not_fit_together(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    arrays = {key: value for key, value in (BASE | change).items() if value is not None}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=message) as error:
        files(tmp_path / "x.npz")
    assert "x.npz" in str(error.value)


def test_info_is_plain_json(tmp_path: Path) -> None:
    write_dataset(
        tmp_path / "x.npz", dataset(np.array([[0, 1]]), info={"nodes": [(0, 0)], "set": {3}, "path": Path("a")})
    )
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        found = json.loads(archive["info"].item())
    assert found == {"name": "made", "nodes": [[0, 0]], "set": [3], "path": "a"}
