"""Validate data from outside, once, and translate symbols to tokens in the order of the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise import checks, gaps, holdings
from neurise.alphabet import Alphabet, Symbols, as_array, as_matrix, is_text, kind_of, named_codes
from neurise.columns import Columns, is_table, wanted_alphabets
from neurise.columns import Rows as TableRows
from neurise.fields import Field
from neurise.frames import frame_kind
from neurise.labels import Labels, as_labels
from neurise.rows import Rows, likeness
from neurise.space import MAX_STATES, Space

space_of = lru_cache(Space)
"""A space is a value: equal ones are one object."""


@dataclass(frozen=True)
class Schema:
    """What is known of the user's data: symbols, number of sites, order of noising, labels, sites that never vary."""

    alphabet: Alphabet | Columns  # one for all sites, or one for each
    space: Space  # of the sites in the order of noising, as tokens inside a model are
    order: tuple[int, ...]  # the user's site at each place; tokens inside a model are always in this order
    constant: Tensor  # (sites,) the only token of each place, or −1
    labels: Labels | None
    count: int = 0  # rows that were learnt from
    digest: str = ""  # tells them from others; empty where it was not recorded
    gaps: int = 0  # entries of those rows that were missing

    @property
    def classes(self) -> int:
        """How many labels there are; 0 where the data has none."""
        return 0 if self.labels is None else len(self.labels)

    def encode(self, X: Symbols, what: str = "X") -> Tensor:
        """Translate rows of symbols to tokens, (N, sites) uint8."""
        if not isinstance(X, np.ndarray | Tensor) or X.ndim == 1:
            X = holdings.opened(X, what, sites=self.space.sites).X
        return self.alphabet.encode(X, what, sites=self.space.sites)[:, list(self.order)]

    def encode_gaps(self, X: Symbols, what: str = "X") -> tuple[Tensor, Tensor | None]:
        """Translate rows of symbols some of which may be missing; return where they are too, or None where none is."""
        if not may_have_gaps(X):
            return self.encode(X, what), None
        if not isinstance(X, np.ndarray | Tensor):
            X = holdings.opened(X, what, sites=self.space.sites).X
        if isinstance(self.alphabet, Columns):
            tokens, missing = map(torch.from_numpy, self.alphabet.read(X, what))
            return tokens[:, list(self.order)], missing[:, list(self.order)] if bool(missing.any()) else None
        kind = getattr(X, "dtype", None)
        if isinstance(kind, np.dtype) and kind.kind != "O" and is_text(kind) != is_text(self.alphabet.dtype):
            raise ValueError(f"{what} holds {kind_of(kind)}, but the alphabet is {self.alphabet}")
        X, gone = gaps.filled(X, what, known=[self.alphabet.symbols[0]] * self.space.sites)
        found = self.encode(X, what)
        return found, None if gone is None else torch.from_numpy(gone)[:, list(self.order)]

    def site_of(self, column: Any) -> int:
        """Return the number of a column, which is named or numbered."""
        names = self.alphabet.names if isinstance(self.alphabet, Columns) else ()
        if column in names:
            return names.index(column)
        if not checks.is_number(column) or column not in range(self.space.sites):
            known = f", or one of {', '.join(map(repr, names[:10]))}" if names else ""
            raise ValueError(f"column must be a whole number from 0 to {self.space.sites - 1}{known}; got {column!r}")
        return int(column)

    def decode(self, tokens: Tensor, generator: torch.Generator | None = None) -> Any:
        """Translate tokens back to the user's symbols and sites; what a symbol leaves open is drawn with the generator."""
        in_place = tokens.cpu()[:, np.argsort(self.order)]
        if isinstance(self.alphabet, Columns):
            return self.alphabet.decode(in_place, generator)
        return self.alphabet.decode(in_place)

    def symbol(self, place: int, token: int) -> Any:
        """Return the symbol of a token at a place of the order."""
        if isinstance(self.alphabet, Alphabet):
            return self.alphabet.symbols[token].item()
        return self.alphabet.columns[self.order[place]].values(np.array([token]))[0]

    def site_name(self, place: int) -> str:
        """Return what an error calls the site at a place of the order."""
        site = self.order[place]
        if isinstance(self.alphabet, Alphabet):
            return f"site {site}"
        return f"the column {self.alphabet.names[site]!r}"

    def encode_labels(self, y: Any, n: int) -> Tensor | None:
        """Translate one label for all n rows, or one for each, to class numbers, (n,)."""
        if y is None:
            return None
        if self.labels is None:
            raise ValueError("y was given, but the model was fitted without labels")
        y = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
        labels = self.labels.encode(np.full(n, y) if np.ndim(y) == 0 else y)
        if len(labels) != n:
            raise ValueError(f"y has {len(labels)} labels for {n} rows")
        return labels

    def encode_clamp(self, clamp: Any, n: int) -> tuple[Tensor, Tensor]:
        """Translate rows some of whose values are missing, for the model to choose, to (values, given), each (1 or n, sites)."""
        if isinstance(self.alphabet, Columns):
            values, holds = self._columns_of_clamp(self.alphabet, clamp, n)
            self._refuse_others(values, holds)
            return values, holds
        sites = self.space.sites
        if not isinstance(clamp, np.ma.MaskedArray):
            clamp = np.asarray(clamp) if hasattr(clamp, "columns") else as_array(clamp, "clamp")
        if clamp.shape not in ((sites,), (1, sites), (n, sites)):
            raise ValueError(f"clamp has the shape {clamp.shape}; it must be ({sites},) or ({n}, {sites})")
        values, missing = self.encode_gaps(clamp if clamp.ndim == 2 else clamp[None], "clamp")
        holds = torch.ones_like(values, dtype=torch.bool) if missing is None else ~missing
        self._refuse_others(values, holds)
        return values, holds

    def _columns_of_clamp(self, columns: Columns, clamp: Any, n: int) -> tuple[Tensor, Tensor]:
        """Read a masked array, or a table in which the missing values are the model's to choose."""
        sites = self.space.sites
        if frame_kind(clamp) is None and not isinstance(clamp, np.ma.MaskedArray):
            clamp = np.array(clamp, dtype=object) if isinstance(clamp, list | tuple) else as_array(clamp, "clamp")
        if isinstance(clamp, np.ndarray) and clamp.shape == (sites,):
            clamp = clamp[None]
        found = columns.read(clamp, "clamp")
        if len(found.tokens) not in (1, n):
            raise ValueError(f"clamp has {len(found.tokens)} rows; it must have 1 or {n}")
        order = list(self.order)
        return torch.from_numpy(found.tokens)[:, order], ~torch.from_numpy(found.missing)[:, order]

    def _refuse_others(self, values: Tensor, holds: Tensor) -> None:
        """Raise ValueError where a site that never varies is given another symbol than its own."""
        impossible = holds & (self.constant >= 0) & (values != self.constant)
        if bool(impossible.any()):
            place = int(impossible.any(0).nonzero()[0])
            only = self.symbol(place, int(self.constant[place]))
            raise ValueError(f"clamp asks for another symbol at {self.site_name(place)}, which is always {only!r}")

    def rows(self, X: Symbols, y: Any, weights: np.ndarray | None, what: str) -> Rows:
        """Translate data with what belongs to it; rows of weight zero (of a validation set) are dropped."""
        x, missing = self.encode_gaps(X, what)
        if self.labels is not None and y is None:
            raise ValueError(f"the model has labels, and {what} comes without any")
        masses = None if weights is None else torch.from_numpy(weights)
        rows = Rows(x, self.encode_labels(y, len(x)), masses, missing=missing)
        return rows if rows.weights is None else rows.take(torch.nonzero(rows.weights).flatten())

    def is_of(self, X: Symbols, weights: Any = None) -> bool:
        """Whether these are the rows that were learnt from, in whatever order, with the same weights or counts."""
        if not self.digest:
            return False
        try:
            rows = _present(*self.encode_gaps(X), weights)
        except ValueError:  # other symbols or sites
            return False
        return likeness(rows) == self.digest

    def to_dict(self) -> dict[str, Any]:
        """Describe the schema in JSON's types."""
        return {
            "sites": self.space.sites,
            "states": self.space.states,
            "alphabet": self.alphabet.to_dict(),
            "order": list(self.order),
            "constant": self.constant.tolist(),
            "labels": None if self.labels is None else self.labels.to_dict(),
            "count": self.count,
            "digest": self.digest,
            **({"gaps": self.gaps} if self.gaps else {}),
        }

    @classmethod
    def from_field(cls, field: Field) -> Schema:
        """Undo :meth:`to_dict`; whatever no data could have given is an error that names the field."""
        sites, states = field["sites"].whole(1), field["states"].whole(1, MAX_STATES)
        order = field["order"].wholes(sites, 0, sites - 1)
        if len(set(order)) < sites:
            raise field["order"].wrong(f"each of the sites 0 to {sites - 1} once")
        alphabet: Alphabet | Columns
        if "columns" in field["alphabet"]:
            alphabet = Columns.from_field(field["alphabet"], sites)
            space = space_of(sites, len(alphabet), tuple(alphabet.sizes[site] for site in order))
            if space.states != states:
                raise field["states"].wrong(f"that of the largest alphabet, {space.states}")
        else:
            alphabet, space = Alphabet.from_field(field["alphabet"], states), space_of(sites, states)
        constant = field["constant"].wholes(sites, -1, states - 1)
        if any(token >= size for token, size in zip(constant, space.digits, strict=True)):
            raise field["constant"].wrong("tokens that the sites have")
        return cls(
            alphabet,
            space,
            tuple(order),
            torch.tensor(constant, dtype=torch.int64),
            None if field["labels"].value is None else Labels.from_field(field["labels"]),
            field["count"].whole() if "count" in field else 0,
            field["digest"].text() if "digest" in field else "",
            field["gaps"].whole() if "gaps" in field else 0,
        )

    def check_params(self, params: Field) -> None:
        """Raise ValueError where the order or the alphabet that a model was given is not the one that it was fitted with."""
        order, names = (params[name].value if name in params else None for name in ("order", "alphabet"))
        try:
            same = checks.order(order, self.space.sites) == self.order
        except (ValueError, TypeError, OverflowError):
            same = False
        if not same:
            raise Field(order, f"{params.name}.order").wrong(f"the order of the schema, {list(self.order)[:10]}")
        if isinstance(self.alphabet, Columns):
            try:
                wanted_alphabets(names, self.alphabet.names)
            except (ValueError, TypeError, OverflowError):
                raise Field(names, f"{params.name}.alphabet").wrong(f"alphabets of {self.alphabet}") from None
            return
        codes = self.alphabet.codes
        try:
            named = tuple(sorted(codes)) if names is None else named_codes(names, self.alphabet.dtype)
        except (ValueError, TypeError, OverflowError):
            named = ()
        if named != codes:
            raise Field(names, f"{params.name}.alphabet").wrong(f"the alphabet of the schema, {self.alphabet}")


