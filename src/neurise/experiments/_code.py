"""What made a row: which code, and which machine."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from neurise import discovery
from neurise._version import __version__

WITHOUT_INFLUENCE = ("bench", "cli", "drawing", "executors", "progress", "report", "tune", "tuning")
"""Parts of the package that show results or spread work, and change no metric."""
SHOWING = (
    "__init__",
    "_published",
    "_code",
    "figures",
    "command",
    "summary",
    "unit",
    "grid",
    "store",
    "_row_form",
    "_unknown",
)
"""Those of the experiments themselves."""


@cache
def version(experiment: str) -> dict[str, str]:
    """Identify the code that makes the metrics of an experiment: the version, and a digest of the sources."""
    root = Path(__file__).parent.parent
    here = Path(__file__).parent.name
    others = {*SHOWING, *discovery.names(__package__)} - {experiment}
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in WITHOUT_INFLUENCE or (parts[0] == here and parts[-1] in others):
            continue
        total.update("/".join(parts).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return {"neurise": __version__, "digest": total.hexdigest()[:12]}


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
