"""``neurise experiment``: the paper's figures and tables, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._experiment_files import check, claims, merge
from neurise.cli._experiment_plan import plan
from neurise.cli._experiment_tune import tune
from neurise.cli._output import Device, Json, Seed, print_json, print_table, say
from neurise.cli._verb import INTERRUPTED, verb

if TYPE_CHECKING:
    from neurise.experiments.grid import RunSummary

experiment = typer.Typer(
    help="Run the experiments of the paper, list them, and look at results. All of these take --json and --debug.",
    no_args_is_help=True,
)
RESULTS = Path("results.jsonl")


def show_list(as_json: Json = False) -> None:
    """List the experiments, with what of the paper each reproduces and how many cells each scale has."""
    from neurise import experiments
    from neurise.experiments import grid

    found: list[dict[str, Any]] = []
    for name in experiments.names():
        one = experiments.find(name)
        sizes = {scale: sum(len(unit.cells) for unit in grid.plan(one, scale)) for scale in one.scales}
        found.append(
            {
                "name": name,
                "title": one.title,
                "reproduces": one.reproduces,
                "methods": list(one.methods),
                "more_methods": list(one.more_methods),
                "cells": sizes,
            }
        )
    if as_json:
        print_json({"experiments": found})
        return
    rows = [[entry["name"], *map(str, entry["cells"].values()), entry["reproduces"]] for entry in found]
    print_table(
        "Experiments, and how many cells each scale has", ["", *experiments.SCALES, ""], rows, numbers=(1, 2, 3)
    )


def run(
    name: Annotated[str, typer.Argument(help="Which experiment: see neurise experiment list.")],
    scale: Annotated[str, typer.Option(help="smoke (seconds), laptop (minutes) or paper (its own sizes).")] = "laptop",
    results: Annotated[Path, typer.Option(help="File that finished cells are kept in.")] = RESULTS,
    executor: Annotated[
        str, typer.Option(help="Where cells run: serial, process, dask://HOST:PORT or slurm[:option=value,…].")
    ] = "process",
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many processes or jobs.", show_default="one a core, or one a GPU")
    ] = None,
    device: Device = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            help="Only these, separated by commas: names of the list, any model, or mine.py:Model for a class in a file, "
            "also with settings, as neurise(width=64). May be repeated.",
            show_default="the paper's",
        ),
    ] = None,
    seed: Seed = 0,
    trials: Annotated[
        int | None, typer.Option(min=1, help="At most so many trials of each cell.", show_default="the scale's")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,…", help="Only cells with these values of a parameter. May be repeated."),
    ] = None,
    grouped: Annotated[
        bool | None,
        typer.Option(
            "--grouped/--single",
            help="Train cells that differ in seed and instance together, or each alone.",
            show_default="together at paper scale",
        ),
    ] = None,
    any_code: Annotated[
        bool, typer.Option("--any-code", help="Keep cells that another version of the code has finished.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(help="Begin nothing that would end later; the same command goes on.", min=0)
    ] = None,
    as_json: Json = False,
) -> None:
    """Run an experiment; what is in the results file already is not run again.

    Trials have the seeds SEED, SEED + 1, … Ctrl-C keeps what is finished, and the same command goes on.
    """
    from neurise import experiments
    from neurise.experiments import grid
    from neurise.experiments.parts.command import command_line
    from neurise.experiments.parts.method_names import split

    chosen = [part for text in methods or [] for part in split(text)]
    one = experiments.find(name)
    summary = grid.run(
        one,
        scale,
        results,
        executor=executor,
        workers=workers,
        device=device,
        methods=chosen,
        seed=seed,
        trials=trials,
        only=_parts(only or []),
        grouped=grouped,
        any_code=any_code,
        command=command_line(
            name, scale, methods=chosen, seed=seed, trials=trials, only=only or [], grouped=grouped, device=device
        ),
        seconds=seconds,
    )
    _tell(summary, results)
    if as_json:
        print_json(_facts(summary, name, scale, results))
    else:
        from neurise.cli._experiment_tables import print_rows

        print_rows(one, summary.rows)
        typer.echo(_sentence(summary, results))
    if summary.interrupted:
        say("interrupted; finished cells are kept, and the same command goes on")
        raise typer.Exit(INTERRUPTED)
    if summary.failed:
        raise typer.Exit(1)


def show(
    results: Annotated[Path, typer.Argument(help="Results file of neurise experiment run.")],
    as_json: Json = False,
) -> None:
    """Show what a results file holds."""
    from neurise import experiments
    from neurise.cli._experiment_tables import print_rows, visible
    from neurise.experiments import grid, store
    from neurise.experiments.parts.age import by_code

    contents = store.read(results)
    for line in store.told(results, contents.left_out):
        say(f"warning: {line}")
    if as_json:
        rows = [{key: entry for key, entry in row.items() if key != "arrays"} for row in contents.rows]
        print_json({"results": str(results), "left_out": contents.left_out, "rows": rows})
        return
    for (name, scale, code), rows in by_code(contents.rows).items():
        typer.echo(visible(f"{name}, {scale}: {_counted(rows)}, {code}"))
        if name in experiments.names():
            one = experiments.find(name)
            print_rows(one, grid.in_order(one, scale, rows))


def _parts(only: list[str]) -> dict[str, list[str]]:
    """Read NAME=VALUE,VALUE,…"""
    parts = {}
    for text in only:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise ValueError(f"--only {text}: write NAME=VALUE,VALUE,… as in --only rows=100,1000")
        parts[name.strip()] = [value.strip() for value in values.split(",")]
    return parts


def _counted(rows: list[dict[str, Any]]) -> str:
    failed = sum(row["status"] != "done" for row in rows)
    return f"{len(rows) - failed} finished cells" + (f" and {failed} failed ones" if failed else "")


def _tell(summary: RunSummary, results: Path) -> None:
    from neurise.experiments import store

    for line in store.told(results, summary.left_out):
        say(f"warning: {line}")
    if summary.other_code:
        say(
            f"{results} has {summary.other_code} of these cells from another version of the code; they are kept there and do "
            "not count: --any-code takes them"
        )
    if summary.versions > 1:
        say(f"warning: the code changed while the cells ran; rows of {summary.versions} versions are in {results}")


def _sentence(summary: RunSummary, results: Path) -> str:
    before = f", {summary.before} were there before" if summary.before else ""
    failed = f", {summary.failed} failed" if summary.failed else ""
    finished = summary.before + summary.done
    return f"{finished} of {summary.cells} cells finished{before}{failed}; {summary.seconds:.0f} s; {results}"


def _facts(summary: RunSummary, name: str, scale: str, results: Path) -> dict[str, Any]:
    return {
        "experiment": name,
        "scale": scale,
        "results": str(results),
        "cells": summary.cells,
        "finished_before": summary.before,
        "finished_now": summary.done,
        "failed": summary.failed,
        "interrupted": summary.interrupted,
        "other_code": summary.other_code,
        "left_out": summary.left_out,
        "seconds": round(summary.seconds, 3),
        "rows": [{key: entry for key, entry in row.items() if key != "arrays"} for row in summary.rows],
    }


experiment.command("list")(verb(show_list))
experiment.command("run", no_args_is_help=True)(verb(run))
experiment.command("plan", no_args_is_help=True)(verb(plan))
experiment.command("show", no_args_is_help=True)(verb(show))
experiment.command("tune", no_args_is_help=True)(verb(tune))
experiment.command("check", no_args_is_help=True)(verb(check))
experiment.command("claims", no_args_is_help=True)(verb(claims))
experiment.command("merge", no_args_is_help=True)(verb(merge))
