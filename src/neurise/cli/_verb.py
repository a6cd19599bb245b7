"""What every verb shares: errors in one line, and ``--debug`` for all of it."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from neurise.interrupts import raised_outside_imports

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it, and after SIGTERM, which is treated alike."""

EXPECTED: tuple[type[Exception], ...] = (ValueError, OSError, MemoryError, NotImplementedError, ImportError)
"""What wrong input or a full machine leads to. Anything else is a fault of the program and shows where it happened."""

EXPECTED_ELSEWHERE = (
    ("neurise.training.loop", "TrainingDiverged"),
    ("safetensors", "SafetensorError"),  # a full disk, as the weights are written
    ("torch", "OutOfMemoryError"),
)
"""More of them, in modules that are too heavy to be imported for an error that they did not raise."""

Debug = Annotated[bool, typer.Option("--debug", help="Show where in the program an error comes from.")]
MaxUnpacked = Annotated[
    str | None,
    typer.Option(
        help="What a packed file (.gz, .npz) may unpack to.",
        metavar="SIZE",
        show_default="4GB, or a quarter of the free memory",
    ),
]
READS = {"data", "source", "clamp", "wild_type", "like"}
"""Names of parameters that are files of the user's: verbs that have one take ``--max-unpacked``."""


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function: errors become one red line and exit code 1, unless ``--debug`` is given."""

    @functools.wraps(function)
    def command(*args: Any, debug: bool = False, max_unpacked: str | None = None, **options: Any) -> None:
        try:
            with raised_outside_imports(), warnings.catch_warnings(), _unpacking(max_unpacked):
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                function(*args, **options)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # `neurise sample … | head`: click ends quietly
        except Exception as error:
            if debug or not _is_expected(error):
                raise
            complain(describe(error))
            raise typer.Exit(1) from None

    signature = inspect.signature(function, eval_str=True)
    more: dict[str, tuple[Any, Any]] = {"debug": (False, Debug)}
    if READS & signature.parameters.keys():
        more = {"max_unpacked": (None, MaxUnpacked), **more}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (default, annotation) in more.items()
    ]
    parameters = [*signature.parameters.values(), *added]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@contextmanager
def _unpacking(size: str | None) -> Iterator[None]:
    """Set the limit on unpacked files where every process that is started from here finds it, too."""
    if size is None:
        yield
        return
    from neurise.datasets.formats.unpacking import VARIABLE, bytes_of

    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(bytes_of(size, "--max-unpacked"))
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def complain(message: str) -> None:
    """Print one red line to stderr."""
    typer.secho(message, fg=typer.colors.RED, err=True, color=colours())


def colours() -> bool | None:
    """Whether the user asks for colours (FORCE_COLOR) or against them (NO_COLOR); None leaves it to the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def describe(error: Exception) -> str:
    """Put an error into one line."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}"
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning without the line of code that it comes from, which says nothing to a user."""
    typer.secho(f"warning: {' '.join(str(message).split())}", fg=typer.colors.YELLOW, err=True, color=colours())


def _is_expected(error: Exception) -> bool:
    elsewhere = (getattr(sys.modules.get(module), name, None) for module, name in EXPECTED_ELSEWHERE)
    kinds = EXPECTED + tuple(kind for kind in elsewhere if kind is not None)
    # torch reports that the main memory is full with nothing more special than this.
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
