"""The command that a row was made by, as somebody else can type it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def command_line(
    name: str,
    scale: str,
    *,
    methods: Sequence[str] = (),
    seed: int = 0,
    trials: int | None = None,
    only: Sequence[str] = (),
    grouped: bool | None = None,
    device: str | None = None,
) -> str:
    """Write ``neurise experiment run`` with what bears on the result, and without what says where results lie and who helps."""
    words = ["neurise", "experiment", "run", name, "--scale", scale]
    words += ["--methods", ",".join(methods)] if methods else []
    words += ["--seed", str(seed)] if seed else []
    words += ["--trials", str(trials)] if trials is not None else []
    words += [word for text in only for word in ("--only", text)]
    words += [] if grouped is None else ["--grouped" if grouped else "--single"]
    words += ["--device", device] if device is not None else []
    return shlex.join(words)
