"""LANL's JSON: bqpjson (problems, and solutions of them) and the histograms of dwisc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neurise.datasets._annealers.problem import Labels, Problem, column_of, few, find_column, problem_of_arrays
from neurise.datasets._annealers.reads import Reads, as_counts, as_numbers, as_spins

KEPT = ("metadata", "timing", "solve_ising_args", "collection_start", "collection_end", "description", "id", "version")
"""What a document says besides the reads; it stays in the data set's ``info``."""


def problem_of_bqpjson(data: Mapping[str, Any], labels: Labels, where: str) -> Problem:
    r"""Read the problem of a bqpjson document.

    It is :math:`s\,(\sum c\,b_i b_j + \sum c\,b_i + o)` with scale s and offset o. Boolean variables become spins by
    :math:`b = (1 + \sigma)/2`.
    """
    spin = _domain(data, where) == "spin"
    scale, offset = (
        _number(data.get(key, default), f"{where}: {key}") for key, default in (("scale", 1), ("offset", 0))
    )
    columns = column_of(labels, where)
    fields = np.zeros(len(labels))
    for place, term in enumerate(_terms(data, "linear_terms", ("id", "coeff"), where)):
        column = find_column(columns, term["id"], f"{where}: linear_terms[{place}] names")
        strength = _number(term["coeff"], f"{where}: the coefficient of linear_terms[{place}]") / (1 if spin else 2)
        fields[column] += strength
        offset += 0 if spin else strength
    pairs, couplings = [], []
    for place, term in enumerate(_terms(data, "quadratic_terms", ("id_tail", "id_head", "coeff"), where)):
        what = f"{where}: quadratic_terms[{place}] names"
        ends = [find_column(columns, term[end], what) for end in ("id_tail", "id_head")]
        strength = _number(term["coeff"], f"{where}: the coefficient of quadratic_terms[{place}]") / (1 if spin else 4)
        pairs.append(ends)
        couplings.append(strength)
        if not spin:
            offset += strength
            fields[ends] += strength
    return problem_of_arrays(pairs, scale * np.array(couplings), scale * fields, scale * offset, labels, where)


def reads_of_bqpjson(data: Mapping[str, Any], where: str) -> Reads:
    """Read the solutions of a bqpjson document: each has an ``assignment`` of every variable, and perhaps its ``evaluation``.

    ``num_occurrences`` is not of the standard, but understood: how often a solution was read.
    """
    labels, solutions = labels_of_bqpjson(data, where), _solutions(data, "assignment", where)
    columns = column_of(labels, where)
    boolean = _domain(data, where) == "boolean"
    values = np.full((len(solutions), len(labels)), np.nan)
    for row, solution in enumerate(solutions):
        what = f"{where}: solutions[{row}].assignment"
        for entry in solution["assignment"]:
            if not isinstance(entry, Mapping) or not {"id", "value"} <= entry.keys():
                raise ValueError(f"{what} has the entry {entry!r}; it needs an id and a value")
            column = find_column(columns, entry["id"], f"{what} names")
            if not np.isnan(values[row, column]):
                raise ValueError(f"{what} names {entry['id']!r} twice")
            values[row, column] = _number(entry["value"], f"{what}, variable {entry['id']!r}")
        missing = np.flatnonzero(np.isnan(values[row]))
        if len(missing):
            raise ValueError(f"{what} has no value for {few([labels[column] for column in missing])}")
    return Reads(
        labels,
        as_spins(values, where, labels, bits=boolean),
        _counts(solutions, where),
        _column_of_numbers(solutions, "evaluation", "energies", where),
        problem_of_bqpjson(data, labels, where),
        _described(data) | {"vartype": "BINARY" if boolean else "SPIN"},
    )


def reads_of_dwisc(data: Mapping[str, Any], where: str) -> Reads:
    """Read what dwisc collected: each solution has its ``energy``, ``num_occurrences`` and spins in the order of ``variable_ids``.

    The problem is not among it.
    """
    labels, solutions = labels_of_bqpjson(data, where), _solutions(data, "solution", where)
    for row, solution in enumerate(solutions):
        if len(solution["solution"]) != len(labels):
            raise ValueError(
                f"{where}: solutions[{row}] has {len(solution['solution'])} spins, and there are {len(labels)} variable_ids"
            )
    values = np.array([solution["solution"] for solution in solutions], dtype=object)
    rows = _column_of_numbers(solutions, "energy", "energies", where) | _column_of_numbers(
        solutions, "batch", "batch", where
    )
    spins = as_spins(values, where, labels, bits=False)
    return Reads(labels, spins, _counts(solutions, where), rows, None, _described(data) | {"vartype": "SPIN"})


def labels_of_bqpjson(data: Mapping[str, Any], where: str) -> Labels:
    """List the variables of a document."""
    ids = data.get("variable_ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(label, int | str) for label in ids):
        raise ValueError(f"{where}: variable_ids is {ids!r:.80}; a list of numbers is needed, one a column")
    return tuple(ids)


def _solutions(data: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    solutions = data.get("solutions")
    if not isinstance(solutions, list) or not solutions:
        raise ValueError(f"{where} has no solutions: there is nothing to learn from")
    for row, solution in enumerate(solutions):
        if not isinstance(solution, Mapping) or not isinstance(solution.get(key), list):
            raise ValueError(f"{where}: solutions[{row}] has no list {key!r}")
    return solutions


def _counts(solutions: list[Mapping[str, Any]], where: str) -> np.ndarray | None:
    if not any("num_occurrences" in solution for solution in solutions):
        return None
    counts = [solution.get("num_occurrences") for solution in solutions]
    return as_counts(counts, len(solutions), f"{where}: num_occurrences")


def _column_of_numbers(solutions: list[Mapping[str, Any]], key: str, name: str, where: str) -> dict[str, np.ndarray]:
    if not any(key in solution for solution in solutions):
        return {}
    values = [_number(solution.get(key), f"{where}: solutions[{row}].{key}") for row, solution in enumerate(solutions)]
    return {name: as_numbers(values, len(solutions), f"{where}: {key}")}


def _described(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in KEPT if key in data}


def _domain(data: Mapping[str, Any], where: str) -> str:
    domain = data.get("variable_domain")
    if domain not in ("spin", "boolean"):
        raise ValueError(f"{where}: variable_domain is {domain!r}; bqpjson knows 'spin' and 'boolean'")
    return str(domain)


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is {value!r:.80}; a number is needed")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} has {len(str(value))} digits, which is more than a float can hold") from None


def _terms(data: Mapping[str, Any], key: str, fields: tuple[str, ...], where: str) -> list[Mapping[str, Any]]:
    terms = data.get(key)
    if not isinstance(terms, list):
        raise ValueError(f"{where}: {key} is of type {type(terms).__name__}; bqpjson has a list there")
    for place, term in enumerate(terms):
        missing = [name for name in fields if not isinstance(term, Mapping) or name not in term]
        if missing:
            raise ValueError(f"{where}: {key}[{place}] has no {' and no '.join(missing)}")
    return terms
