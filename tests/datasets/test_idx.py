"""IDX files that are written here, byte by byte, and what is said of broken ones."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from neurise.datasets._idx import read_idx
from neurise.datasets.idx import idx

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def write_idx(path: Path, array: np.ndarray, *, packed: bool = False) -> Path:
    header = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    data = header + array.astype(array.dtype.newbyteorder(">")).tobytes()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", CODES)
def test_every_kind_of_number_is_read_back(tmp_path: Path, kind: str, packed: bool) -> None:
    array = np.random.default_rng(0).integers(-100 if kind[0] != "u" else 0, 100, size=(5, 3, 4)).astype(kind)
    found = read_idx(write_idx(tmp_path / "a", array, packed=packed))
    assert found.dtype.str[1:] == kind
    np.testing.assert_array_equal(found, array)


def test_images_become_black_and_white(tmp_path: Path) -> None:
    images = np.array([[[0, 127, 128], [255, 1, 200]], [[126, 127, 129], [0, 0, 0]]], dtype=np.uint8)
    labels = np.array([7, 3], dtype=np.uint8)
    data = idx(
        write_idx(tmp_path / "images.gz", images, packed=True),
        write_idx(tmp_path / "labels", labels),
        test_images=write_idx(tmp_path / "test", images[:1]),
        test_labels=write_idx(tmp_path / "test-labels", labels[:1]),
    )
    assert (data.space.sites, data.space.states, data.shape) == (6, 2, (2, 3))
    assert data.train.dtype == np.uint8
    assert data.train.tolist() == [[0, 0, 1, 1, 0, 1], [0, 0, 1, 0, 0, 0]]
    assert data.labels.tolist() == [7, 3]
    assert data.test.tolist() == [[0, 0, 1, 1, 0, 1]]
    assert data.test_labels.tolist() == [7]
    assert data.symbols.tolist() == [0, 1]
    bare = idx(tmp_path / "images.gz", threshold=0)
    assert bare.train.tolist() == [[0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    assert bare.labels is None
    assert bare.test is None


def test_the_shape_may_be_flat_or_real(tmp_path: Path) -> None:
    data = idx(write_idx(tmp_path / "a", np.array([[0.2, 0.9], [0.6, 0.1]])), threshold=0.5)
    assert data.train.tolist() == [[0, 1], [1, 0]]
    assert data.shape == (2,)


GOOD = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"begins with the bytes \(none\)"),
        (b"\0\0\x08", "begins with the bytes 00 00 08, and two zeros"),
        (b"\x01" + GOOD[1:], "is no IDX file: it begins with the bytes 01 00 08 02"),
        (b"\0\0\x07" + GOOD[3:], "is no IDX file: it begins with the bytes 00 00 07 02"),
        (b"\0\0\x08\0", "is no IDX file"),
        (GOOD[:10], "its header should have 12 bytes, and the file has 10"),
        (GOOD[:-1], r"is cut short: \(2, 3\) numbers of type uint8 make 18 bytes, and it has 17"),
        (GOOD + b"\0\0", r"goes on after its end: \(2, 3\) numbers of type uint8 make 18 bytes, and it has 20"),
        (gzip.compress(GOOD, mtime=0)[:-5], "is a gzip file that is cut short or damaged"),
        (b"<!DOCTYPE html>", "is no IDX file: it begins with the bytes 3c 21 44 4f"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "train-images"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"train-images.*{message}"):
        read_idx(path)


def test_what_does_not_fit_together_is_named(tmp_path: Path) -> None:
    images = write_idx(tmp_path / "images", np.zeros((4, 2, 2), dtype=np.uint8))
    labels = write_idx(tmp_path / "labels", np.zeros(3, dtype=np.uint8))
    with pytest.raises(
        ValueError, match=r"labels holds uint8 of shape \(3,\), and a whole number for each of the 4 images"
    ):
        idx(images, labels)
    with pytest.raises(ValueError, match=r"labels holds numbers of shape \(3,\), and images were expected"):
        idx(labels)
    other = write_idx(tmp_path / "other", np.zeros((4, 2, 3), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"other has images of \(2, 3\) pixels, and .*images of \(2, 2\)"):
        idx(images, test_images=other)
    with pytest.raises(ValueError, match="and there are no test_images"):
        idx(images, test_labels=labels)
    for threshold in (255, -1, float("nan")):
        with pytest.raises(ValueError, match=f"threshold must leave pixels on both sides.* got {threshold}"):
            idx(images, threshold=threshold)
