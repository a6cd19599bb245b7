"""``neurise data``: make data sets, list them, look at them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._data import (
    ROWS,
    SOURCE,
    CountColumn,
    DropColumn,
    LabelColumn,
    Missing,
    Rows,
    find,
    is_file,
    load,
    split,
    with_columns,
    with_rows,
)
from neurise.cli._output import (
    Force,
    Json,
    ask_before_overwriting,
    print_columns,
    print_facts,
    print_json,
    print_table,
    say,
)
from neurise.cli._verb import verb

if TYPE_CHECKING:
    from neurise.dataset import Dataset

data = typer.Typer(
    help="Make data sets, list them, and look at any of them. All three take --json and --debug.",
    no_args_is_help=True,
)
SIGNS = {"in": "∈ ", "pm": "±", "rho": "ρ", "mu": "μ", "propto": "∝ ", "sum": "Σ", "sigma": "σ", "psi": "ψ"}
SIGNS |= {"langle": "⟨", "rangle": "⟩"}
OTHERS = {"allow_extra_args": True, "ignore_unknown_options": True}


def make(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="NAME", help=SOURCE)],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .npz holds everything.")],
    rows: Rows = ROWS,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the data set, where it has one, and of the rows that are drawn.", min=0, show_default="0"
        ),
    ] = None,
    rows_seed: Annotated[
        int | None,
        typer.Option(
            help="Other rows of the same data set: a seed for the rows alone.", min=0, show_default="that of --seed"
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the data set. May be repeated."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a data set and write it to a file.

    The options of the data set itself (neurise data list shows them) are given like any others:
    neurise data make edwards_anderson --side 4 --J 0.5 -n 1000 -o spins.npz
    """
    from neurise.cli._options import parameters_of, settings_to_texts, words_to_texts
    from neurise.datasets.files import check_ending, write_dataset

    if source.startswith("-"):
        raise ValueError(f"{source}: the name of the data set comes first, then its options")
    check_ending(output)
    name, texts = split(source)
    for more in (words_to_texts(context.args), settings_to_texts(settings or [])):
        if twice := [option for option in more if option in texts]:
            raise ValueError(f"{twice[0]} was given twice, as {texts[twice[0]]!r} and as {more[twice[0]]!r}")
        texts |= more
    if seed is not None and not is_file(name) and "seed" in parameters_of(find(name)):
        texts.setdefault("seed", str(seed))
    ask_before_overwriting(output, force=force)
    began = time.monotonic()
    made = with_rows(load(name, texts), rows, rows_seed if rows_seed is not None else seed or 0)
    write_dataset(output, made)
    _tell_what_is_lost(made, output)
    _report(made, output, time.monotonic() - began, as_json=as_json)


def _tell_what_is_lost(made: Dataset, output: Path) -> None:
    from neurise.datasets.formats.endings import ending_of

    if ending_of(output) == ".npz":
        return
    lost = {
        "the test rows": made.test,
        "the validation rows": made.validation,
        "the law": made.law,
        "the couplings": made.couplings,
    }
    names = [name for name, part in lost.items() if part is not None]
    if names:
        say(f"{output} holds the rows alone; {', '.join(names)} would go into an .npz file")


def _report(made: Dataset, output: Path, seconds: float, *, as_json: bool) -> None:
    parts = {"rows": made.train, "validation": made.validation, "test": made.test}
    facts: dict[str, Any] = {
        "file": str(output),
        "name": made.name,
        **{part: len(values) for part, values in parts.items() if values is not None},
        "sites": made.space.sites,
        "states": made.space.states,
        "law": made.law is not None,
        "seconds": round(seconds, 3),
    }
    if as_json:
        print_json(facts)
        return
    sizes = ", ".join(f"{len(values):,} {part}" for part, values in parts.items() if values is not None)
    shown = {
        "written to": output,
        "data set": made.name,
        "size": f"{sizes} of {made.space.sites:,} sites, {made.space.states} states",
        "time": f"{seconds:.2f} s",
    }
    print_facts("", shown)


def list_(as_json: Json = False) -> None:
    """List all data sets with their options."""
    import inspect

    from neurise import discovery
    from neurise.cli._options import parameters_of

    found = list[dict[str, Any]]()
    for name, function in discovery.bind("neurise.datasets").items():
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        options = {
            option: None if parameter.default is parameter.empty else parameter.default
            for option, parameter in parameters_of(function).items()
        }
        found.append({"name": name, "summary": _plain(summary), "options": options})
    if as_json:
        print_json({"datasets": found})
        return
    table = [[entry["name"], f"{entry['summary']}\n{_written(entry['options'])}"] for entry in found]
    print_table("", ["data set", "what it is, and its options"], table)


def _written(options: dict[str, Any]) -> str:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return "  ".join(f"--{name}" + ("" if value is None else f" {value}") for name, value in named.items())


def _plain(text: str) -> str:
    """Write the formulas of a line as a terminal can show them."""
    import re

    def formula(found: re.Match[str]) -> str:
        return re.sub(r"\\([a-z]+) ?", lambda name: SIGNS.get(name[1], name[1]), found[1]).replace("\\", "")

    return re.sub(r":math:`([^`]*)`", formula, text).replace("``", "").rstrip(",:")


def info(
    source: Annotated[str, typer.Argument(metavar="FILE_OR_NAME", help=SOURCE)],
    rows: Rows = ROWS,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    missing: Missing = None,
    as_json: Json = False,
) -> None:
    """Describe a data set: its size, symbols, constant sites, strongest correlations, and a picture."""
    from neurise.cli._columns import has_columns, tell_columns
    from neurise.cli._picture import picture
    from neurise.cli._summary import columns, summary
    from neurise.cli._summary_table import readable

    name, texts = split(source)
    if missing is not None:
        texts["missing"] = missing
    elif is_table(name):
        texts.setdefault("missing", "drop")
    options = with_columns(name, texts, label_column, count_column, drop_column)
    found = with_rows(load(name, options), rows, 0)
    if has_columns(found):
        if found.info.get("missing", {}).get("rows"):
            found = load(name, {**options, "missing": "keep"})
        tell_columns(name, found, as_json=as_json)
        return
    facts, own = summary(found), columns(found) if is_table(name) else []
    if as_json:
        print_json({"source": name, **facts, "columns": [column.to_dict() for column in own]})
        return
    print_facts(name, readable(facts))
    if own:
        print_columns(own)
    typer.echo(picture(found))


def is_table(name: str) -> bool:
    """Whether a name is that of a file in which values may be missing."""
    from neurise.datasets.formats.endings import TABLES, ending_of, has_ending
    from neurise.datasets.formats.open import begins_like_fasta

    path = Path(name)
    return path.is_file() and has_ending(path) and ending_of(path) in TABLES and not begins_like_fasta(path)


for _name, _function in (("make", make), ("list", list_), ("info", info)):
    data.command(_name, no_args_is_help=_name != "list", context_settings=OTHERS if _name == "make" else None)(
        verb(_function)
    )
