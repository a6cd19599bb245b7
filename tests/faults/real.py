"""The same without injection: a small disk, a limit on the size of files, a folder that is mounted read-only."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from faults.trials import Bench, Count

ROOM = 64 << 20
"""Bytes of a disk that is large enough."""


def why_no_mounts(folder: Path) -> str:
    """Say why nothing can be mounted here; empty where it can."""
    if os.geteuid() != 0:
        return "to mount a disk takes root"
    place = folder / "probe"
    place.mkdir()
    tried = subprocess.run(["mount", "-t", "tmpfs", "none", place], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"nothing can be mounted here: {tried.stderr.strip()}"
    subprocess.run(["umount", place], check=True)
    return ""


def small_disks(bench: Bench, sizes: Sequence[int]) -> Count:
    """Run on disks that are too small, then on the same one with room."""
    count = Count(bench.work.name, bench.work.executor, "a small disk", "real")
    for size in sizes:
        with _disk(bench, f"disk-{size}", ROOM) as folder:
            _remount(folder, f"size={max(4096, _used(folder) + size)}")
            _count(bench, count, folder, bench.work.run(folder), partial(_remount, folder, f"size={ROOM}"))
    return count


def read_only_disk(bench: Bench) -> Count:
    """Run on a disk that is mounted read-only, then on the same one when it can be written."""
    count = Count(bench.work.name, bench.work.executor, "a read-only disk", "real")
    with _disk(bench, "read-only", ROOM) as folder:
        _remount(folder, "ro")
        _count(bench, count, folder, bench.work.run(folder), partial(_remount, folder, "rw"))
    return count


def small_files(bench: Bench, sizes: Sequence[int]) -> Count:
    """Run where files may not grow beyond a size."""
    count = Count(bench.work.name, bench.work.executor, "a limit on the size of files", "real")
    for size in sizes:
        folder = bench.fresh(f"limit-{size}")
        _count(bench, count, folder, partial(limited, bench.work.run(folder), size), lambda: None)
    return count


def limited(work: Callable[[], None], size: int) -> None:
    """Do a piece of work with a limit on the size of files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    work()


def _count(bench: Bench, count: Count, folder: Path, work: Callable[[], None], mend: Callable[[], None]) -> None:
    began = time.monotonic()
    ended = bench.launcher.run(work, folder)
    mend()
    count.add(bench.verdict(folder, ended), time.monotonic() - began)


@contextmanager
def _disk(bench: Bench, name: str, size: int) -> Iterator[Path]:
    folder = bench.place / name
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    try:
        shutil.copytree(bench.template, folder, dirs_exist_ok=True)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def _remount(folder: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)


def _used(folder: Path) -> int:
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize
