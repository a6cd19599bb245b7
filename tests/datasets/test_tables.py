"""Tables as text: tabs, counts, labels, gzip, histograms apart; every mistake with its place; memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurise.datasets import files
from neurise.datasets.files import write_rows
from neurise.datasets.formats import csv as _csv
from neurise.datasets.formats.growing import Growing
from neurise.gaps import is_gap
from neurise.schema import learn_schema

ROWS = [[-1, 1, 1], [1, 1, -1], [-1, -1, -1]]


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


def packed(path: Path, content: str) -> Path:
    path.write_bytes(gzip.compress(content.encode()))
    return path


# --- how cells are separated, how the file is packed -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.TSV"])
@pytest.mark.parametrize("separator", ["\t", ","])
@pytest.mark.parametrize("header", ["", "a?b?c\n"])
def test_separator_is_that_of_the_content(tmp_path: Path, name: str, separator: str, header: str) -> None:
    content = header.replace("?", separator) + "".join(separator.join(map(str, row)) + "\n" for row in ROWS)
    assert files(text(tmp_path / name, content)).train.tolist() == ROWS


@pytest.mark.parametrize("name", ["x.csv.gz", "x.tsv.gz", "x.CSV.GZ", "x.csv"])
def test_gzip_is_seen_by_its_bytes(tmp_path: Path, name: str) -> None:
    data = files(packed(tmp_path / name, "-1,1,1\n1,1,-1\n-1,-1,-1\n"))
    assert data.train.tolist() == ROWS
    assert data.name == name


def test_what_is_called_gz_and_is_plain_is_read(tmp_path: Path) -> None:
    assert files(text(tmp_path / "x.csv.gz", "0,1\n1,1\n")).train.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("kept", [11, 0.5, -1])
def test_cut_gzip(tmp_path: Path, kept: float) -> None:
    numbers = np.random.default_rng(0).integers(0, 2, (5000, 8))
    path = packed(tmp_path / "x.csv.gz", "".join(",".join(map(str, row)) + "\n" for row in numbers.tolist()))
    content = path.read_bytes()
    path.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(ValueError, match=r"x\.csv\.gz is a gzip file that is cut short or damaged"):
        files(path)


def test_damaged_gzip(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.csv.gz", "0,1\n1,0\n" * 1000)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1  # the checksum
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cut short or damaged"):
        files(path)


def test_byte_that_is_no_text_is_placed(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"0,1\n1,0\n0,\xff\n")
    with pytest.raises(ValueError, match="no text in UTF-8: line 3, column 3: the byte 0xff"):
        files(tmp_path / "x.csv")


# --- counts, weights, labels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["count", "counts", "Counts"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_count_column_is_known_by_its_name(tmp_path: Path, name: str, place: int) -> None:
    lines = [["a", "b"], ["0", "1"], ["1", "1"]]
    for line, cell in zip(lines, [name, "7", "12.0"], strict=True):
        line.insert(place, cell)
    data = files(text(tmp_path / "x.csv", "\n".join(map(",".join, lines))))
    assert data.train.tolist() == [[0, 1], [1, 1]]
    assert data.weights.tolist() == [7, 12]
    assert data.weights.dtype == np.int64


@pytest.mark.parametrize("column", ["times", 0, "0", "-3"])
def test_a_count_column_can_be_named(tmp_path: Path, column: str | int) -> None:
    data = files(text(tmp_path / "x.tsv", "times\ta\tb\n3\tA\tC\n0\tC\tC\n"), count_column=column)
    assert data.train.tolist() == [["A", "C"], ["C", "C"]]
    assert data.weights.tolist() == [3, 0]


def test_weights_need_not_be_whole(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "weight,a,b\n0.25,0,1\n1e-3,1,1\n"))
    assert data.weights.tolist() == [0.25, 1e-3]


def test_header_with_counts_among_letters(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "count,a,b\n2,A,C\n5,C,C\n"))  # a and b would be symbols
    assert data.train.tolist() == [["A", "C"], ["C", "C"]]
    assert data.weights.tolist() == [2, 5]


@pytest.mark.parametrize("column", [1, "1", -2])
def test_a_column_number_is_no_name(tmp_path: Path, column: int | str) -> None:
    path = text(tmp_path / "x.csv", "0,1,0\n1,2,0\n")  # the first line has a cell 1, which is no header
    assert files(path, label_column=column).labels.tolist() == [1, 2]
    assert files(path, count_column=column).weights.tolist() == [1, 2]


def test_labels_and_counts_together(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "count,a,label,b\n2,0,cat,1\n3,1,dog,0\n"))
    assert data.train.tolist() == [[0, 1], [1, 0]]
    assert (data.weights.tolist(), data.labels.tolist()) == ([2, 3], ["cat", "dog"])


def test_labels_that_turn_out_to_be_text_keep_their_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "BLOCK", 8)
    content = "label,a\n" + "07,1\n7,0\n" * 20 + "x,1\n"
    assert files(text(tmp_path / "x.csv", content)).labels.tolist() == ["07", "7"] * 20 + ["x"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("count,a\n1,0\n-2,1\n", {}, "line 3, column 1: '-2'; a count is a whole number, not negative"),
        ("a,count\n0,1\n1,1.5\n", {}, "line 3, column 2: '1.5'; a count is a whole"),
        ("a,count\n0,1\n1,\n", {}, "line 3, column 2: ''; a count is"),
        ("a,count\n0,nan\n", {}, "line 2, column 2: 'nan'; a count is"),
        ("a,weight\n0,1\n1,-0.5\n", {}, "line 3, column 2: '-0.5'; a weight is a number, not negative"),
        ("a,weight\n0,inf\n", {}, "line 2, column 2: 'inf'; a weight"),
        ("count,counts,a\n1,1,0\n", {}, "counts twice, as 'count' and 'counts'"),
        ("a,b\n0,1\n", {"count_column": "n"}, "has no column 'n' for the counts"),
        ("a,b\n0,1\n", {"count_column": 0, "label_column": 0}, "column 1 cannot hold the labels and the counts"),
        ("count\n3\n", {}, "no column besides the labels or counts"),
        ("count,a,b\n1,0,1\n1,0,x\n", {}, "line 3, column 3: 'x' is not a whole number"),
        ("0\t1\n1\tx\n", {}, "line 2, column 2: 'x' is not a whole number.*separated by tabs"),
        ("0\t1\n1\n", {}, "line 2: cells: 1 here, 2"),
        ("0,1\n" * 4 + "1\n0,1,1\n", {}, "line 5: cells: 1 here, 2"),  # as many cells as there should be, in all
    ],
)
def test_mistakes_are_placed(tmp_path: Path, content: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        files(text(tmp_path / "x.csv", content), **options)
    assert "x.csv" in str(error.value)


@pytest.mark.parametrize("bad", ["-2,1,0\n", "1,1\n", "1,0,?\n", "\n1,1,1\n", "1,0,99999999999999999999\n"])
@pytest.mark.parametrize("before", [0, 1, 2, 30])
def test_the_quick_way_and_the_slow_one_agree(
    tmp_path: Path, bad: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file with and without a quote in its second line, which keeps numpy out."""
    monkeypatch.setattr(_csv, "BLOCK", 9)
    quick = "count,a,b\n1,0,1\n" + "2,0,1\n" * before + bad + "2,1,1\n"
    errors = []
    for name, content in (("quick.csv", quick), ("slow.csv", quick.replace("1,0,1\n", '"1",0,1\n', 1))):
        with pytest.raises(ValueError, match=f"line {before + 3}") as error:
            files(text(tmp_path / name, content), missing="error")
        errors.append(str(error.value).replace(name, "x"))
    assert errors[0] == errors[1]


