"""MNIST and Fashion-MNIST: the real files where they are at hand, small ones in their place, and downloads."""

import gzip
import hashlib
import importlib
import struct
from pathlib import Path

import numpy as np
import pytest
from local_web import Site, serving
from real_data import real_file

from neurise.datasets._idx import STANDARD
from neurise.datasets.fashion_mnist import fashion_mnist
from neurise.datasets.mnist import UNPACKED_MD5, mnist


def small_files() -> dict[str, bytes]:
    """Four files like those of MNIST, with 3 + 2 images of 28×28."""
    rng, files = np.random.default_rng(0), {}
    for images, labels, n in ((STANDARD[0], STANDARD[1], 3), (STANDARD[2], STANDARD[3], 2)):
        files[images] = struct.pack(">4I", 0x803, n, 28, 28) + rng.integers(256, size=n * 784, dtype=np.uint8).tobytes()
        files[labels] = struct.pack(">2I", 0x801, n) + bytes(range(n))
    return files


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEURISE_DATA", raising=False)
    monkeypatch.setenv("NEURISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(importlib.import_module("neurise.datasets._download"), "PAUSE", 0.0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Small files that pass for MNIST."""
    files = small_files()
    module = importlib.import_module("neurise.datasets.mnist")
    packed = [gzip.compress(files[name], mtime=0) for name in STANDARD]
    monkeypatch.setattr(module, "UNPACKED_MD5", [hashlib.md5(files[name]).hexdigest() for name in STANDARD])
    monkeypatch.setattr(module, "PACKED_MD5", [hashlib.md5(content).hexdigest() for content in packed])
    return files


def test_the_real_files_are_mnist() -> None:
    real_file("mnist/train-images-idx3-ubyte.gz")
    data = mnist()  # which compares the MD5 of all four
    assert (data.train.shape, data.test.shape) == ((60_000, 784), (10_000, 784))
    assert (data.train.dtype, data.shape, data.space.states) == (np.uint8, (28, 28), 2)
    assert np.bincount(data.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert data.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert set(np.unique(data.train)) == {0, 1}
    assert data.train[:, 0].sum() == 0  # the corner is always white, which a wrong offset would not give
    assert mnist(threshold=200).train.sum() < data.train.sum() < mnist(threshold=20).train.sum()


def test_the_checksums_are_those_of_the_published_files() -> None:
    for name, expected in zip(STANDARD, UNPACKED_MD5, strict=True):
        content = gzip.decompress(real_file(f"mnist/{name}.gz").read_bytes())
        assert hashlib.md5(content).hexdigest() == expected


@pytest.mark.parametrize("style", ["{}", "{}.gz", "dotted"])
def test_a_folder_may_hold_them_packed_or_not(tmp_path: Path, small: dict[str, bytes], style: str) -> None:
    for name, content in small.items():
        file = name.replace("-idx", ".idx") if style == "dotted" else style.format(name)
        (tmp_path / file).write_bytes(gzip.compress(content) if style.endswith("gz") else content)
    data = mnist(folder=tmp_path)
    assert data.train.shape == (3, 784)
    assert data.labels.tolist() == [0, 1, 2]
    assert data.test_labels.tolist() == [0, 1]
    pixels = np.frombuffer(small[STANDARD[2]], np.uint8, offset=16).reshape(2, 784)
    np.testing.assert_array_equal(data.test, pixels > 127)


def test_another_file_of_the_right_shape_is_refused(tmp_path: Path, small: dict[str, bytes]) -> None:
    for name, content in small.items():
        (tmp_path / name).write_bytes(content[:-1] + b"\x63" if name == STANDARD[3] else content)
    with pytest.raises(
        ValueError, match=r"t10k-labels-idx1-ubyte is not .* MD5 [0-9a-f]{32}, and [0-9a-f]{32} was expected"
    ):
        mnist(folder=tmp_path)


@pytest.mark.usefixtures("no_data")
def test_it_is_downloaded_once_and_checked(
    tmp_path: Path, small: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("neurise.datasets.mnist")
    served = {f"/mnist/{name}.gz": gzip.compress(content, mtime=0) for name, content in small.items()}
    with serving(Site(served, drop_after=[700])) as site:
        monkeypatch.setattr(module, "MIRRORS", [f"{site.address}/gone", f"{site.address}/mnist"])
        first, second = mnist(), mnist()
    np.testing.assert_array_equal(first.train, second.train)
    assert first.train.shape == (3, 784)
    assert len(site.requests) == 4 + 4 + 1  # four that are not on the first mirror, four that are, one lost connection
    kept = {path.name for path in (tmp_path / "cache" / "mnist").iterdir()} - {".lock"}
    assert kept == {f"{name}.gz" for name in STANDARD}


@pytest.mark.usefixtures("no_data", "small")
def test_a_mirror_with_other_content_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = {f"/mnist/{name}.gz": b"moved" for name in STANDARD}
    with serving(Site(served)) as site:
        monkeypatch.setattr(importlib.import_module("neurise.datasets.mnist"), "MIRRORS", [f"{site.address}/mnist"])
        with pytest.raises(
            ValueError, match=r"train-images-idx3-ubyte\.gz with md5:[0-9a-f]{32}, and md5:[0-9a-f]{32} was"
        ):
            mnist()
    assert {path.name for path in (tmp_path / "cache" / "mnist").iterdir()} == {".lock"}


def test_fashion_mnist_from_a_folder(tmp_path: Path) -> None:
    for name, content in small_files().items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    data = fashion_mnist(folder=tmp_path)
    assert (data.name, data.train.shape, data.shape) == ("fashion_mnist", (3, 784), (28, 28))
    assert len(data.info["classes"]) == 10


def test_fashion_mnist_does_not_take_mnist_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the two bear the same names, so that those in the folder of the other must not be found."""
    monkeypatch.setenv("NEURISE_DATA", str(tmp_path))
    monkeypatch.setenv("NEURISE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mnist").mkdir()
    for name, content in small_files().items():
        (tmp_path / "mnist" / name).write_bytes(content)
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(importlib.import_module("neurise.datasets.fashion_mnist"), "MIRRORS", ())
    with pytest.raises(FileNotFoundError, match="fashion_mnist/train-images-idx3-ubyte"):
        fashion_mnist()


def test_mirrors_are_addresses_of_folders() -> None:
    for name in ("mnist", "fashion_mnist"):
        module = importlib.import_module(f"neurise.datasets.{name}")
        assert all(url.startswith("http") and not url.endswith("/") for url in module.MIRRORS)
        assert len(module.PACKED_MD5) == len(STANDARD)