def learn_schema(
    X: Symbols,
    y: Any = None,
    weights: Any = None,
    validation: Any = None,
    *,
    alphabet: Sequence[Any] | None = None,
    order: Sequence[int] | None = None,
) -> tuple[Schema, Rows, Rows | None]:
    """Check data to be learnt from; return what it looks like, the rows, and the validation rows if any are given."""
    if not isinstance(X, np.ndarray | Tensor) or X.ndim == 1 or validation is not None:
        held_in_hand, validation = holdings.opened_fit(X, y, weights, validation)
        X, y, weights = held_in_hand.X, held_in_hand.y, held_in_hand.weights
        if alphabet is None and held_in_hand.symbols is not None and not _has_own_columns(X, None):
            # The rows to learn from may lack a symbol that others have.
            alphabet = sorted(held_in_hand.symbols.tolist())
    own = _has_own_columns(X, alphabet)
    missing = None
    if not own and may_have_gaps(X):
        X, missing = _without_gaps(X, weights)
    matrix: Any = TableRows.of(X) if own else as_matrix(X)
    X = matrix if own else X
    kind: Any = Columns if own else Alphabet
    symbols = kind.of(X, alphabet)
    tokens, missing = _read(symbols, X) if own else (symbols.encode(X), missing)
    masses = None if weights is None else _checked_weights(weights, len(matrix))
    if y is not None:
        y = as_labels(y)
        if len(y) != len(matrix):
            raise ValueError(f"y has {len(y)} labels for {len(matrix)} rows of X")
    if masses is not None and not masses.all():
        # A row of weight zero is as good as absent: neither its symbols nor its label are part of the model.
        present = masses > 0
        matrix, masses, y = matrix[present], masses[present], None if y is None else y[present]
        missing = None if missing is None else missing[present]
        X = torch.from_numpy(matrix) if isinstance(X, Tensor) else matrix
        symbols = kind.of(X, alphabet)
        tokens, missing = _read(symbols, X) if own else (symbols.encode(X), missing)
    if len(matrix) < 2:
        raise ValueError("X has one row (1 sample); a law cannot be learnt from fewer than two")
    sites = matrix.shape[1]
    places = tuple(range(sites)) if order is None else checks.order(order, sites)
    sizes = tuple(symbols.sizes[site] for site in places) if isinstance(symbols, Columns) else None
    space = space_of(sites, len(symbols.codes)) if sizes is None else space_of(sites, max(sizes), sizes)
    labels = None if y is None else Labels.of(y, masses)
    draft = Schema(symbols, space, places, torch.full((space.sites,), -1), labels)
    kinds = None if labels is None else labels.encode(y)
    in_order = tokens if order is None else tokens[:, list(places)]
    rows, held = Rows(in_order, kinds, None if masses is None else torch.from_numpy(masses)), None
    if missing is not None and missing.any():
        rows = replace(rows, missing=torch.from_numpy(missing)[:, list(places)])
        _refuse_empty(draft, rows)
    if validation is not None:
        parts = validation if isinstance(validation, tuple) else (validation,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"validation is X, (X, y) or (X, y, weights); got {len(parts)} parts")
        held_x, held_y, held_weights = (*parts, None, None)[:3]
        rows_held = len(TableRows.of(held_x, "validation") if own else as_matrix(held_x, "validation"))
        held_masses = None if held_weights is None else _checked_weights(held_weights, rows_held)
        held = draft.rows(held_x, held_y, held_masses, "validation")
    shown, same = rows.x[0], (rows.x == rows.x[0]).all(0)
    if rows.missing is not None:
        shown = rows.x.gather(0, rows.missing.int().argmin(0, keepdim=True))[0]  # the first that is there
        same = ((rows.x == shown) | rows.missing).all(0)
    if held is not None:
        same &= ((held.x == shown) | (False if held.missing is None else held.missing)).all(0)
    constant = torch.where(same, shown.long(), -1)
    found = likeness(Rows(rows.x, weights=rows.weights, missing=rows.missing))
    lost = 0 if rows.missing is None else int(rows.missing.sum())
    return Schema(symbols, space, draft.order, constant, labels, len(tokens), found, lost), rows, held


