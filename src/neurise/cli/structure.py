"""``neurise structure``: the couplings, the fields and the graph that a saved model has learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neurise.cli import _contacts, _programmed
from neurise.cli._data import SOURCE, CountColumn, LabelColumn, resolve
from neurise.cli._figure import check_figure
from neurise.cli._output import (
    Device,
    Force,
    Json,
    Seed,
    ask_before_overwriting,
    print_facts,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from neurise.structure import Comparison, Structure

SHOWN = 40
"""Edges that are listed one by one."""
DRAWN = 100_000
FIELDS = 4
"""Fields that are listed."""


def structure(
    model: Annotated[Path, typer.Argument(help="Folder of a model.")],
    data: Annotated[str, typer.Option("--data", help=f"Rows to take as contexts, and the truth if known. {SOURCE}")],
    threshold: Annotated[
        float | None, typer.Option(help="Strength above which a pair is an edge.", show_default="between two groups")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=1, help="How many rows to draw, of a data set that is a law and no file.")
    ] = DRAWN,
    contexts: Annotated[
        int | None,
        typer.Option(min=1, help="How many distinct rows to use.", show_default="as many as 2^18 evaluations allow"),
    ] = None,
    cycle: Annotated[
        int | None,
        typer.Option(min=0, help="With soft noise: use the conditionals of this cycle.", show_default="clean ones"),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the graph, or the map of contacts: a .png, .svg or .pdf file.")
    ] = None,
    layout: _programmed.Layout = None,
    programmed: _programmed.Programmed = None,
    contacts: _contacts.Asked = False,
    min_separation: _contacts.MinSeparation = None,
    leave_out: _contacts.LeaveOut = None,
    sites: _contacts.Sites = None,
    output: _contacts.Output = None,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Recover the pair interactions that a saved model has learnt.

    A model that learnt an energy has its couplings ready, with errors; any other is asked about pairs of sites in the
    contexts of the data, and so is every model where --contexts, --cycle or --threshold is given. Where the couplings of
    the data are known, the recovered ones are compared with them.

    Examples: neurise structure model/ --data rows.csv --figure graph.png · neurise structure model/ --data reads.npz
    --layout pegasus --programmed reads.npz --figure chip.png · neurise structure model/ --data family.fasta
    --contacts --min-separation 5 --leave-out - -o contacts.csv
    """
    from neurise.loading import load
    from neurise.structure import compare, draw, recover
    from neurise.structure.door import labels_of

    check_figure(figure, force=force)
    _contacts.check_options(contacts, min_separation=min_separation, leave_out=leave_out, sites=sites, output=output)
    if output is not None:
        ask_before_overwriting(output, force=force)
    _programmed.check_layout(layout, figure, contacts=contacts)
    told = None if programmed is None else _programmed.read_programmed(programmed)
    known = resolve(data, label_column, count_column, rows=rows, rows_seed=seed)
    fitted = load(model, device)
    found = getattr(fitted, "structure_", None) if cycle is contexts is threshold is None else None
    if found is None:
        found = recover(fitted, known, cycle=cycle, rows=contexts, threshold=threshold, seed=seed, verbose=None)
    elif len(found.tables) != known.space.sites:
        raise ValueError(f"the model has {len(found.tables)} sites; in {known.name} there are {known.space.sites}")
    if told is not None:
        found = found.with_programmed(told, labels=labels_of(known))
    if contacts:
        ranked = _contacts.rank(found, min_separation=min_separation, leave_out=leave_out, sites=sites)
        _contacts.report(f"{model} on {data}", ranked, found, output, figure, as_json=as_json)
        return
    result = None if known.edges is None or known.couplings is None else compare(found, known)
    if figure is not None:
        draw(found, figure, known, layout=layout, programmed=told)
    if as_json:
        written = {} if figure is None else {"figure": str(figure)}
        truth = None if result is None else result.to_dict()
        print_json({"model": str(model), "data": data, **found.to_dict(), "truth": truth, **written})
        return
    _report(f"{model} on {data}", found, result, figure)


def _report(title: str, found: Structure, result: Comparison | None, figure: Path | None) -> None:
    first, second = found.edges.T
    values, errors = found.couplings[first, second], found.errors[first, second]
    order = abs(values).argsort(kind="stable")[::-1]
    listed = [
        [f"{first[k]}–{second[k]}", f"{values[k]:+.3f}", f"{errors[k]:.3f}", f"{found.scores[first[k], second[k]]:.3f}"]
        for k in order[:SHOWN].tolist()
    ]
    if listed:
        print_table(title, ["edge", "coupling", f"± ({found.errors_by})", "strength"], listed, numbers=(1, 2, 3))
    sites = len(found.scores)
    more = f", {len(order) - SHOWN} of them not listed" if len(order) > SHOWN else ""
    facts: dict[str, str] = {
        "edges": f"{len(order)} of {sites * (sites - 1) // 2} pairs{more}",
        "rule": found.rule if found.threshold is None else f"{found.rule}: strength above {found.threshold:.3f}",
        **(
            {"contexts": f"{found.rows:,} distinct rows"}
            if found.errors_by == "counting"
            else {"learnt from": f"{found.rows:,} rows"}
        ),
    }
    if found.field_errors is not None and found.states == 2:
        facts["fields"] = _strongest_fields(found)
    if found.products:
        left = len(found.products) - SHOWN
        facts["products"] = ", ".join(map(str, found.products[:SHOWN])) + (f", {left} more" if left > 0 else "")
    if found.temperature is not None:
        taken = found.temperature
        facts["temperature"] = (
            f"{taken.value:.4f} ± {taken.value_error:.4f} of the programmed couplings (slope {taken.slope:.4f} ± "
            f"{taken.error:.4f} over {taken.pairs} pairs, scatter {taken.scatter:.2f} times the errors)"
        )
        if taken.slope < 0:
            facts["temperature"] += "; a negative one: are the programmed couplings those of E = Σ J s s? Give −J"
    if found.constant:
        sites_named = ", ".join(map(str, found.constant[:12])) + (", …" if len(found.constant) > 12 else "")
        facts["undefined"] = f"sites {sites_named} never vary: nothing can be said of their couplings"
    if result is not None:
        facts |= {
            "true edges": f"{result.true_edges}: {len(result.missed)} missed, {len(result.false)} false, "
            f"{len(result.wrong_signs)} of the wrong sign",
            "area under ROC": f"{result.area:.4f}",
            "RMS error": f"{result.rms:.3f} of all couplings, {result.rms_edges:.3f} of the edges', "
            f"{result.rms_fields:.3f} of the fields; slope {result.slope:.3f}",
        }
    if figure is not None:
        facts["written to"] = str(figure)
    print_facts("" if listed else title, facts)


def _strongest_fields(found: Structure) -> str:
    """Write the fields that are furthest from zero, with their errors."""
    assert found.field_errors is not None
    fields, errors = found.fields, found.field_errors
    order = [site for site in abs(fields).argsort(kind="stable")[::-1].tolist() if fields[site] == fields[site]]
    named = [f"{site}: {fields[site]:+.3f} ± {errors[site]:.3f}" for site in order[:FIELDS]]
    return ", ".join(named) + (", …" if len(order) > FIELDS else "")
