"""What made a row: which code, and which machine."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurise._version import __version__
from neurise.experiments.base import Experiment
from neurise.experiments.parts.sources import PACKAGE, digest_of

if TYPE_CHECKING:
    from neurise.experiments.parts.method import Method


def version(experiment: Experiment, method: str | None = None) -> dict[str, str]:
    """Identify the code that makes the metrics of an experiment's cells with a method: the version, and a digest.

    The digest is of the files that the experiment and the model of the method import, of what these import in turn, and of
    the settings that the method has. A change anywhere else leaves it.
    """
    return {"neurise": __version__, "digest": _digest(type(experiment).__module__, method)}


def script_version(path: str | Path) -> dict[str, str]:
    """Identify the code of a script, with what it imports and the files of a folder ``NAME_tasks`` beside it."""
    place = Path(path)
    tasks = sorted(place.with_name(f"{place.stem}_tasks").glob("*.py"))
    return {"neurise": __version__, "digest": digest_of([place, *tasks])}


def is_current(experiment: Experiment, row: Mapping[str, Any]) -> bool | None:
    """Whether the code that there is now made a row; None where the code of its method is not here."""
    method = row["parameters"].get("method")
    try:
        return bool(row["code"]["digest"] == version(experiment, method)["digest"])
    except (OSError, ImportError, ValueError):
        return None


@cache
def _digest(module: str, method: str | None) -> str:
    roots: list[str | Path] = [_root(module)]
    settings = ""
    if method is not None and (found := _found(method)) is not None:
        roots.append(_root(found.kind.__module__, inspect.getfile(found.kind)))
        settings = repr(
            (found.model, sorted(found.settings.items()), found.form, found.trains, found.bare, found.timed)
        )
    return hashlib.sha256(f"{digest_of(roots)} {settings}".encode()).hexdigest()[:12]


def _root(module: str, file: str | None = None) -> str | Path:
    """Return a module of the package by its name, and one from outside by its file."""
    if module.partition(".")[0] == PACKAGE:
        return module
    return Path(file or str(sys.modules[module].__file__))


def _found(method: str) -> Method | None:
    """Return the method of a cell; None for a name that is the experiment's own, as that of real rows."""
    from neurise.experiments._methods import is_model, named

    return named(method) if is_model(method) else None


def machine(device: str | None) -> dict[str, Any]:
    """Describe where a cell was computed: the kind of machine, and not its name."""
    import torch

    from neurise import devices

    place = devices.resolve(device)
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else _processor()
    return {
        "platform": " ".join(filter(None, (platform.system(), platform.machine(), *platform.libc_ver()))),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": str(place),
        "device_name": name,
    }


@cache
def _processor() -> str:
    """Name the kind of processor; Python itself does not know it on Linux."""
    told = Path("/proc/cpuinfo")
    for line in told.read_text(encoding="utf-8").splitlines() if told.is_file() else []:
        what, _, name = line.partition(":")
        if what.strip() == "model name" and name.strip():
            return name.strip()
    return platform.processor() or platform.machine()
