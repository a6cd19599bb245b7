"""Packed files that unpack to more than they should, and files that say they hold more than they do."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neurise.cli import app
from neurise.datasets import dwave, files, idx
from neurise.datasets.formats import unpacking

MEGABYTE = 10**6


def packed(path: Path, text: bytes, copies: int) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(copies):
            file.write(text)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three megabytes of rows in a few kilobytes."""
    return packed(tmp_path / "rows.csv.gz", b"0,1,1,0\n1,1,0,0\n" * 1_000, 200)


def test_a_table_is_unpacked_up_to_the_limit(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files(table).train.shape == (400_000, 4)
    assert files(table, max_unpacked="4MB").train.shape == (400_000, 4)
    message = r"rows\.csv\.gz \(\d+ kB\) unpacks to more than 1 MB; .*--max-unpacked 8GB, .*NEURISE_MAX_UNPACKED"
    with pytest.raises(ValueError, match=message):
        files(table, max_unpacked=MEGABYTE)
    monkeypatch.setenv("NEURISE_MAX_UNPACKED", "1 MB")
    with pytest.raises(ValueError, match=message):
        files(table)
    assert len(files(table, max_unpacked="1e9").train) == 400_000  # whoever says more is heard first


def test_the_option_of_the_command_line(table: Path) -> None:
    result = CliRunner().invoke(app, ["data", "info", str(table), "--max-unpacked", "1MB"])
    assert (result.exit_code, "unpacks to more than 1 MB" in result.stderr) == (1, True)
    small = packed(table.with_name("small.csv.gz"), b"0,1\n1,0\n", 3)
    assert CliRunner().invoke(app, ["data", "info", str(small), "--max-unpacked", "1MB"]).exit_code == 0
    result = CliRunner().invoke(app, ["data", "info", str(table), "--max-unpacked", "much"])
    assert "--max-unpacked must be a number of bytes, 8GB or 8e9 say, got 'much'" in result.stderr


def test_without_a_word_the_limit_is_a_quarter_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEURISE_MAX_UNPACKED", raising=False)
    for free, expected in ((None, 4e9), (100 * 10**9, 4e9), (2 * 10**9, 5e8)):
        monkeypatch.setattr(unpacking, "available_bytes", lambda _, free=free: free)
        assert unpacking.limit() == expected


@pytest.mark.parametrize("size", ["-1", "0", "nan", "1e999", "5 PB", "", True, 0.2])
def test_sizes_that_are_none(size: object, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("0,1\n1,0\n")
    with pytest.raises(ValueError, match="max_unpacked must be a number of bytes"):
        files(tmp_path / "x.csv", max_unpacked=size)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x.csv.gz", "x.tsv.gz", "x.fasta.gz", "x.csv"])
def test_a_line_without_an_end_is_refused_early(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    begin, opened = (b">a\n" if "fasta" in name else b""), gzip.open if name.endswith("gz") else Path.open
    with opened(path, "wb") as file:
        file.write(begin)
        for _ in range(80):
            file.write(b"0," * 2**17)
    with pytest.raises(ValueError, match=rf"{name} has a line of more than 16,777,216 bytes, which is no row"):
        files(path)


def test_a_text_may_be_one_line_and_has_the_limit_of_all(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.txt.gz", b"abcd" * 2**18, 17)
    assert files(path, window=1024).train.shape == (17 * 2**10, 1024)
    with pytest.raises(ValueError, match="unpacks to more than 10 MB"):
        files(path, window=1024, max_unpacked="10MB")


def test_archives_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, samples=np.zeros((2_000, 1_000), dtype=np.uint8))
    assert path.stat().st_size < 10_000
    for read in (files, dwave):
        with unpacking.at_most(MEGABYTE), pytest.raises(ValueError, match=r"x\.npz .*unpacks to more than 1 MB"):
            read(path)


def test_images_are_refused_as_they_are_unpacked(tmp_path: Path) -> None:
    header = struct.pack(">HBBIII", 0, 8, 3, 2_000, 100, 100)
    path = packed(tmp_path / "images.gz", header + bytes(10**4 * 2_000), 1)
    with unpacking.at_most(MEGABYTE), pytest.raises(ValueError, match=r"images\.gz .*unpacks to more than 1 MB"):
        idx(path)


def npy(descr: str, shape: tuple[int, ...], data: bytes = b"\0" * 16) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("<i8", (10**12, 4)), "shape .1000000000000, 4. and type int64 has 32,000,000,000,000 bytes, and 16 are"),
        (npy("<i8", (0, 10**12)), "has 0 bytes, and 16 are there"),
        (npy("<i8", (-1, 2)), "is none"),
        (npy("<U0", (10**12, 4)), "array of type <U0; numbers or letters are needed"),
        (npy("<M8[s]", (2,)), r"array of type datetime64\[s\]; numbers or letters are needed"),
        (npy("|O", ()), "holds Python objects, which are never read"),
        (b"just some bytes", "damaged, cut short or no"),
    ],
)
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_arrays_have_what_is_there_and_not_what_they_say(
    tmp_path: Path, content: bytes, message: str, ending: str
) -> None:
    path = tmp_path / f"x{ending}"
    if ending == ".npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", content)
    with pytest.raises(ValueError, match=rf"x\{ending} .*{message}"):
        files(path)


def test_other_ways_of_packing_and_doubled_names_are_refused(tmp_path: Path) -> None:
    good = npy("<i8", (2, 1))
    with zipfile.ZipFile(tmp_path / "lzma.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", good)
    with pytest.raises(ValueError, match=r"lzma\.npz has the array 'X' packed in another way than numpy does it"):
        files(tmp_path / "lzma.npz")
    with zipfile.ZipFile(tmp_path / "twice.npz", "w") as archive:
        archive.writestr("X.npy", good)
        archive.writestr("X", good)
    with pytest.raises(ValueError, match=r"twice\.npz has two arrays of the same name"):
        files(tmp_path / "twice.npz")


def test_arrays_of_other_machines_and_other_orders_are_read(tmp_path: Path) -> None:
    rows = np.arange(6).reshape(3, 2)
    np.savez(tmp_path / "x.npz", X=np.asfortranarray(rows).astype(">i4"), weights=np.arange(1, 4).astype(">f8"))
    data = files(tmp_path / "x.npz")
    np.testing.assert_array_equal(data.train, rows)
    assert data.train.dtype.isnative
    assert data.weights.dtype.isnative
    np.save(tmp_path / "x.npy", np.asfortranarray(rows))
    np.testing.assert_array_equal(files(tmp_path / "x.npy").train, rows)
