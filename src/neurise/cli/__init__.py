"""The command line: one verb per file, found by its file name.

Nothing heavy is imported here or at the top of a verb's file: ``neurise --help`` must answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from neurise import discovery
from neurise._version import __version__
from neurise.cli._verb import verb

NO_ARGUMENTS = ("demo", "theory", "bench", "play")
"""Verbs that do something when nothing more is said; the others show their help."""

app = typer.Typer(
    name="neurise",
    help="Learn generative models of discrete data, sample from them, and measure how good they are.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"neurise {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _name, _offered in discovery.bind("neurise.cli").items():
    if isinstance(_offered, typer.Typer):  # a verb that has verbs of its own
        app.add_typer(_offered, name=_name)
    else:
        app.command(_name, no_args_is_help=_name not in NO_ARGUMENTS)(verb(_offered))


def main() -> None:
    """Run the command line."""
    app(prog_name="neurise")
