"""A verb that several processes, started by torchrun, carry out together."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from neurise.cli._verb import complain, describe


def by_a_team(function: Callable[..., None]) -> Callable[..., None]:
    """Run a verb in all processes; only the first one prints, unless another one fails."""

    @functools.wraps(function)
    def command(*args: Any, device: str | None = None, **options: Any) -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # torch need not be imported to know
            function(*args, device=device, **options)
            return
        from neurise.training import distributed

        with distributed.joined(device) as team:
            if team is None or team.is_leader:
                function(*args, device=device if team is None else str(team.device), **options)
                return
            _silently(functools.partial(function, *args, device=str(team.device), **options), team.rank)

    return command


def _silently(work: Callable[[], None], rank: int) -> None:
    stderr = sys.stderr
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            work()
    except (typer.Exit, KeyboardInterrupt):
        raise
    except Exception as error:
        with redirect_stderr(stderr):
            complain(f"process {rank}: {describe(error)}")
        raise typer.Exit(1) from error