def may_have_gaps(X: Symbols) -> bool:
    """Whether data are of a type that can lack values: whole numbers, booleans and letters in plain arrays cannot."""
    if isinstance(X, Tensor):
        return X.is_floating_point()
    return type(X) is not np.ndarray or X.dtype.kind in "fO"


def _without_gaps(X: Symbols, weights: Any) -> tuple[Symbols, np.ndarray | None]:
    """Fill what is missing by what stands in the same column, in rows that weigh something."""
    masses = None if weights is None else as_array(weights, "weights")
    counts = masses is not None and masses.dtype.kind in "biuf" and masses.ndim == 1
    return gaps.filled(X, rows=masses > 0 if masses is not None and counts else None)


def _read(columns: Columns, X: Any) -> tuple[Tensor, np.ndarray]:
    """Translate rows whose columns have alphabets of their own, and say where values are missing."""
    tokens, missing = columns.read(X)
    return torch.from_numpy(tokens), missing


def _refuse_empty(schema: Schema, rows: Rows) -> None:
    """Raise ValueError for a site that has no value in any row."""
    if rows.missing is not None and bool(rows.missing.all(0).any()):
        place = int(rows.missing.all(0).nonzero()[0])
        raise ValueError(f"X has no value at all at {schema.site_name(place)}: every entry is missing; leave it out")


