"""Files in, files out: every mistake is named with its place, and nothing is half written."""

from __future__ import annotations

import importlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from neurise.datasets import files
from neurise.datasets.files import check_ending, write_rows
from neurise.datasets.formats import csv as _csv

module = importlib.import_module("neurise.datasets.files")  # the name itself is the function
ROWS = np.array([[-1, 1, 1], [1, 1, -1], [-1, -1, -1], [1, -1, 1]], dtype=np.int8)


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


# --- npy and npz ---------------------------------------------------------------------------------------------------


def test_npy_gives_rows_as_they_are(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    data = files(tmp_path / "x.npy")
    assert data.name == "x.npy"
    assert data.train.dtype == np.int8
    np.testing.assert_array_equal(data.train, ROWS)
    assert (data.space.sites, data.space.states, data.symbols.tolist()) == (3, 2, [-1, 1])
    assert data.pmf is None
    assert data.labels is None


@pytest.mark.parametrize("rows", ["X", "train", "samples", "anything"])
@pytest.mark.parametrize("labels", ["y", "labels"])
@pytest.mark.parametrize("weights", ["weights", "counts"])
def test_npz_names(tmp_path: Path, rows: str, labels: str, weights: str) -> None:
    arrays = {labels: np.array(list("abca")), weights: np.arange(1, 5), "test": ROWS[:2], rows: ROWS}
    np.savez(tmp_path / "x.npz", **arrays)
    data = files(tmp_path / "x.npz")
    np.testing.assert_array_equal(data.train, ROWS)
    np.testing.assert_array_equal(data.test, ROWS[:2])
    assert data.labels.tolist() == list("abca")
    assert data.weights.tolist() == [1, 2, 3, 4]


def test_npz_splits_keep_their_labels_and_share_one_alphabet(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        X=ROWS,
        validation=np.array([[-1, 1, 5]]),
        validation_labels=np.array([7]),
        test=np.array([[0, 0, 0], [1, 1, 1]]),
        test_weights=np.array([0.5, 2.0]),
    )
    data = files(tmp_path / "x.npz")
    assert data.symbols.tolist() == [-1, 0, 1, 5]
    assert data.validation_labels.tolist() == [7]
    assert data.test_weights.tolist() == [0.5, 2.0]


def test_npz_pmf_is_over_the_sorted_symbols_or_the_named_ones(tmp_path: Path) -> None:
    pmf = np.zeros(4)
    pmf[1] = 1.0  # first site most significant: (first symbol, second symbol)
    rows = np.array([[3, 8], [3, 8]])
    np.savez(tmp_path / "sorted.npz", X=rows, pmf=pmf)
    assert files(tmp_path / "sorted.npz").sample(5, seed=0).tolist() == [[3, 8]] * 5
    np.savez(tmp_path / "named.npz", X=rows, pmf=pmf, alphabet=np.array([8, 3]))
    named = files(tmp_path / "named.npz")
    assert named.symbols.tolist() == [8, 3]
    assert named.sample(5, seed=0).tolist() == [[8, 3]] * 5
    np.testing.assert_array_equal(named.pmf, pmf)


def test_npz_pmf_is_drawn_from_in_law(tmp_path: Path) -> None:
    pmf = np.random.default_rng(1).dirichlet(np.ones(9))
    np.savez(tmp_path / "x.npz", X=np.array([[0, 1], [2, 2]]), pmf=pmf)
    n = 20_000
    drawn = files(tmp_path / "x.npz").sample(n, seed=0)
    seen = np.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=9) / n
    np.testing.assert_allclose(seen, pmf, atol=5 * np.sqrt(0.25 / n))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.arange(4)}, "no rows"),
        ({"X": ROWS, "train": ROWS}, "several names: X, train"),
        ({"X": ROWS, "wieghts": np.ones(4)}, r"\['wieghts'\] that are not known"),
        ({"a": ROWS, "b": ROWS}, r"\['a', 'b'\]"),
        ({"X": ROWS, "y": np.arange(3)}, r"labels has the shape \(3,\); one for each of 4 rows"),
        ({"X": ROWS, "test": ROWS, "test_weights": np.ones(2)}, "test_weights has the shape"),
        ({"X": ROWS, "test": ROWS[:, :2]}, "test has 2 columns and the rows to learn from have 3"),
        ({"X": ROWS, "test": np.array([["a", "b", "c"]])}, "test is of type <U1"),
        ({"X": ROWS, "pmf": np.ones(9) / 9}, r"pmf must have 8 entries.*3 sites of the 2 symbols \[-1, 1\].*alphabet"),
        ({"X": ROWS, "pmf": np.ones(8)}, "pmf sums to 8"),
        ({"X": ROWS, "alphabet": np.array([0, 1])}, "the data has the symbol -1"),
        ({"X": np.zeros((0, 3))}, "X is empty"),
    ],
)
def test_npz_that_does_not_fit_together(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=message) as error:
        files(tmp_path / "x.npz")
    assert "x.npz" in str(error.value)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