# --- missing values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "NA", "nan", "NaN", "null", "?", "n/a", " "])
def test_missing_values_are_left_out_and_counted(tmp_path: Path, word: str) -> None:
    content = f"a,b,c\n0,1,1\n1,{word},{word}\n1,1,0\n{word},0,0\n"
    path = text(tmp_path / "x.csv", content)
    if word == " ":
        with pytest.raises(ValueError, match="line 3, column 2"):  # a blank is a letter, and here letters are wrong
            files(path, missing="drop")
        return
    data = files(path, missing="drop")
    assert data.train.tolist() == [[0, 1, 1], [1, 1, 0]]
    assert data.info["missing"] == {"cells": 3, "rows": 2, "first": [3, 2]}
    with pytest.raises(ValueError, match=r"line 3, column 2"):
        files(path)


def test_a_first_line_that_lacks_a_value_is_left_out(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "0,?\n?,1\n0,1\n1,1\n"), missing="drop")
    assert data.train.tolist() == [[0, 1], [1, 1]]
    assert data.info["missing"] == {"cells": 2, "rows": 2, "first": [1, 2]}


def test_a_question_mark_among_letters_is_a_letter(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "A,?\nC,A\n"), missing="drop")
    assert data.train.tolist() == [["A", "?"], ["C", "A"]]


