"""Silhouettes: the real file where it is at hand, and small ones written here."""

import sys
from pathlib import Path

import numpy as np
import pytest
from real_data import real_file
from scipy import io

from neurise.datasets.caltech101_silhouettes import caltech101_silhouettes

WHOLE, SPLIT = "caltech101_silhouettes_28.mat", "caltech101_silhouettes_28_split1.mat"


def silhouettes(n: int) -> np.ndarray:
    """The picture number k has one black line: its row k."""
    pictures = np.ones((n, 28, 28), dtype=np.uint8)
    pictures[np.arange(n), np.arange(n)] = 0
    return pictures


def as_matlab(pictures: np.ndarray) -> np.ndarray:
    """Pixels in the order of MATLAB: down the columns."""
    return np.stack([picture.ravel(order="F") for picture in pictures])


def test_the_real_file() -> None:
    real_file(WHOLE)
    data = caltech101_silhouettes()
    assert data.train.shape == (8671, 784)
    assert data.train.dtype == np.uint8
    assert data.shape == (28, 28)
    assert sorted(set(data.labels.tolist())) == list(range(1, 102))
    assert len(data.info["classes"]) == 101
    # Lamps are alike on the left and on the right, but not at the top and at the bottom: pictures stand upright.
    lamps = data.train[data.labels == 1 + data.info["classes"].index("lamp")].reshape(-1, 28, 28)
    assert (lamps != lamps[:, :, ::-1]).mean() < 0.5 * (lamps != lamps[:, ::-1]).mean()


def test_pictures_stand_upright(tmp_path: Path) -> None:
    pictures = silhouettes(3)
    names = np.array([["ant", "bat"]], dtype=object)
    io.savemat(tmp_path / WHOLE, {"X": as_matlab(pictures), "Y": np.array([[1, 2, 1]], np.uint8), "classnames": names})
    data = caltech101_silhouettes(folder=tmp_path)
    np.testing.assert_array_equal(data.train.reshape(3, 28, 28), pictures)
    assert data.labels.tolist() == [1, 2, 1]
    assert data.info["classes"] == ("ant", "bat")
    assert data.test is None


def test_the_authors_split(tmp_path: Path) -> None:
    arrays = {}
    for key, n in (("train", 4), ("val", 2), ("test", 3)):
        arrays |= {f"{key}_data": as_matlab(silhouettes(n)), f"{key}_labels": np.arange(1, n + 1)[:, None]}
    io.savemat(tmp_path / SPLIT, arrays)
    data = caltech101_silhouettes(split=True, folder=tmp_path)
    for rows, labels, n in (
        (data.train, data.labels, 4),
        (data.validation, data.validation_labels, 2),
        (data.test, data.test_labels, 3),
    ):
        np.testing.assert_array_equal(rows.reshape(n, 28, 28), silhouettes(n))
        assert labels.tolist() == list(range(1, n + 1))


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / WHOLE
    io.savemat(path, {"X": as_matlab(silhouettes(3)), "Y": np.array([1, 2])})
    with pytest.raises(ValueError, match=r"28\.mat: Y has 2 entries, and X has 3 rows"):
        caltech101_silhouettes(folder=tmp_path)
    whole = path.read_bytes()
    for content in (whole[:-700], whole[:100], b"", b"<html>" * 99):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"28\.mat is damaged or no MATLAB file"):
            caltech101_silhouettes(folder=tmp_path)
    io.savemat(path, {"A": np.zeros(3)})
    with pytest.raises(ValueError, match=r"28\.mat has the arrays \['A'\], and X and Y, or train_data"):
        caltech101_silhouettes(folder=tmp_path)
    io.savemat(path, {"X": np.zeros((3, 256)), "Y": np.array([1, 2, 3])})
    with pytest.raises(ValueError, match="X has 256 columns, and 784 were expected"):
        caltech101_silhouettes(folder=tmp_path)


def test_without_scipy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WHOLE).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(ImportError, match=r"pip install 'neurise\[metrics\]'"):
        caltech101_silhouettes(folder=tmp_path)
