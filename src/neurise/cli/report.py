"""``neurise report``: results as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurise.cli._output import Force, Json, ask_before_overwriting, print_json, print_table, say


def report(
    results: Annotated[list[Path], typer.Argument(help="Files that neurise experiment run has written.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page, an .html file.", show_default="the first results file's name with .html"
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What stands above it all.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put every figure and table of some results on one page that opens without a server or a connection."""
    from neurise.report.build import TITLE, build
    from neurise.report.left_out import left_out

    output = output or results[0].with_suffix(".html")
    if output.resolve() in {path.resolve() for path in results}:
        raise ValueError(f"-o {output} is one of the results files, and would replace it")
    ask_before_overwriting(output, force=force)
    made = build(results, title=title or TITLE)
    made.write(output)
    sections = made.gathered.sections
    if as_json:
        listed = [
            {
                "experiment": section.experiment.name,
                "scale": section.scale,
                "done": section.cells[0],
                "planned": section.cells[1],
                "failed": len(section.failed),
                "not_run": left_out(section),
            }
            for section in sections
        ]
        print_json({"output": str(output), "sections": listed, "left_out": made.gathered.left_out})
        return
    rows = [
        [section.experiment.name, section.scale, str(section.cells[0]), str(section.cells[1]), str(len(section.failed))]
        for section in sections
    ]
    print_table(str(output), ["", "scale", "done", "of", "failed"], rows, numbers=(2, 3, 4))
    for told in made.gathered.told:
        say(f"warning: {told}")
    for name, count in made.gathered.unknown.items():
        say(
            f"warning: {count} {'row' if count == 1 else 'rows'} of {name!r} left out: this version has no such experiment"
        )
