"""``neurise tune``: search for good parameters of a model on some data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neurise import discovery
from neurise.cli._data import ROWS, SOURCE, CountColumn, LabelColumn, Rows, resolve
from neurise.cli._output import Device, Force, Json, Seed, ask_before_overwriting, print_facts, print_json, say
from neurise.cli._parameters import collect
from neurise.cli._verb import INTERRUPTED

if TYPE_CHECKING:
    from neurise.presets import Configuration

SEARCH, BUDGET = "The search", "The budget"


def tune(
    data: Annotated[str, typer.Argument(help=SOURCE)],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the best configuration, a .json.")],
    model: Annotated[
        str, typer.Option(help=f"Kind of model: {', '.join(discovery.names('neurise.models'))}.")
    ] = "neurise",
    fixed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter that is not to be searched. May be repeated."),
    ] = None,
    trials: Annotated[
        int,
        typer.Option(help="How many trials in all, earlier runs of the study included.", min=1, rich_help_panel=BUDGET),
    ] = 50,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no more trials after so much time.", rich_help_panel=BUDGET)
    ] = None,
    trial_steps: Annotated[
        int | None,
        typer.Option(help="Steps of each trial.", show_default="the model's own steps", rich_help_panel=BUDGET),
    ] = None,
    trial_seconds: Annotated[float | None, typer.Option(help="Time of each trial.", rich_help_panel=BUDGET)] = None,
    workers: Annotated[
        int, typer.Option(help="So many trials at a time, each in a process of its own.", min=1, rich_help_panel=BUDGET)
    ] = 1,
    sampler: Annotated[
        str,
        typer.Option(
            help=f"How parameters are chosen: {', '.join(discovery.names('neurise.tuning.samplers'))}.",
            rich_help_panel=SEARCH,
        ),
    ] = "tpe",
    storage: Annotated[
        str | None,
        typer.Option(
            help="Where trials are kept: a file, or postgresql://user@host/database for many machines.",
            show_default="the output's name with .journal",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(help="Name of the search in its storage.", show_default="the model's", rich_help_panel=SEARCH),
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    rows_drawn: Rows = ROWS,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Search for the parameters that score best on rows held back from training, and write them to a file.

    neurise train --config takes that file. The same command goes on with a search that was interrupted.
    """
    from neurise.tuning.search import Search
    from neurise.tuning.search import tune as search_on
    from neurise.tuning.study import without_password
    from neurise.tuning.task import make_task

    kind = discovery.find("neurise.models", model)
    discovery.find("neurise.tuning.samplers", sampler)
    params = collect(kind, {}, fixed or [])
    place, name = storage or str(output.with_suffix(".journal")), study or model
    if not _belongs(output, without_password(place), name):
        ask_before_overwriting(output, force=force)
    rows = resolve(data, label_column, count_column, rows=rows_drawn)
    task = make_task(rows, model, params, max_steps=trial_steps, max_seconds=trial_seconds, seed=seed, device=device)
    words = [without_password(word) if "://" in word else word for word in sys.argv[1:]]
    about = {"data": data, "command": " ".join(["neurise", *words])}
    search = Search(task, place, name, trials, seconds, sampler, output, about)
    try:
        best = search_on(search, workers=workers)
    except KeyboardInterrupt:
        kept = f"the best so far is in {output}; " if output.exists() else ""
        say(f"interrupted; {kept}the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    _report(best, output, as_json=as_json)


def _belongs(output: Path, storage: str, study: str) -> bool:
    """Whether a file holds the best configuration so far of the same search."""
    from neurise import presets

    try:
        about = presets.read(output).study
    except (OSError, ValueError):
        return False
    return (about.get("storage"), about.get("study")) == (storage, study)


def _report(best: Configuration, output: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"output": str(output), "model": best.model, "params": best.params, "score": best.score, **best.study}
        )
        return
    facts = best.study
    print_facts(
        "",
        {
            "written to": str(output),
            "model": best.model,
            **{name: _short(best.params[name]) for name in facts["searched"]},
            "score": f"{best.score:.4f} nats per row",
            "trials": f"{facts['finished']} finished, {facts['pruned']} pruned, {facts['failed']} failed",
            "kept in": f"{facts['storage']}, study {facts['study']}",
        },
    )
    say(f"neurise train … --config {output} trains with it")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
