"""From models back to D-Wave's tools: samples as a dimod ``SampleSet``, a fitted model as a dimod ``Sampler``.

This module needs dimod (``pip install 'neurise[dwave]'``) and is imported by nothing else.

>>> import neurise
>>> from neurise.dimod_bridge import ModelSampler, sampleset
>>> model = neurise.Independent().fit([[1, 1], [-1, 1]])
>>> len(sampleset(model.sample(10, seed=0), problem=({0: 0.1, 1: 0.0}, {(0, 1): -1.0})))
10
>>> len(ModelSampler(model).sample_ising({0: 0.1, 1: 0.0}, {(0, 1): -1.0}, num_reads=10))
10
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from neurise.dataset import Dataset

try:
    dimod: Any = importlib.import_module("dimod")
except ImportError as error:
    raise ImportError(f"dimod is needed here ({error}); install it with: pip install 'neurise[dwave]'") from error


class Sampled(Protocol):
    """What a model must be able to do to be a sampler.

    >>> import neurise
    >>> from neurise.dimod_bridge import ModelSampler, sampleset
    >>> model = neurise.Independent().fit([[1, 1], [-1, 1]])
    >>> len(ModelSampler(model).sample_ising({0: 0.1, 1: 0.0}, {(0, 1): -1.0}, num_reads=10))
    10
    """

    def sample(self, n: int, *, seed: int | None = None) -> Any:
        """Draw n rows of ±1 or of 0/1."""


def sampleset(
    samples: Any,
    problem: Any = None,
    *,
    variables: Sequence[Hashable] | None = None,
    num_occurrences: Any = None,
    vartype: str | None = None,
    info: Mapping[str, Any] | None = None,
) -> Any:
    """Give rows of spins (±1) or bits (0/1), or a data set, as a dimod ``SampleSet`` with energies.

    ``problem`` is a dimod ``BinaryQuadraticModel`` or a pair (h, J) of dictionaries in D-Wave's sign; energies are its. For a data
    set it may be left out: the energies are those that came with the reads, or those of ``data.energy``; and rows, test rows,
    counts and variables are the data set's. ``variables`` name the columns (0, 1, … by default), ``num_occurrences`` says how often
    each row was seen, and ``vartype``, ``"SPIN"`` or ``"BINARY"``, how the result is written (by default, as the problem is).

    >>> from neurise.dimod_bridge import ModelSampler, sampleset
    >>> found = sampleset([[1, 1], [-1, 1]], problem=({0: 0.5, 1: 0.0}, {(0, 1): -1.0}))
    >>> float(found.first.energy)
    -0.5
    """
    vectors: dict[str, Any] = {}
    if isinstance(samples, Dataset):
        data = samples
        if num_occurrences is not None:
            raise ValueError(f"{data.name} has counts of its own; leave num_occurrences out")
        samples, num_occurrences = _rows_of(data)
        variables = data.info.get("qubit_ids") if variables is None else variables
        vartype = data.info.get("vartype") if vartype is None and problem is None else vartype
        vectors = _vectors_of(data, len(samples)) if "qubit_ids" in data.info else {}
        info = data.info.get("sampleset_info") if info is None else info
        if problem is None and "energies" not in vectors and data.log_weight is not None:
            vectors["energies"] = data.energy(samples)
    spins = _as_spins(samples)
    labels = tuple(range(spins.shape[1])) if variables is None else tuple(variables)
    if len(labels) != spins.shape[1] or len(set(labels)) < len(labels):
        raise ValueError(
            f"variables names {len(set(labels))} different columns ({len(labels)} in all), and there are {spins.shape[1]}"
        )
    if problem is not None:
        model = _as_model(problem)
        _require_same_variables(model.variables, labels)
        vartype = model.vartype.name if vartype is None else vartype
        vectors["energies"] = model.spin.energies((spins, labels))
    if "energies" not in vectors:
        raise ValueError("energies need a problem: a dimod BinaryQuadraticModel, or a pair (h, J) of dictionaries")
    vartype = "SPIN" if vartype is None else vartype
    if vartype not in ("SPIN", "BINARY"):
        raise ValueError(f"vartype must be 'SPIN' or 'BINARY', got {vartype!r}")
    if num_occurrences is not None:
        vectors["num_occurrences"] = _as_counts(num_occurrences, len(spins))
    rows = spins if vartype == "SPIN" else (spins + 1) // 2
    energies = vectors.pop("energies")
    return dimod.SampleSet.from_samples((rows, labels), vartype, energy=energies, info=dict(info or {}), **vectors)


class ModelSampler(dimod.Sampler):  # type: ignore[misc]
    """A fitted model as a dimod ``Sampler``: it draws from what it has learnt, and gives the energies of the model asked about.

    ``variables`` name the model's sites, in their order; 0, 1, … by default. A BQM must have exactly these variables. Its biases
    change the energies, not what is drawn: the model has learnt one law, and a question about another problem gets the
    same samples.

    >>> import neurise
    >>> from neurise.dimod_bridge import ModelSampler, sampleset
    >>> model = neurise.Independent().fit([[1, 1], [-1, 1]])
    >>> len(ModelSampler(model).sample_ising({0: 0.1, 1: 0.0}, {(0, 1): -1.0}, num_reads=10))
    10
    """

    def __init__(self, model: Sampled, variables: Sequence[Hashable] | None = None) -> None:
        space = getattr(model, "space_", None)
        if space is None:
            raise ValueError(f"{type(model).__name__} is no fitted model of neurise: call fit(X) first, or load one")
        if space.states > 2:
            raise ValueError(f"the model has {space.states} states per site; a dimod sampler has spins or bits")
        self.model = model
        self.variables = tuple(range(space.sites)) if variables is None else tuple(variables)
        if len(self.variables) != space.sites or len(set(self.variables)) < space.sites:
            raise ValueError(
                f"variables names {len(set(self.variables))} different columns ({len(self.variables)} in all), and the model "
                f"has {space.sites} sites"
            )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What :meth:`sample` takes besides the BQM."""
        return MappingProxyType({"num_reads": ["num_reads_range"], "seed": []})

    @property
    def properties(self) -> Mapping[str, Any]:
        """What is known of the model."""
        return MappingProxyType(
            {
                "model": type(self.model).__name__,
                "num_variables": len(self.variables),
                "variables": self.variables,
                "num_reads_range": [1, 10**9],
            }
        )

    def sample(self, bqm: Any, *, num_reads: int = 1, seed: int | None = None) -> Any:
        """Draw ``num_reads`` rows from the model; the same seed gives the same ones."""
        _require_same_variables(bqm.variables, self.variables)
        if isinstance(num_reads, bool) or int(num_reads) != num_reads or num_reads < 1:
            raise ValueError(f"num_reads must be a positive whole number, got {num_reads!r}")
        rows = self.model.sample(int(num_reads), seed=seed)
        return sampleset(rows, bqm, variables=self.variables)


