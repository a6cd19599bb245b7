"""In which order places are searched for a file, and what is said where it is nowhere."""

import gzip
import importlib
from pathlib import Path

import pytest
from local_web import Site, serving

from neurise.datasets._sources import locate
from neurise.datasets.formats.open import read_bytes

NAMES = ("data.txt.gz", "data.txt")


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "data/set", "cache"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("NEURISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NEURISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(importlib.import_module("neurise.datasets._download"), "PAUSE", 0.0)


def test_a_folder_comes_first_and_is_the_only_place(tmp_path: Path) -> None:
    (tmp_path / "data/set/data.txt").write_text("shared")
    with pytest.raises(FileNotFoundError, match=r"mine has no file data\.txt\.gz or data\.txt"):
        locate(NAMES, within="set", folder=tmp_path / "mine", urls=["http://127.0.0.1:9/data.txt"])
    (tmp_path / "mine/data.txt").write_text("own")
    assert locate(NAMES, within="set", folder=str(tmp_path / "mine")).read_text() == "own"


def test_then_neurise_data_then_the_cache_then_a_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Site({"/data.txt": b"from the web"})) as site:
        urls = [f"{site.address}/data.txt"]
        path = locate(NAMES, within="set", urls=urls)
        assert path == tmp_path / "cache/set/data.txt"
        assert path.read_bytes() == b"from the web"
        path.write_text("cached")
        assert locate(NAMES, within="set", urls=urls).read_text() == "cached"
        monkeypatch.delenv("NEURISE_DATA")
        assert locate(NAMES, within="set", urls=urls).read_text() == "cached"
        monkeypatch.setenv("NEURISE_DATA", str(tmp_path / "data"))
        (tmp_path / "data/data.txt").write_text("of another set")
        assert locate(NAMES, within="set", urls=urls).read_text() == "cached"
        (tmp_path / "data/set/data.txt").write_text("shared")
        assert locate(NAMES, within="set", urls=urls).read_text() == "shared"
        (tmp_path / "data/set/data.txt.gz").write_text("packed comes first")
        assert locate(NAMES, within="set", urls=urls).read_text() == "packed comes first"
    assert len(site.requests) == 1


def test_what_is_nowhere_says_where_to_put_it() -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no public address .* NEURISE_DATA .* set/data\.txt\.gz, or say folder="
    ):
        locate(NAMES, within="set")
    with (
        serving(Site({})) as site,
        pytest.raises(OSError, match=r"HTTP Error 404.* set/data\.txt\.gz in the folder NEURISE_DATA"),
    ):
        locate(NAMES, within="set", urls=[f"{site.address}/data.txt"])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"folder is '.*nowhere', and there is no such folder"):
        locate(NAMES, within="set", folder=tmp_path / "nowhere")
    monkeypatch.setenv("NEURISE_DATA", "/nowhere/at/all")
    with pytest.raises(ValueError, match="NEURISE_DATA is '/nowhere/at/all', and there is no such folder"):
        locate(NAMES, within="set")


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    packed, plain = tmp_path / "a.txt", tmp_path / "b.gz"
    packed.write_bytes(gzip.compress(b"some text"))
    plain.write_bytes(b"some text")
    assert read_bytes(packed) == read_bytes(plain) == b"some text"


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_gzip_is_named(tmp_path: Path, damage: str) -> None:
    content = bytearray(gzip.compress(bytes(range(256)) * 100))
    if damage == "cut":
        del content[-20:]
    else:
        content[len(content) // 2] ^= 0xFF
    path = tmp_path / "images.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"images\.gz is a gzip file that is cut short or damaged"):
        read_bytes(path)
