"""Files that survive: whatever happens while a model is saved, a whole one can be loaded, the old or the new."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from neurise import files as writing
from neurise import persistence
from neurise.persistence import load_folder, save_folder

OLD, NEW = {"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 4.0])}
FILES = ["config.json", "model.safetensors"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_folder(tmp_path / "model", {"which": "old"}, OLD)
    return tmp_path / "model"


def which(folder: Path) -> str:
    """Load a model, make sure its parts belong together, and tell which one it is."""
    config, tensors = load_folder(folder)
    assert torch.equal(tensors["w"], {"old": OLD, "new": NEW}[config["which"]]["w"])
    return str(config["which"])


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, nth: int = 1) -> None:
    """Let the nth call fail as a full disk does; a write leaves half a file behind."""
    genuine, calls = getattr(owner, name), []

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) != nth:
            return genuine(*args, **kwargs)
        for path in args:
            if isinstance(path, Path) and path.is_file() and writing.SCRATCH in path.parts:
                path.write_bytes(b"half a fi")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(owner, name, failing)


def test_what_was_saved_is_loaded(folder: Path) -> None:
    config, tensors = load_folder(folder)
    assert config["which"] == "old"
    assert torch.equal(tensors["w"], OLD["w"])
    assert files(folder) == FILES


def test_saving_again_replaces(folder: Path) -> None:
    save_folder(folder, {"which": "new"}, NEW)
    assert which(folder) == "new"
    assert files(folder) == FILES


STAGES: dict[str, tuple[Any, str, int]] = {
    "taking the lock": (persistence, "saving_in", 1),
    "making room": (writing, "_make_own", 1),
    "writing the weights": (persistence, "save_file", 1),
    "flushing the weights": (writing.Staged, "flush", 1),
    "reading the weights back": (persistence, "_sha256", 1),
    "writing the description": (Path, "write_text", 1),
    "flushing the description": (writing.Staged, "flush", 2),
    "making the description ready": (Path, "replace", 1),
    "making the weights current": (Path, "replace", 2),
}


@pytest.mark.parametrize(("owner", "name", "nth"), STAGES.values(), ids=STAGES)
def test_a_full_disk_leaves_the_old_model_and_no_litter(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, nth: int
) -> None:
    with monkeypatch.context() as patch:
        fail_at(patch, owner, name, nth)
        with pytest.raises(OSError, match="No space left"):
            save_folder(folder, {"which": "new"}, NEW)
    assert which(folder) == "old"
    assert files(folder) == FILES
    save_folder(folder, {"which": "new"}, NEW)
    assert which(folder) == "new"


def crash_between_the_renames(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        fail_at(patch, Path, "replace", 3)
        with pytest.raises(OSError, match="No space left"):
            save_folder(folder, {"which": "new"}, NEW)
    assert "config.json.new" in files(folder)


@pytest.mark.parametrize("first", [False, True], ids=["over an old model", "into a new folder"])
def test_a_crash_between_the_two_renames_leaves_the_new_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    folder = tmp_path / "model"
    if not first:
        save_folder(folder, {"which": "old"}, OLD)
    crash_between_the_renames(folder, monkeypatch)
    assert which(folder) == "new"


@pytest.mark.parametrize(("owner", "name", "nth"), STAGES.values(), ids=STAGES)
def test_a_full_disk_after_such_a_crash_leaves_the_model_of_the_crash(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, nth: int
) -> None:
    crash_between_the_renames(folder, monkeypatch)
    with monkeypatch.context() as patch:
        fail_at(patch, owner, name, nth + (name in ("replace", "_sha256")))  # one of each clears up after the crash
        with pytest.raises(OSError, match="No space left"):
            save_folder(folder, {"which": "old"}, OLD)
    assert which(folder) == "new"
    save_folder(folder, {"which": "old"}, OLD)
    assert which(folder) == "old"
    assert files(folder) == FILES


def test_a_kill_before_the_weights_are_renamed_leaves_the_old_model(folder: Path) -> None:
    save_folder(folder.parent / "other", {"which": "new"}, NEW)
    (folder / persistence.PENDING).write_bytes((folder.parent / "other" / persistence.CONFIG).read_bytes())
    assert which(folder) == "old"
    save_folder(folder, {"which": "new"}, NEW)
    assert which(folder) == "new"
    assert files(folder) == FILES


def damage(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return act


def edit(**fields: Any) -> Callable[[Path], None]:
    return damage("config.json", lambda text: json.dumps(json.loads(text) | fields).encode())


DAMAGES: dict[str, tuple[Callable[[Path], None], type[Exception], str]] = {
    "weights cut short": (damage("model.safetensors", lambda data: data[:-3]), ValueError, "damaged.*SHA-256"),
    "weights empty": (damage("model.safetensors", lambda data: b""), ValueError, "damaged.*SHA-256"),
    "one bit of the weights": (
        damage("model.safetensors", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        ValueError,
        "damaged.*SHA-256",
    ),
    "weights of another model": (damage("model.safetensors", lambda data: b"x" + data), ValueError, "damaged"),
    "description edited": (edit(which="new"), ValueError, "changed after it was saved"),
    "description extended": (edit(more=1), ValueError, "changed after it was saved"),
    "description without a digest": (edit(weights_sha256=None), ValueError, "changed after it was saved"),
    "description cut short": (damage("config.json", lambda text: text[:-9]), ValueError, "no JSON"),
    "description not text": (damage("config.json", lambda text: b"\xff\xfe" + text), ValueError, "not JSON"),
    "description of something else": (damage("config.json", lambda text: b"[1]"), ValueError, "does not describe"),
    "later format": (edit(format=3), ValueError, "format 3, and this version of neurise reads formats 1 to 2"),
    "weights missing": (
        lambda folder: (folder / "model.safetensors").unlink(),
        FileNotFoundError,
        "model.safetensors is",
    ),
    "description missing": (lambda folder: (folder / "config.json").unlink(), FileNotFoundError, "config.json is"),
}


@pytest.mark.parametrize(("act", "kind", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found(folder: Path, act: Callable[[Path], None], kind: type[Exception], message: str) -> None:
    act(folder)
    with pytest.raises(kind, match=message):
        load_folder(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no model folder.*nowhere"):
        load_folder(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match=r"no model folder.*file"):
        load_folder(tmp_path / "file")


def test_a_file_is_not_overwritten_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ValueError, match="is a file"):
        save_folder(tmp_path / "file", {}, OLD)
    assert (tmp_path / "file").read_text() == "precious"


def test_what_the_weights_writer_calls_a_full_disk_is_an_os_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise persistence.SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(persistence, "save_file", full)
    with pytest.raises(OSError, match=r"model\.safetensors.*No space left"):
        save_folder(folder, {"which": "new"}, NEW)
    assert which(folder) == "old"
    assert files(folder) == FILES
