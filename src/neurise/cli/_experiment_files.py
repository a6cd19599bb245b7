"""``neurise experiment check`` and ``merge``: what is done with results files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurise.cli._output import Json, print_json, print_table, say


def check(
    results: Annotated[list[Path], typer.Argument(help="Results files of neurise experiment run.")],
    as_json: Json = False,
) -> None:
    """Say which rows are older than the code they depend on.

    A row depends on the files that its experiment and the model of its method import, and on no others.
    """
    from neurise.experiments import store
    from neurise.experiments.parts.age import ages

    found = {path: ages(store.read(path).rows) for path in results}
    if as_json:
        print_json({str(path): [age._asdict() for age in lines] for path, lines in found.items()})
        return
    for path, lines in found.items():
        rows = [
            [age.experiment, age.scale, age.method or "", f"{age.current:,}", f"{age.older:,}", f"{age.unknown:,}"]
            for age in lines
        ]
        heads = ["experiment", "scale", "method", "current", "older", "unknown"]
        print_table(f"{path}: rows by the code that made them", heads, rows, numbers=(3, 4, 5))
        older = sum(age.older for age in lines)
        total = sum(age.current + age.older + age.unknown for age in lines)
        typer.echo(f"{older:,} of {total:,} rows are older than the code they depend on")


def claims(
    results: Annotated[list[Path], typer.Argument(help="Results files of neurise experiment run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write, in Markdown.")],
    page: Annotated[
        str, typer.Option(help="Page of neurise report that has the rows, as the links name it.")
    ] = "paper.html",
    scale: Annotated[str, typer.Option(help="Scale whose rows decide.")] = "paper",
    as_json: Json = False,
) -> None:
    """Write which claims of the paper the rows confirm, refute or leave open, with the difference that decides each."""
    from neurise.experiments import store
    from neurise.files import write_text
    from neurise.report.claims import markdown, verdicts

    found = verdicts([row for path in results for row in store.read(path).rows], scale)
    write_text(output, markdown(found, page, scale))
    if as_json:
        print_json({"claims": [{"claim": one.claim.text, "verdict": one.word, "reason": one.reason} for one in found]})
        return
    rows = [[verdict.word, verdict.claim.text] for verdict in found]
    print_table(f"Claims of the paper, written to {output}", ["verdict", "claim"], rows)


def merge(
    results: Annotated[list[Path], typer.Argument(help="Results files to take rows from.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File that their rows are added to.")],
    as_json: Json = False,
) -> None:
    """Add the rows of several results files to one, each once: parts of a grid that ran in different places.

    Rows that the file has already stay as they are; a finished row is added beside a failed one of the same cell.
    """
    from neurise.experiments import store

    added = store.merge(results, output)
    for path, left_out in added.left_out.items():
        for line in store.told(path, left_out):
            say(f"warning: {line}")
    if as_json:
        print_json({"output": str(output), "added": added.rows, "there_before": added.before})
        return
    typer.echo(f"{added.rows:,} rows added to {output}, which has {added.before + added.rows:,} now")
