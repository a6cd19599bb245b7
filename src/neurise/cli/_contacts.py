"""``neurise structure --contacts``: ranked pairs, as a table, as a file, as a map."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._output import print_facts, print_json, print_table

if TYPE_CHECKING:
    from neurise.structure import Contacts, Structure

PANEL = "Contacts"
Asked = Annotated[
    bool,
    typer.Option(
        "--contacts",
        help="Rank pairs by the Frobenius norm of their couplings with the average-product correction.",
        rich_help_panel=PANEL,
    ),
]
MinSeparation = Annotated[
    int | None,
    typer.Option(min=1, help="Rank pairs so many sites apart, or more.", show_default="1", rich_help_panel=PANEL),
]
LeaveOut = Annotated[
    str | None,
    typer.Option(
        help="Symbols that do not count, with commas between them: the gap, - , of an alignment.", rich_help_panel=PANEL
    ),
]
Sites = Annotated[
    str | None,
    typer.Option(help="Rank pairs of these sites only: 3,5,10-20.", show_default="all", rich_help_panel=PANEL),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write all ranked pairs: a .csv or .tsv file.", rich_help_panel=PANEL),
]
SHOWN = 40


def check_options(asked: bool, **options: Any) -> None:
    """Refuse options of contacts where none are asked for, and a file that they cannot be written to."""
    from neurise.datasets.formats.endings import TABLES, ending_of

    if not asked:
        for name, value in options.items():
            if value is not None:
                raise ValueError(f"--{name.replace('_', '-')} is for --contacts")
    output = options.get("output")
    if output is not None and ending_of(output) not in TABLES:
        raise ValueError(f"{output}: contacts are written to {' or '.join(TABLES)} (and .gz behind them)")


def rank(found: Structure, *, min_separation: int | None, leave_out: str | None, sites: str | None) -> Contacts:
    """Rank the pairs of a recovered structure, as the options say."""
    from neurise.structure import contacts

    known = {str(symbol): symbol for symbol in found.symbols.tolist()}
    words = [] if leave_out is None else [word.strip() for word in leave_out.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise ValueError(f"--leave-out {word}: the symbols are {', '.join(list(known)[:25])}")
    chosen = None if sites is None else _numbers(sites)
    symbols = [known[word] for word in words]
    return contacts(found, min_separation=min_separation or 1, leave_out=symbols, sites=chosen)


def _numbers(text: str) -> list[int]:
    """Read 3,5,10-20."""
    numbers = list[int]()
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", word)
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise ValueError(f"--sites {text}: {word!r} is neither a site nor a range; write 3,5,10-20")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return numbers


def report(
    title: str, found: Contacts, structure: Structure, output: Path | None, figure: Path | None, *, as_json: bool
) -> None:
    """Write, draw and print the ranked pairs."""
    if output is not None:
        _write(output, found)
    if figure is not None:
        from neurise.structure import draw_contacts

        draw_contacts(found, figure)
    written = {name: str(path) for name, path in (("file", output), ("figure", figure)) if path is not None}
    if as_json:
        print_json(
            {"contacts": found.to_dict(), "constant": list(structure.constant), "rows": structure.rows, **written}
        )
        return
    table = [
        [str(place), f"{i}–{j}", str(j - i), f"{found.scores[i, j]:.4f}", f"{found.norms[i, j]:.4f}"]
        for place, (i, j) in enumerate(found.pairs[:SHOWN].tolist(), 1)
    ]
    if table:
        print_table(title, ["rank", "pair", "apart", "corrected", "norm"], table, numbers=(0, 2, 3, 4))
    more = f", {len(found.pairs) - SHOWN:,} of them not listed" if len(found.pairs) > SHOWN else ""
    facts = {"pairs": f"{len(found.pairs):,}{more}", "contexts": f"{structure.rows:,} distinct rows"}
    if structure.constant:
        named = ", ".join(map(str, structure.constant[:12])) + (", …" if len(structure.constant) > 12 else "")
        facts["undefined"] = f"sites {named} never vary: their pairs are left out"
    if written:
        facts["written to"] = ", ".join(written.values())
    print_facts("", facts)


def _write(path: Path, found: Contacts) -> None:
    import csv

    from neurise.datasets.formats.endings import ending_of, is_packed
    from neurise.datasets.formats.open import create_text
    from neurise.files import write_atomically

    def write(place: Path) -> None:
        with create_text(place, packed=is_packed(path)) as file:
            writer = csv.writer(file, delimiter="\t" if ending_of(path) == ".tsv" else ",", lineterminator="\n")
            writer.writerow(["rank", "first", "second", "separation", "corrected", "norm"])
            for number, (i, j) in enumerate(found.pairs.tolist(), 1):
                writer.writerow([number, i, j, j - i, found.scores[i, j].item(), found.norms[i, j].item()])

    write_atomically(path, write)
