"""The options of ``neurise train`` that set rows apart: some to test with later, some to validate with on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._data import resolve

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.holdout import Split
    from neurise.modeling.model import Model

PANEL = "Rows that are set apart"
TestFraction = Annotated[
    float | None,
    typer.Option(
        help="Hold this share of the rows back, for neurise evaluate on the same data to measure with.",
        show_default="none",
        rich_help_panel=PANEL,
    ),
]
Validation = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|FRACTION",
        help="What training stops by: rows of another file, or a share of these rows.",
        show_default="the data's own validation rows, or a tenth",
        rich_help_panel=PANEL,
    ),
]


def hold_back_tests(data: Dataset, fraction: float | None, seed: int) -> tuple[Dataset, Split | None]:
    """Hold a share of the rows back, and say how that was done; nothing where no share is named."""
    if fraction is None or fraction == 0:
        return data, None
    from neurise.holdout import Split, hold_back

    chosen = Split(fraction, seed)
    return hold_back(data, chosen), chosen


def with_validation(
    data: Dataset,
    validation: str | None,
    kind: type[Model],
    label_column: str | None,
    count_column: str | None,
    drop_column: list[str] | None = None,
) -> tuple[Dataset, dict[str, Any]]:
    """Take the validation rows of another file, or their share as a parameter of the model."""
    if validation is None:
        return data, {}
    if "training__validation_fraction" not in kind.leaves():
        raise ValueError(f"--validation {validation}: a {kind.__name__} is counted, not trained, and stops by nothing")
    none: dict[str, Any] = {"validation": None, "validation_labels": None, "validation_weights": None}
    share = _share(validation)
    if share is not None:
        return replace(data, **none), {"training__validation_fraction": share}
    found = resolve(validation, label_column, count_column, drop_column=drop_column, rows=None)
    if found.train is None:
        raise ValueError(f"--validation {validation} has no rows")
    if found.space.sites != data.space.sites:
        raise ValueError(f"--validation {validation} has {found.space.sites} sites, and the data {data.space.sites}")
    labels, weights = (found.labels if data.labels is not None else None), found.weights
    joined = replace(data, validation=found.train, validation_labels=labels, validation_weights=weights)
    return replace(joined, symbols=_symbols(data, found)), {}


def _share(text: str) -> float | None:
    if Path(text).exists():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _symbols(data: Dataset, other: Dataset) -> Any:
    """Join the symbols: the rows to learn from may lack one that the others have."""
    import numpy as np

    new = other.symbols[~np.isin(other.symbols, data.symbols)]
    return data.symbols if not len(new) else np.unique(np.concatenate([data.symbols, new]))
