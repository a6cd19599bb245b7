"""Works that lose things, to see that the suite counts them: who finds nothing here would find nothing anywhere."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from faults.works import Run, Work

OLD, NEW = b"old" * 1000, b"new" * 1000


class _File(Work):
    def prepare(self, folder: Path) -> None:
        (folder / "made").write_bytes(OLD)

    def is_there(self, folder: Path) -> bool:
        return (folder / "made").exists()

    def result(self, folder: Path) -> Any:
        return (folder / "made").read_bytes()


class InPlace(_File):
    """Writes over the file that is there."""

    name = "broken: writes in place"

    def run(self, folder: Path) -> Run:
        return partial(write_in_place, folder / "made")


class LitterBug(_File):
    """Writes beside the file and renames, and leaves the temporary file behind when it is killed."""

    name = "broken: leaves files behind"

    def run(self, folder: Path) -> Run:
        return partial(write_beside, folder / "made")


class Forgetful(_File):
    """Says that something is safe before it is."""

    name = "broken: says it too early"

    def run(self, folder: Path) -> Run:
        return partial(promise, folder / "made")

    def damage(self, folder: Path, acks: Sequence[str], old: Any, new: Any) -> str:
        promised = (folder / "promised").exists() and self.result(folder) != new
        return "it was said to be there, and is not" if promised else super().damage(folder, acks, old, new)


class Unlocked(_File):
    """Counts up without a lock: of two at once, one is lost."""

    name = "broken: has no lock"

    def prepare(self, folder: Path) -> None:
        (folder / "made").write_text("0", encoding="utf-8")

    def run(self, folder: Path) -> Run:
        return partial(count_up, folder / "made")

    def damage_by_two(self, folder: Path, winners: Sequence[Any]) -> str:
        return "" if self.result(folder) == b"2" else "one of two was lost"


def count_up(path: Path) -> None:
    """Read, wait until the other has read too, and write."""
    number = int(path.read_text(encoding="utf-8"))
    time.sleep(1.0)
    path.write_text(str(number + 1), encoding="utf-8")


def write_in_place(path: Path) -> None:
    """Write as one should not."""
    path.write_bytes(NEW)


def write_beside(path: Path) -> None:
    """Write under a name that nobody will look for again."""
    beside = path.with_name(f"made.{os.getpid()}")
    beside.write_bytes(NEW)
    beside.rename(path)


def promise(path: Path) -> None:
    """Promise first."""
    path.with_name("promised").touch()
    beside = path.with_name("beside")
    beside.write_bytes(NEW)
    beside.rename(path)
