"""Atomic writes: the old file or the new one, whole; permissions of the umask; nothing left behind for long."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from neurise import files
from neurise.files import SCRATCH, machine, staged, write_atomically, write_text
from neurise.persistence import save_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def dead_process() -> int:
    """Return the number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def leftover(folder: Path, name: str) -> Path:
    """Make what a killed writer leaves."""
    place = folder / SCRATCH / name
    place.mkdir(parents=True)
    (place / "file.txt").write_text("half a fi")
    return place


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "old")

    def half(place: Path) -> None:
        place.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, half)
    assert path.read_text() == "old"
    assert names(path.parent) == ["file.txt"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_files_have_the_permissions_that_the_umask_leaves(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        save_folder(tmp_path / "model", {}, {"w": torch.zeros(2)})
        write_text(tmp_path / "text", "new")
    finally:
        os.umask(before)
    for path in (tmp_path / "model/model.safetensors", tmp_path / "model/config.json", tmp_path / "text"):
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask, path.name


def test_the_next_writer_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    leftover(tmp_path, f"{machine()}-{dead_process()}-00000000")
    write_text(tmp_path / "file.txt", "new")
    assert names(tmp_path) == ["file.txt"]


def test_what_another_machine_left_is_removed_after_a_day(tmp_path: Path) -> None:
    young, old = (leftover(tmp_path, f"another-{os.getpid()}-{number}") for number in ("young", "old"))
    long_ago = time.time() - files.STALE - 60
    for path in (old / "file.txt", old):
        os.utime(path, (long_ago, long_ago))
    write_text(tmp_path / "file.txt", "new")
    assert names(tmp_path / SCRATCH) == [young.name]


def test_files_that_a_living_process_writes_are_left_alone(tmp_path: Path) -> None:
    with staged(tmp_path / "first") as first:
        first.place.write_text("1")
        write_text(tmp_path / "second", "2")
        first.commit()
    assert names(tmp_path) == ["first", "second"]
    assert (tmp_path / "first").read_text() == "1"


def test_a_killed_writer_leaves_nothing_for_long(tmp_path: Path) -> None:
    # Killed within the weights' own writer, which has temporary names of its own.
    code = (
        "import os, signal, sys; from pathlib import Path; from neurise.files import write_atomically\n"
        "def half(place):\n"
        "    (place.parent / '.tmpXYZ').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(Path(sys.argv[1]), half)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "file.txt")], check=False)
    assert names(tmp_path) == [SCRATCH]
    write_text(tmp_path / "file.txt", "new")
    assert names(tmp_path) == ["file.txt"]


def test_the_folder_is_synced_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    sync, replace = files._sync, Path.replace
    monkeypatch.setattr(files, "_sync", lambda path: (events.append(f"sync {path.name}"), sync(path)))
    monkeypatch.setattr(Path, "replace", lambda path, to: (events.append(f"rename {to.name}"), replace(path, to)))
    write_text(tmp_path / "file.txt", "new")
    assert events == ["sync file.txt", "rename file.txt", f"sync {tmp_path.name}"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "file.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "file.txt").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    write_text(Path(os.devnull), "new")
    assert Path(os.devnull).is_char_device()