@pytest.mark.parametrize("kept", [0, 1, 7, 60, 0.5, 0.9, -1])
def test_cut_file(tmp_path: Path, ending: str, kept: float) -> None:
    whole, cut = tmp_path / f"whole{ending}", tmp_path / f"cut{ending}"
    write_rows(whole, np.tile(ROWS, (100, 1)))
    content = whole.read_bytes()
    cut.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(ValueError, match=rf"cut\{ending} is damaged, cut short"):
        files(cut)


def test_flipped_byte_in_npz_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_rows(path, np.tile(ROWS, (100, 1)))
    content = bytearray(path.read_bytes())
    content[600] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npz is damaged"):
        files(path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1, "a"], [None, 2]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x\.npy holds Python objects"):
        files(tmp_path / "x.npy")


def test_wrong_ending_for_the_content(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.npz", ROWS)
    (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"is a \.npz archive"):
        files(tmp_path / "x.npy")
    write_rows(tmp_path / "y.npy", ROWS)
    (tmp_path / "y.npy").rename(tmp_path / "y.npz")
    with pytest.raises(ValueError, match=r"is a single \.npy array"):
        files(tmp_path / "y.npz")


def test_places_in_errors_count_from_the_start_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 10)
    rows = np.zeros((50, 2))
    rows[37, 1] = np.inf
    np.save(tmp_path / "x.npy", rows)
    with pytest.raises(ValueError, match=r"x\.npy: X has .*inf.* at row 37, column 1"):
        files(tmp_path / "x.npy")


def test_symbols_are_collected_over_all_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 4)
    np.save(tmp_path / "x.npy", np.arange(20).reshape(10, 2))
    assert files(tmp_path / "x.npy").symbols.tolist() == list(range(20))


def test_reading_holds_less_than_three_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 2**16)
    rows = np.random.default_rng(0).integers(0, 2, (200_000, 40), dtype=np.int8)  # 8 MB
    for ending in (".npy", ".npz"):
        write_rows(tmp_path / f"x{ending}", rows)
        tracemalloc.start()
        files(tmp_path / f"x{ending}")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2.5 * rows.nbytes


# --- which file ----------------------------------------------------------------------------------------------------


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npy"):
        files(tmp_path / "nowhere.npy")


@pytest.mark.parametrize("name", ["x.txt", "x", "x.npy.gz"])
def test_unknown_ending_lists_the_known(tmp_path: Path, name: str) -> None:
    text(tmp_path / name, "1,0\n")
    for refuse in (files, check_ending, lambda path: write_rows(path, ROWS)):
        with pytest.raises(ValueError, match=r"\.npy, \.npz, \.csv"):
            refuse(tmp_path / name)


def test_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        files(tmp_path)


def test_label_column_needs_a_file_with_columns(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.npy", ROWS)
    with pytest.raises(ValueError, match="rows alone"):
        files(tmp_path / "x.npy", label_column="y")


def test_npz_label_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=ROWS, digit=np.arange(4))
    assert files(tmp_path / "x.npz", label_column="digit").labels.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="no array 'colour'"):
        files(tmp_path / "x.npz", label_column="colour")


