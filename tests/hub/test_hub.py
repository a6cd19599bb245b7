"""Models go to a hub and come back, over real HTTP to a stand-in on this machine; what goes wrong is named."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import local_hub
import numpy as np
import pytest
from local_hub import TOKEN, Hub

import neurise
from neurise.hub import download
from neurise.hub.address import Address, parsed

# The package of the hub uses its HTTP client in an old way, and leaves temporary folders to the collector of garbage.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
X = np.random.default_rng(0).integers(0, 3, (200, 4))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub that the package believes in, with an empty cache."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with local_hub.running() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        files = hub.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


@pytest.fixture(scope="module")
def model() -> Any:
    return neurise.Independent().fit(X)


def test_there_and_back(hub: Hub, model: Any) -> None:
    address = model.push_to_hub("me/coins", licence="mit", private=True)
    assert address.startswith(f"{hub.address}/me/coins/commit/")
    assert hub.private == ["me/coins"]
    assert sorted(hub.repositories["me/coins"][-1]) == ["README.md", "config.json", "model.safetensors"]
    assert "neurise.load('hf://me/coins')" in hub.repositories["me/coins"][-1]["README.md"].decode()
    again = neurise.load("hf://me/coins")
    np.testing.assert_array_equal(again.sample(50, seed=0), model.sample(50, seed=0))
    np.testing.assert_array_equal(again.log_prob(X), model.log_prob(X))


def test_nothing_but_the_two_files_is_downloaded(hub: Hub, model: Any) -> None:
    model.push_to_hub("me/coins")
    hub.repositories["me/coins"][-1] |= {"pytorch_model.bin": b"\x80\x04N.", "model.pkl": b"\x80\x04N."}
    hub.requests.clear()
    neurise.load("hf://me/coins")
    got = [asked.rpartition("/")[2] for asked in hub.requests if asked.startswith("GET") and "/resolve/" in asked]
    assert got == ["config.json", "model.safetensors"]
    hub.requests.clear()
    neurise.load("hf://me/coins")  # what is in the cache is not downloaded again
    assert not [asked for asked in hub.requests if asked.startswith("GET") and "/resolve/" in asked]


def test_a_revision_is_the_model_of_its_time(hub: Hub, model: Any) -> None:
    model.push_to_hub("me/coins")
    newer = neurise.Independent().fit(np.tile([0, 1, 2, 0], (50, 1)))
    newer.push_to_hub("me/coins")
    np.testing.assert_array_equal(neurise.load("hf://me/coins").sample(9, seed=0), newer.sample(9, seed=0))
    for revision in ("v1", local_hub.sha("me/coins", 1)):
        first = neurise.load(f"hf://me/coins@{revision}")
        np.testing.assert_array_equal(first.sample(9, seed=0), model.sample(9, seed=0))
    np.testing.assert_array_equal(neurise.load(Path("hf://me/coins")).sample(9, seed=0), newer.sample(9, seed=0))


def test_without_a_connection_what_was_downloaded_is_used(
    hub: Hub, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    model.push_to_hub("me/coins")
    neurise.load("hf://me/coins")
    hub.broken = 503
    np.testing.assert_array_equal(neurise.load("hf://me/coins").sample(9, seed=0), model.sample(9, seed=0))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    np.testing.assert_array_equal(neurise.load("hf://me/coins").sample(9, seed=0), model.sample(9, seed=0))
    with pytest.raises(OSError, match=r"hf://me/other: the hub cannot be reached .* check the connection"):
        neurise.load("hf://me/other")
    with pytest.raises(OSError, match="cannot be reached"):
        model.push_to_hub("me/coins")


def test_what_is_not_there_is_named(hub: Hub, model: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"hf://me/coins: there is no such model, or it is private"):
        neurise.load("hf://me/coins")
    model.push_to_hub("me/coins")
    with pytest.raises(FileNotFoundError, match="has no revision 'v7'"):
        neurise.load("hf://me/coins@v7")
    hub.broken = 429
    with pytest.raises(OSError, match="the hub refuses to answer"):
        neurise.load("hf://me/coins")


def test_what_is_no_model_of_neurise_is_named(hub: Hub, model: Any) -> None:
    hub.repositories["me/bert"] = [{"config.json": b'{"architectures": []}', "pytorch_model.bin": b"\x80"}]
    with pytest.raises(ValueError, match=r"hf://me/bert is no model of neurise: it has no model\.safetensors"):
        neurise.load("hf://me/bert")
    model.push_to_hub("me/coins")
    hub.repositories["me/coins"][-1]["config.json"] = b'{"architectures": []}'
    with pytest.raises(ValueError, match="does not describe a model of neurise"):
        neurise.load("hf://me/coins")


@pytest.mark.parametrize(
    ("name", "size", "error", "words"),
    [
        ("config.json", 10**9, ValueError, "a description has at most"),
        ("config.json", None, ValueError, r"does not say how large config\.json is"),
        ("model.safetensors", 10**15, MemoryError, "has weights of 1,000,000,000,000,000 bytes"),
    ],
)
def test_what_is_too_large_is_not_downloaded(
    hub: Hub, model: Any, name: str, size: Any, error: type[Exception], words: str
) -> None:
    model.push_to_hub("me/coins")
    hub.sizes[name] = size
    hub.requests.clear()
    with pytest.raises(error, match=words):
        neurise.load("hf://me/coins")
    assert not [asked for asked in hub.requests if "/resolve/" in asked]


def test_writing_needs_a_token(hub: Hub, model: Any) -> None:
    with pytest.raises(PermissionError, match="hf auth login"):
        model.push_to_hub("me/coins", token="hf_of_somebody_else")
    assert not hub.repositories


def test_an_upload_that_breaks_off_changes_nothing(hub: Hub, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_hub.Handler, "do_PUT", lambda handler: handler._answer(403))
    with pytest.raises(OSError, match=r"me/coins: .*nothing was changed there, try again"):
        model.push_to_hub("me/coins")
    assert hub.repositories == {"me/coins": []}


@pytest.mark.parametrize("address", ["hf://", "hf://coins", "hf://me/coins/more", "hf://me/../coins", "hf://me/c@a b"])
def test_a_wrong_address_is_refused_before_anything_is_asked(address: str) -> None:
    with pytest.raises(ValueError, match="write hf://owner/name"):
        neurise.load(address)


def test_addresses() -> None:
    assert parsed("hf://me/coins") == Address("me/coins", None)
    assert parsed(Path("hf://me/coins@refs/pr/1")) == Address("me/coins", "refs/pr/1")
    assert str(parsed("hf:/me/coins@v1")) == "hf://me/coins@v1"


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'neurise\[hub\]'"):
        neurise.load("hf://me/coins")
    with pytest.raises(ImportError, match=r"pip install 'neurise\[hub\]'"):
        model.push_to_hub("me/coins")
    assert download.FILES == ("config.json", "model.safetensors")


@pytest.mark.slow
def test_the_command_line_reaches_a_hub_by_its_environment(tmp_path: Path, model: Any) -> None:
    model.save(tmp_path / "model")
    with local_hub.running() as hub:
        own = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path), "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "neurise", *words]
            return subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)

        pushed = run("card", str(tmp_path / "model"), "--push", "me/coins", "--title", "Coins")
        assert pushed.returncode == 0, pushed.stderr
        assert b"# Coins" in hub.repositories["me/coins"][-1]["README.md"]
        drawn = run("sample", "hf://me/coins", "-n", "3", "--seed", "0")
        assert drawn.returncode == 0, drawn.stderr
        wrong = run("sample", "hf://me/nothing", "-n", "3")
        assert (wrong.returncode, "there is no such model" in wrong.stderr) == (1, True)
    fitted = "import sys, numpy, neurise; neurise.Independent().fit(numpy.eye(3, dtype=int)).sample(2); "
    checked = [sys.executable, "-c", fitted + "sys.exit('huggingface_hub' in sys.modules)"]
    assert subprocess.run(checked, check=False).returncode == 0
