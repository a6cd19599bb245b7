"""Where a verb's data comes from: a file, or a data set by its name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from neurise.dataset import Dataset

LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Where the labels are: a column of a .csv file (name, or number from 0), an array of a .npz file."
    ),
]
CountColumn = Annotated[
    str | None,
    typer.Option(help="Where the counts or weights are: a column of a .csv file (name, or number from 0)."),
]
DropColumn = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Leave a column of a .csv file out. May be repeated."),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="What stands for a missing value in a .csv file, besides empty cells, NA, NaN, null and None: "
        "? say; or drop, to leave out lines that lack one.",
    ),
]
Rows = Annotated[
    int, typer.Option("--rows", "-n", min=1, help="How many rows to draw, of a data set that is a law and no file.")
]
SOURCE = (
    "A file of rows, a folder or pattern of .parquet, .arrow or .npy files, or a data set by its name, with options: "
    "edwards_anderson:side=4,seed=1 (see neurise data list)."
)
ROWS = 10_000

OPTIONS = re.compile(r"^(?P<name>.*?):(?P<options>\w+\s*=.*)$", re.DOTALL)


def resolve(
    data: str,
    label_column: str | None = None,
    count_column: str | None = None,
    *,
    drop_column: list[str] | None = None,
    missing: str | None = None,
    rows: int | None = ROWS,
    rows_seed: int = 0,
    weigh: bool = True,
) -> Dataset:
    """Find a data set by what was typed.

    It is a file if there is one, or if it ends like one; else the name of a data set. Both may carry options,
    ``NAME:option=value,option=value``. A data set that is a law alone gets ``rows`` rows drawn from it, unless that is None.
    Without ``weigh``, sequences are not weighed by how many resemble them, which takes the square of their number.
    """
    name, texts = split(data)
    if missing is not None:
        if not is_file(name):
            raise ValueError(f"--missing is for files, and {name} is a data set")
        texts["missing"] = missing
    if not weigh and _is_alignment(name):
        texts = {"theta": "none", **texts}
    return with_rows(load(name, with_columns(name, texts, label_column, count_column, drop_column)), rows, rows_seed)


def with_columns(
    name: str,
    texts: Mapping[str, str],
    label_column: str | None,
    count_column: str | None,
    drop_column: list[str] | None = None,
) -> dict[str, str]:
    """Add the columns of labels and of counts, and those to leave out, to the options of a file."""
    found = dict(texts)
    for option, what, column in (
        ("label_column", "labels", label_column),
        ("count_column", "counts", count_column),
        ("drop_column", "columns", ",".join(drop_column) if drop_column else None),
    ):
        if column is None:
            continue
        word = f"--{option.replace('_', '-')}"
        if not is_file(name):
            raise ValueError(f"{word} is for files, and {name} is a data set, which knows its {what}")
        if option in texts:
            raise ValueError(f"{option} was given twice, as {texts[option]!r} and as {word} {column}")
        found[option] = column
    return found


def split(data: str) -> tuple[str, dict[str, str]]:
    """Take the options off a name; a file whose name looks as if it had some is that file."""
    from neurise.cli._options import settings_to_texts

    found = OPTIONS.match(data)
    if found is None or Path(data).exists():
        return data, {}
    # A comma ends a value only where another option follows: values may be lists.
    return found["name"], settings_to_texts(re.split(r",(?=\s*\w+\s*=)", found["options"]))


def is_file(name: str) -> bool:
    """Whether a name is that of a file, be it there or not."""
    from neurise.datasets.formats.endings import has_ending

    return Path(name).exists() or has_ending(Path(name)) or any(sign in name for sign in "*?[")


def _is_alignment(name: str) -> bool:
    from neurise.datasets.formats.endings import FASTA, ending_of

    return is_file(name) and not Path(name).is_dir() and ending_of(Path(name)) in FASTA


def load(name: str, texts: Mapping[str, str]) -> Dataset:
    """Read a file or make a data set, with options as they were typed."""
    from neurise.cli._options import typed
    from neurise.cli._stored import sampled, stored_rows

    stored = stored_rows(name, texts)
    if stored is not None:
        return sampled(stored, name)
    if is_file(name):
        function, place = _reader(name)
        texts = {place: name, **texts}
    else:
        function = find(name)
    made: Dataset = function(**typed(name, function, texts))
    return made


def _reader(name: str) -> tuple[Any, str]:
    """Say what reads a file, and under which name it takes the path: an annealer's reads bring options of their own."""
    from neurise.datasets.dwave import dwave
    from neurise.datasets.files import files, holds_reads
    from neurise.datasets.formats.counts import holds_counts

    path = Path(name)
    is_json = path.suffix.lower() == ".json" and not (path.is_file() and holds_counts(path))
    is_reads = is_json or (path.suffix.lower() == ".npz" and holds_reads(path))
    return (dwave, "source") if is_reads else (files, "path")


def find(name: str) -> Any:
    """Find the function of a data set; near names are suggested for an unknown one."""
    from neurise import discovery

    offered = discovery.names("neurise.datasets")
    if name not in offered:
        close = difflib.get_close_matches(name, offered, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"data sets are: {', '.join(offered)}"
        raise ValueError(f"there is neither a file nor a data set {name!r}; {hint}")
    return discovery.find("neurise.datasets", name)


def with_rows(data: Dataset, rows: int | None, seed: int) -> Dataset:
    """Draw rows from a data set that has none and knows its law."""
    if data.train is not None or data.draw is None or rows is None:
        return data
    return replace(data, train=data.sample(rows, seed=seed))
