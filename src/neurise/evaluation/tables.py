"""Tables whose columns have alphabets of their own, measured as rows of tokens."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from neurise.alphabet import Alphabet
from neurise.columns import Columns
from neurise.dataset import Dataset
from neurise.frames import Table, as_table, frame_kind
from neurise.space import Space


class OnTokens:
    """A model of a table, asked in tokens: what a measurement needs of a model, and no more."""

    def __init__(self, model: Any, columns: Columns) -> None:
        self.model, self.columns = model, columns
        self.space_ = Space(len(columns.columns), len(columns))
        symbols = np.arange(len(columns))
        self.schema_ = SimpleNamespace(
            alphabet=Alphabet.of(symbols[:, None], symbols.tolist()), labels=model.schema_.labels
        )

    def sample(self, n: int, y: Any = None, *, seed: int | None = None) -> np.ndarray:
        """Draw rows of tokens, in the order of the columns."""
        return self.columns.read(self.model.sample(n, y, seed=seed)).tokens.astype(np.int64)

    def log_prob(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        """Return the log-likelihood of rows of tokens."""
        return np.asarray(self.model.log_prob(self._decoded(X), y))

    def elbo(self, X: np.ndarray, y: Any = None, **options: Any) -> Any:
        """Return the bound of rows of tokens."""
        return self.model.elbo(self._decoded(X), y, **options)

    def _decoded(self, X: np.ndarray) -> Any:
        return self.columns.decode(torch.from_numpy(X.astype(np.uint8)))


def columns_of(model: Any, data: Dataset) -> Columns | None:
    """Return the columns that a model of a table knows, or that samples and data have together; None where there are none."""
    known = getattr(getattr(model, "schema_", None), "alphabet", None)
    if isinstance(known, Columns):
        return known
    parts = [part for part in (data.train, data.test) if isinstance(part, Table)]
    if not parts or hasattr(model, "sample"):
        return None
    parts.append(as_table(model) if frame_kind(model) else Table(np.asarray(model), parts[0].names))
    names = parts[0].names
    for part in parts:
        if sorted(part.names) != sorted(names):
            raise ValueError(
                f"samples have the columns {', '.join(parts[-1].names)}, and {data.name} {', '.join(names)}"
            )
    rows = [np.asarray(part)[:, [part.names.index(name) for name in names]] for part in parts]
    return Columns.of(Table(np.concatenate(rows), names))


def on_tokens(model: Any, data: Dataset, columns: Columns) -> tuple[Any, Dataset]:
    """Translate a model, or samples, and a data set to tokens; rows that lack values are left out, with a warning."""
    changed: dict[str, Any] = {}
    for part, prefix in (("train", ""), ("test", "test_")):
        rows = getattr(data, part)
        if rows is None:
            continue
        found = columns.read(rows, data.name)
        whole = np.asarray(~found.missing.any(1))
        if not whole.all():
            warnings.warn(
                f"{int((~whole).sum()):,} of {len(whole):,} {part} rows of {data.name} lack values: they are left out of the "
                "comparison",
                stacklevel=3,
            )
        changed[part] = found.tokens[whole].astype(np.int64)
        for what in ("labels", "weights"):
            own = getattr(data, prefix + what)
            changed[prefix + what] = None if own is None else own[whole]
    space, symbols = Space(len(columns.columns), len(columns)), np.arange(len(columns))
    known = replace(data, space=space, symbols=symbols, validation=None, **changed)
    if hasattr(model, "sample"):
        return OnTokens(model, columns), known
    return columns.read(model, "samples").tokens.astype(np.int64), known