# --- csv -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("0,1\n1,1\n", [[0, 1], [1, 1]]),
        ("0,1\r\n1,1\r\n\r\n\r\n", [[0, 1], [1, 1]]),
        ("\ufeff0, 1\n1 ,1", [[0, 1], [1, 1]]),
        ("s0,s1\n-1,1\n1,1\n", [[-1, 1], [1, 1]]),
        ("a,b\n-1,1\n", [[-1, 1]]),
        ("a,a\n", [["a", "a"]]),
        ("a,-\n", [["a", "-"]]),
        ("A,C\nG,T\n", [["A", "C"], ["G", "T"]]),
        ("first,second\nA, C\n", [["A", "C"]]),
        ('"A","\n"\n', [["A", "\n"]]),
        ("1.0,-1e0\n1,-1\n", [[1, -1], [1, -1]]),
        ("300,-70000\n1,2\n", [[300, -70000], [1, 2]]),
        ("7\n8\n", [[7], [8]]),
        ("0,1,2\n1,0,1\n1,1,1\n0,0,0\n", [[1, 0, 1], [1, 1, 1], [0, 0, 0]]),  # a table without column names
        ("0,1,2\n2,0,1\n1,1,1\n0,0,0\n", [[0, 1, 2], [2, 0, 1], [1, 1, 1], [0, 0, 0]]),
        ("0,1,2\n3,4,5\n3,4,5\n3,4,5\n", [[0, 1, 2], [3, 4, 5], [3, 4, 5], [3, 4, 5]]),
        ("0,1,2\n3,3,3\n4,4,4\n", [[0, 1, 2], [3, 3, 3], [4, 4, 4]]),  # too few rows to tell
    ],
)
def test_csv(tmp_path: Path, content: str, rows: list[list[object]]) -> None:
    data = files(text(tmp_path / "x.csv", content))
    assert data.train.tolist() == rows
    assert data.symbols.tolist() == sorted({cell for row in rows for cell in row})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0,1\n1\n", "line 2: cells: 1 here, 2 in the lines before"),
        ("a,b\n0,1\n1,0,1\n", "line 3: cells: 3 here, 2"),
        ("0,1\n1,x\n", "line 2, column 2: 'x' is not a whole number"),
        ("a,b\n0,1\n1,0.5\n", "line 3, column 2: '0.5' is not a whole number"),
        ("0,?\n0,1\n", r"line 1, column 2: '\?' is not a whole number"),
        ("0,1\n0,\n", "line 2, column 2: '' is not a whole number"),
        ("0,1\n0,nan\n", "line 2, column 2: 'nan'"),
        ("0,1\n0,inf\n", "line 2, column 2: 'inf'"),
        ("0,1\n0,99999999999999999999\n", "line 2, column 2: '99999999999999999999'"),
        ("A,C\nG,GT\n", "line 2, column 2: 'GT' is not a single letter"),
        ("A,C\nG,1\n", "line 2, column 2: '1' is not a single letter"),
        ("0;1\n1;1\n", "line 2, column 1: '1;1' is not a single letter.*separated by commas"),
        ("0,1\n\n1,1\n", "line 2: the line is empty"),
        ("", "is empty"),
        ("\n\n", "is empty"),
    ],
)
def test_csv_mistakes_are_placed(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        files(text(tmp_path / "x.csv", content), missing="error")
    assert "x.csv" in str(error.value)


def test_csv_mistake_in_a_later_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "BLOCK", 6)
    content = "a,b\n" + "0,1\n" * 20
    assert len(files(text(tmp_path / "x.csv", content)).train) == 20
    with pytest.raises(ValueError, match="line 22, column 1: 'z'"):
        files(text(tmp_path / "x.csv", content + "z,1\n"))


def test_csv_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"0,1\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match=r"x\.csv is no text in UTF-8"):
        files(tmp_path / "x.csv")


@pytest.mark.parametrize("column", ["class", "1", 1, "-2"])
def test_csv_label_column(tmp_path: Path, column: str | int) -> None:
    path = text(tmp_path / "x.csv", "a,class,b\n0,cat,1\n1,dog,1\n")
    data = files(path, label_column=column)
    assert data.train.tolist() == [[0, 1], [1, 1]]
    assert data.labels.tolist() == ["cat", "dog"]


def test_csv_label_column_without_header_and_with_numbers(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "0,1,12\n1,1,7\n"), label_column="-1")
    assert data.train.tolist() == [[0, 1], [1, 1]]
    assert data.labels.tolist() == [12, 7]


def test_csv_label_column_by_name_makes_the_first_line_a_header(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "0,1,y\n0,1,1\n1,1,0\n"), label_column="y")
    assert data.train.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n0,1\n", "has no column 'y'.*a, b, or a number from 0 to 1"),
        ("y\n1\n", "no column besides the labels"),
        ("y,b\n", "a header and nothing else"),
        ("y,b\n1,0\n1,?\n", r"line 3, column 2: '\?'"),
    ],
)
def test_csv_label_column_mistakes(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        files(text(tmp_path / "x.csv", content), label_column="y")


# --- writing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".CSV", ".NPY"])
@pytest.mark.parametrize(
    "rows",
    [ROWS, np.array([["A", ","], ['"', " "]]), torch.tensor([[0, 1], [5, 1]]), np.array([[200, 0]], dtype=np.uint8)],
)
def test_what_is_written_is_read_back(tmp_path: Path, ending: str, rows: np.ndarray | torch.Tensor) -> None:
    write_rows(tmp_path / f"deep/down/x{ending}", rows)
    assert files(tmp_path / f"deep/down/x{ending}").train.tolist() == rows.tolist()


@pytest.mark.parametrize("rows", [np.array([[True, False]]), np.array([[1.0, 0.0]])])
def test_csv_writes_whole_numbers(tmp_path: Path, rows: np.ndarray) -> None:
    write_rows(tmp_path / "x.csv", rows)
    assert (tmp_path / "x.csv").read_text() == "1,0\n"


def test_csv_is_written_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "BLOCK", 7)
    write_rows(tmp_path / "x.csv", np.tile(ROWS, (5, 1)))
    np.testing.assert_array_equal(files(tmp_path / "x.csv").train, np.tile(ROWS, (5, 1)))


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv"])
def test_failed_write_leaves_the_old_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"x{ending}"
    write_rows(path, ROWS)

    def fails(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(OSError, match=rf"cannot write .*x\{ending}: No space left"):
        write_rows(path, -ROWS)
    np.testing.assert_array_equal(files(path).train, ROWS)
    assert list(tmp_path.iterdir()) == [path]