@pytest.mark.parametrize(
    ("content", "options", "gaps", "symbols"),
    [
        ("0,1\n,1\n0,NA\n", {}, [[1, 0], [2, 1]], [0, 1]),
        ("0,1\n?,1\n0,nan\n", {}, [[1, 0], [2, 1]], [0, 1]),
        ("0,1\n-9,1\n0,1\n", {"missing": "-9"}, [[1, 0]], [0, 1]),
        ("A,C\n,C\nC,A\n", {}, [[1, 0]], ["A", "C"]),
        ("A,?\nC,C\nC,A\n", {"missing": "?"}, [[0, 1]], ["A", "C"]),
    ],
)
def test_missing_values_stay_missing(
    tmp_path: Path, content: str, options: dict[str, str], gaps: list[list[int]], symbols: list[Any]
) -> None:
    data = files(text(tmp_path / "x.csv", content), **options)
    assert data.train is not None
    assert np.argwhere([[is_gap(cell) for cell in row] for row in data.train.tolist()]).tolist() == gaps
    assert data.symbols.tolist() == symbols
    assert learn_schema(data.train)[0].gaps == len(gaps)
    with pytest.raises(ValueError, match="whole number|single letter" if not options else "missing|whole|letter"):
        files(tmp_path / "x.csv", missing="error" if not options else "no such word")


