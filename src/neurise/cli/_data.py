"""Where a verb's data comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from neurise.dataset import Dataset

LabelColumn = Annotated[
    str | None,
    typer.Option(help="Where the labels are: a column of a .csv file (name, or number from 0), an array of a .npz file."),
]


def resolve(data: str, label_column: str | None = None) -> Dataset:
    """Find a data set by what was typed: the name of a file."""
    from neurise.datasets.files import files

    return files(data, label_column=label_column)