def _rows_of(data: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
    """Join the rows to learn from and those to test with, and their counts."""
    if data.train is None:
        raise ValueError(f"{data.name} has no rows; draw some with data.sample(n), and give these")
    parts = [(data.train, data.weights)] + ([] if data.test is None else [(data.test, data.test_weights)])
    rows = np.concatenate([part for part, _ in parts])
    if all(weights is None for _, weights in parts):
        return rows, None
    counts = [np.ones(len(part), dtype=np.int64) if weights is None else weights for part, weights in parts]
    return rows, np.concatenate(counts)


def _vectors_of(data: Dataset, n: int) -> dict[str, np.ndarray]:
    """What the reads brought along, one a row: energies, batch, …"""
    assert data.train is not None
    vectors = {}
    for key, values in data.info.items():
        if not isinstance(values, np.ndarray) or len(values) != len(data.train):
            continue
        rest = data.info.get(f"test_{key}")
        joined = values if data.test is None else None if rest is None else np.concatenate([values, rest])
        if joined is not None and len(joined) == n:
            vectors[key] = joined
    return vectors


def _as_spins(samples: Any) -> np.ndarray:
    rows = np.asarray(samples)  # a torch tensor on the CPU is one of numpy's, too
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"samples must be rows of spins or bits; their shape is {rows.shape}")
    low = 0 if (rows == 0).any() else -1
    wrong = (rows != low) & (rows != 1)
    if wrong.any():
        row, column = np.unravel_index(int(wrong.argmax()), rows.shape)
        raise ValueError(f"samples has {rows[row, column]!r} at row {row}, column {column}; it must be {low} or 1")
    spins = rows.astype(np.int8)
    return spins * 2 - 1 if low == 0 else spins


def _as_counts(values: Any, n: int) -> np.ndarray:
    counts = np.asarray(values)
    if counts.shape != (n,) or counts.dtype.kind not in "iuf":
        raise ValueError(f"num_occurrences has the shape {counts.shape}; one number for each of {n} rows is needed")
    wrong = ~(counts >= 0) | (counts != np.floor(counts))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"num_occurrences has {counts[row].item()!r} at row {row}; a count is whole and not negative")
    return counts.astype(np.int64)


def _as_model(problem: Any) -> Any:
    if isinstance(problem, tuple) and len(problem) == 2 and all(isinstance(part, Mapping) for part in problem):
        return dimod.BinaryQuadraticModel.from_ising(*problem)
    if not all(hasattr(problem, name) for name in ("linear", "quadratic", "vartype", "spin")):
        raise ValueError(
            f"problem is of type {type(problem).__name__}; give a dimod BinaryQuadraticModel or a pair (h, J) of dictionaries"
        )
    return problem


def _require_same_variables(given: Any, known: tuple[Hashable, ...]) -> None:
    unknown = [variable for variable in given if variable not in set(known)]
    if unknown:
        raise ValueError(f"the problem has {_few(unknown)}, which the samples lack; they have {_few(known)}")
    missing = [variable for variable in known if variable not in set(given)]
    if missing:
        raise ValueError(
            f"the problem lacks {_few(missing)}, which the samples have; give each a bias of 0: bqm.add_linear(v, 0)"
        )


def _few(values: Sequence[Any], most: int = 8) -> str:
    return ", ".join(repr(value) for value in values[:most]) + (", …" if len(values) > most else "")
