"""``neurise play``: a local page to watch a model sample, hold sites, compare models and score rows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from neurise.cli._data import ROWS, SOURCE, CountColumn, DropColumn, LabelColumn, resolve
from neurise.cli._output import Device, Json, print_json, say

if TYPE_CHECKING:
    from neurise.player.server import Page

TOKEN = "NEURISE_PLAY_TOKEN"
"""A variable with the token of the address, for a page that is to be found again after the server was started anew."""
SHIPPED = ("glass", "glass_5x5", "potts", "ghz", "digits")


def play(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help=f"Folders of models of the same rows, or a shipped one: {', '.join(SHIPPED)}. Without any: {SHIPPED[0]}.",
        ),
    ] = None,
    data: Annotated[str | None, typer.Option(help=f"Rows to compare with. {SOURCE}")] = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    layout: Annotated[
        str | None,
        typer.Option(
            help="How sites are laid out: lattice, image (with a size, image:28x28), sequence, register, table or graph. "
            "By default it is chosen by the data."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to serve the page at. Any other than this lets other machines reach it.")
    ] = "127.0.0.1",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Show what a model does on a page of your own machine: watch noise become a configuration, hold sites and ask.

    The page needs the packages of the extra play. It is served to this machine alone, at an address with a token; Ctrl-C ends
    it.

    Examples: neurise play · neurise play model/ --data rows.csv · neurise play ours/ theirs/ --layout lattice:4x4
    """
    from neurise.extras import need

    need("starlette", "play")
    need("uvicorn", "play")
    from neurise.player.app import one_thread
    from neurise.player.open import opened
    from neurise.player.server import serve

    known = None if data is None else resolve(data, label_column, count_column, drop_column=drop_column, rows=ROWS)
    stage = opened(models or [], known, layout=layout, device=device)
    one_thread()
    page = serve(stage, host=host, port=port, token=os.environ.get(TOKEN) or None)
    if as_json:
        print_json({"url": page.url, "models": [actor.name for actor in stage.actors]})
    say(f"{stage.title}: {page.url}")
    say("Ctrl-C ends the page")
    if browser:
        import webbrowser

        webbrowser.open(page.url)
    until_interrupted(page)


def until_interrupted(page: Page) -> None:
    """Serve a page until Ctrl-C."""
    try:
        page.wait()
    except KeyboardInterrupt:
        pass
    finally:
        page.stop()
        say("the page has ended")
        if page.workers.working:  # a thread inside a long computation would abort the interpreter as it ends
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
