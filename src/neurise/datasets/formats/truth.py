"""What is known of the law that rows come from, between a data set and the arrays of a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from neurise.alphabet import Alphabet
from neurise.dataset import Dataset
from neurise.interactions import Interactions
from neurise.space import Space

CHECKED = 64
"""Rows on which a stored energy is compared with the one it stands for."""


def truth_of(dataset: Dataset) -> dict[str, np.ndarray]:
    """Collect edges, couplings, fields and shape, and the constant that the energy has beside the pairwise one."""
    parts = {"edges": dataset.edges, "couplings": dataset.couplings, "fields": dataset.fields}
    arrays = {name: np.asarray(values) for name, values in parts.items() if values is not None}
    if dataset.shape is not None:
        arrays["shape"] = np.array(dataset.shape, dtype=np.int64)
    offset = _offset(dataset)
    if offset:
        arrays["offset"] = np.array(offset)
    return arrays


def restore(where: str, space: Space, alphabet: Alphabet, found: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Check the arrays of :func:`truth_of`, and give the fields of a data set that they stand for."""
    known: dict[str, Any] = {name: found[name] for name in ("edges", "couplings", "fields") if name in found}
    if "shape" in found:
        known["shape"] = _shape(where, space, found["shape"])
    if ("edges" in found) != ("couplings" in found):
        here, missing = ("edges", "couplings") if "edges" in found else ("couplings", "edges")
        raise ValueError(f"{where} has {here} and no {missing}; a coupler needs both")
    if "fields" in found:
        _check_fields(where, space, found["fields"])
    if "edges" in found:
        _check_edges(where, space, found["edges"], found["couplings"])
    model = _model(space, known.get("edges"), known.get("couplings"), known.get("fields"))
    if model is not None:
        offset = found.get("offset", np.zeros(()))
        if offset.shape != () or offset.dtype.kind not in "iuf" or not np.isfinite(offset):
            raise ValueError(f"{where}: offset is {offset.tolist()!r}; one number is needed")
        known["log_weight"] = partial(_log_weight, model, alphabet, float(offset))
    return known


def _offset(dataset: Dataset) -> float:
    """Return the constant between the log-weight of a data set and that of its couplings and fields."""
    model = _model(dataset.space, dataset.edges, dataset.couplings, dataset.fields)
    if model is None or dataset.log_weight is None or dataset.train is None:
        return 0.0
    rows = dataset.train[:CHECKED]
    alphabet = Alphabet.of(dataset.symbols[:, None], dataset.symbols.tolist())
    apart = dataset.log_weight(rows) - _log_weight(model, alphabet, 0.0, rows)
    scale = 1.0 + float(np.abs(model.tables).sum() + np.abs(model.fields).sum())
    # Two float64 sums of the same terms, in whatever order, are this near.
    if float(np.ptp(apart)) > 1e-10 * scale:
        raise ValueError(
            f"{dataset.name}: its energy is not that of its couplings and fields, and a file can hold those alone"
        )
    return float(apart.mean()) if float(np.abs(apart).max()) > 1e-10 * scale else 0.0


def _model(
    space: Space, edges: np.ndarray | None, couplings: np.ndarray | None, fields: np.ndarray | None
) -> Interactions | None:
    """Put a pairwise model together: of spins, or, where fields depend on the state, of equal states."""
    if edges is None and fields is None:
        return None
    pairs = np.zeros((0, 2), dtype=np.int64) if edges is None else edges
    strengths = np.zeros(0) if couplings is None else np.asarray(couplings, dtype=np.float64)
    if fields is not None and fields.ndim == 2:
        return Interactions.potts(pairs, strengths, fields)
    if space.states != 2:
        return None
    return Interactions.ising(pairs, strengths, np.zeros(space.sites) if fields is None else fields)


def _log_weight(model: Interactions, alphabet: Alphabet, offset: float, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.log_weight(alphabet.encode(X, sites=model.sites)).numpy() + offset)


def _shape(where: str, space: Space, values: np.ndarray) -> tuple[int, ...]:
    sides = tuple(values.ravel().tolist())
    if values.dtype.kind not in "iu" or not sides or min(sides) < 1 or np.prod(sides) != space.sites:
        raise ValueError(f"{where}: shape is {sides}; its sides must multiply to the {space.sites} sites")
    return sides


def _check_fields(where: str, space: Space, fields: np.ndarray) -> None:
    if fields.shape not in ((space.sites,), (space.sites, space.states)) or fields.dtype.kind not in "iuf":
        raise ValueError(
            f"{where}: fields has the shape {fields.shape}; one number for each of {space.sites} sites is needed, or for "
            f"each of their {space.states} states"
        )
    _check_finite(where, "fields", fields)


def _check_edges(where: str, space: Space, edges: np.ndarray, couplings: np.ndarray) -> None:
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{where}: edges has the shape {edges.shape} and the type {edges.dtype}; pairs of sites are needed"
        )
    wrong = ((edges < 0) | (edges >= space.sites)).any(axis=1) | (edges[:, 0] == edges[:, 1])
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{where}: edge {row} is {tuple(edges[row].tolist())}; two different sites from 0 to {space.sites - 1} are needed"
        )
    if couplings.shape != (len(edges),) or couplings.dtype.kind not in "iuf":
        raise ValueError(
            f"{where}: couplings has the shape {couplings.shape}; one for each of {len(edges)} edges is needed"
        )
    _check_finite(where, "couplings", couplings)


def _check_finite(where: str, what: str, values: np.ndarray) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        raise ValueError(f"{where}: {what} has {values[tuple(place)].item()!r} at {place}; finite numbers are needed")