def test_missing_values_below_a_header_stay_missing(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.csv", "age,size,count\n3,1,2\n,1,5\n3,NA,1\n"))
    assert data.train is not None
    assert np.asarray(data.train).tolist() == [[3, 1], [None, 1], [3, None]]
    assert data.weights is not None
    assert data.weights.tolist() == [2, 5, 1]
    assert learn_schema(data.train)[0].gaps == 2


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.csv", {"window": 3}, "read as a table, which has no window; it is for text"),
        ("x.csv", {"theta": 0.5}, "has no theta; it is for fasta"),
        ("x.csv", {"kind": "tabel"}, "kind must be one of 'table', .*'fasta', 'text', .*got 'tabel'"),
        ("x.csv", {"missing": "ignore"}, "no cell that holds 'ignore', which was to stand for a missing value"),
        ("x.npy", {"count_column": 0}, r"read as \.npy, which has no count_column"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, name: str, options: dict[str, object], message: str
) -> None:
    np.save(tmp_path / "x.npy", np.array(ROWS))
    text(tmp_path / "x.csv", "0,1\n")
    with pytest.raises(ValueError, match=message):
        files(tmp_path / name, **options)


def test_kind_reads_a_file_of_any_ending(tmp_path: Path) -> None:
    assert files(text(tmp_path / "x.dat", "0,1\n1,1\n"), kind="table").train.tolist() == [[0, 1], [1, 1]]


# --- memory ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-300, 300), min_size=1, max_size=40), st.integers(1, 7))
def test_growing_holds_what_was_added(values: list[int], step: int) -> None:
    growing, rows = Growing(), np.array(values)[:, None] * [1, 2]
    for start in range(0, len(rows), step):
        growing.add(rows[start : start + step])
    np.testing.assert_array_equal(growing.array(), rows)
    small = np.abs(rows).max() <= 127
    assert (growing.array().dtype == np.int8) == small or rows.min() == -128


PROBE = """
import resource, sys
from neurise.datasets import files
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = files(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, data.train.nbytes, data.train.dtype, len(data.train))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ru_maxrss has other units")
def test_a_large_table_is_never_held_twice(tmp_path: Path) -> None:
    """200 MB of text make 95 MB of int8. What is held besides does not grow with the file: 2^22 cells of codes, eight bytes
    each and twice, are 64 MB, and 2^18 cells of text and numbers another 16 MB or so: 100 MB with some air."""
    path, rng = tmp_path / "x.csv", np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(50):
            block = np.full((20_000, 200), ord(","), dtype=np.uint8)
            block[:, ::2] = rng.integers(0, 2, (20_000, 100)) + ord("0")
            block[:, -1] = ord("\n")
            file.write(block.tobytes())
    assert path.stat().st_size == 200_000_000
    shown = subprocess.run([sys.executable, "-c", PROBE, path], capture_output=True, text=True, check=True).stdout
    kilobytes, size, dtype, rows = shown.split()
    assert (int(size), dtype, rows) == (100_000_000, "int8", "1000000")
    assert int(kilobytes) * 1024 < 1.25 * int(size) + 100 * 2**20  # below twice the array, and a constant


def test_nothing_warns_about_a_plain_table(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files(text(tmp_path / "x.csv", "1,1\n0,1\n" * 50))


# --- strings of digits, and headers alone ------------------------------------------------------------------------------


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("header", ["bitstring,count", "Bits,counts"])
def test_bit_strings_keep_their_leading_zeros(tmp_path: Path, header: str, quoted: bool) -> None:
    strings = ["1000", "0010", "0000"]
    cells = [f'"{string}"' if quoted else string for string in strings]
    (tmp_path / "x.csv").write_text(f"{header}\n" + "".join(f"{cell},{7 * n}\n" for n, cell in enumerate(cells, 1)))
    data = files(tmp_path / "x.csv")
    assert data.train.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert data.weights.tolist() == [7, 14, 21]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("key,count\n100,2\n011,1\n", [[1, 0, 0], [0, 1, 1]]),
        ("2,count\n012,2\n210,1\n", [[0, 1, 2], [2, 1, 0]]),
        ("10\n01\n", [[1, 0], [0, 1]]),
        ("012\n201\n120\n111\n", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [1, 1, 1]]),
        ("1" * 40 + "\n" + "01" * 20 + "\n", [[1] * 40, [0, 1] * 20]),
    ],
)
def test_a_leading_zero_shows_strings_of_digits(tmp_path: Path, text: str, rows: list[list[int]]) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.warns(UserWarning, match=rf"read as strings of digits, {len(rows[0])} sites each"):
        assert files(tmp_path / "x.csv").train.tolist() == rows


@pytest.mark.parametrize("text", ["10\n11\n25\n", "7\n10\n11\n", "code,count\n10,1\n11,2\n25,1\n", "10\n7\n01\n"])
def test_numbers_of_one_column_stay_numbers(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    numbers = [[int(line.split(",")[0])] for line in text.split() if line[0].isdigit()]
    assert files(tmp_path / "x.csv").train.tolist() == numbers
    (tmp_path / "y.csv").write_text("10\n01\n")
    assert files(tmp_path / "y.csv", kind="table").train.tolist() == [[10], [1]]


def test_a_string_of_another_length_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("bitstring,count\n0010,5\n0110,2\n011,2\n")
    with pytest.raises(ValueError, match=r"x\.csv, line 4, column 1: '011' is no string of 4 digits like those before"):
        files(tmp_path / "x.csv")


@pytest.mark.parametrize("text", ["a,b,c\n", "a,b,c", "x\n", "A, C ,G\r\n"])
def test_a_header_of_letters_alone_is_no_row(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=r"x\.csv has a single line, of different letters: it may be a header without"):
        files(tmp_path / "x.csv")


def test_one_row_of_letters_is_read_where_it_cannot_be_a_header(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("A,C,A\n")
    assert files(tmp_path / "x.csv").train.tolist() == [["A", "C", "A"]]
    (tmp_path / "y.csv").write_text("first,second,third\nA,C,G\n")
    assert files(tmp_path / "y.csv").train.tolist() == [["A", "C", "G"]]
    write_rows(tmp_path / "z.csv", np.array([["A", "C", "G"]]))  # what is written can be read
    assert files(tmp_path / "z.csv").train.tolist() == [["A", "C", "G"]]


def test_none_in_small_letters_is_an_answer_as_in_pandas(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,city\nnone,Rome\nshop,None\noffice,Oslo\n")
    rows = files(path).train
    assert rows[0, 0] == "none"
    assert rows[1, 1] is None or rows[1, 1] != rows[1, 1]