def _has_own_columns(X: Symbols, alphabet: Any) -> bool:
    """Whether columns have alphabets of their own; a plain array of numbers has one for all, and nothing more is asked."""
    if alphabet is None and (isinstance(X, Tensor) or (type(X) is np.ndarray and X.dtype.kind in "biuf")):
        return False
    return is_table(X, alphabet)


def _present(x: Tensor, missing: Tensor | None, weights: Any) -> Rows:
    """Put rows, their gaps and their weights together, without those of weight zero."""
    if weights is None:
        return Rows(x, missing=missing)
    masses = torch.from_numpy(_checked_weights(weights, len(x)))
    return Rows(x, weights=masses, missing=missing).take(torch.nonzero(masses).flatten())


def _checked_weights(weights: Any, n: int) -> np.ndarray:
    values = as_array(weights, "weights")
    if values.shape != (n,):
        raise ValueError(f"weights must be one number per row, shape ({n},); got shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"weights must be numbers, got type {values.dtype}")
    values = values.astype(np.float64)
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(f"weights has {values[place]} at row {place}; weights are finite and not negative")
    if not values.any():
        raise ValueError("all weights are zero")
    with np.errstate(over="ignore"):
        if not np.isfinite(values.sum()):
            raise ValueError(f"weights are too large: their sum overflows (the largest is {values.max()})")
    return values
