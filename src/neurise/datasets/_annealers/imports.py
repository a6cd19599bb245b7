"""Reads and problems from whatever they come in: dimod's objects and JSON, LANL's JSON, ``.npz`` files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neurise import json_text
from neurise.datasets._annealers.bqpjson import labels_of_bqpjson, problem_of_bqpjson, reads_of_bqpjson, reads_of_dwisc
from neurise.datasets._annealers.dimod_json import as_bqpjson, labels_of_model
from neurise.datasets._annealers.problem import Labels, Problem, few, problem_of_terms
from neurise.datasets._annealers.reads import Reads, as_counts, as_spins
from neurise.datasets._annealers.reads_npz import reads_of_npz
from neurise.extras import need

SAMPLESET = ("record", "variables", "vartype", "info")
MODEL = ("linear", "quadratic", "offset", "vartype", "change_vartype")
"""By these one knows dimod's objects without importing dimod."""


def read(source: Any) -> Reads:
    """Read from a dimod SampleSet, from parsed JSON, or from a ``.json`` or ``.npz`` file."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir():
            raise ValueError(f"{path} is a folder; a .npz or .json file is needed")
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        if path.suffix.lower() == ".npz":
            return reads_of_npz(path)
        if path.suffix.lower() == ".json":
            return _reads_of_json(json_text.read(path), str(path))
        raise ValueError(f"{path}: the ending {path.suffix!r} is not known; reads are in .npz or .json files")
    if all(hasattr(source, name) for name in SAMPLESET):
        return _reads_of_sampleset(source, "the SampleSet")
    if isinstance(source, Mapping):
        return _reads_of_json(source, "the JSON")
    raise ValueError(
        f"reads cannot be taken from an object of type {type(source).__name__}; give a dimod SampleSet, its JSON, or the "
        "name of a .npz or .json file"
    )


def as_problem(given: Any, labels: Labels) -> Problem:
    """Make a problem of a dimod model, a pair (h, J), bqpjson, the JSON of a dimod model, or a file of one of these."""
    if isinstance(given, str | Path):
        return _problem_of_json(json_text.read(Path(given)), labels, str(given))
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, Mapping) for part in given):
        return problem_of_terms(*given, 0.0, labels, "problem")
    if isinstance(given, Mapping):
        return _problem_of_json(given, labels, "problem")
    if all(hasattr(given, name) for name in MODEL):
        return _problem_of_model(given, labels, "problem")
    raise ValueError(
        f"problem is of type {type(given).__name__}; give a dimod BinaryQuadraticModel, a pair (h, J) of dictionaries, or "
        "bqpjson"
    )


def variables_of(given: Any, where: str = "problem") -> Labels:
    """List the variables of a problem, before there are reads that would name them."""
    if isinstance(given, str | Path):
        found = json_text.read(Path(given))
        if not isinstance(found, Mapping):  # a text in a file is no name of another file
            raise ValueError(f"{given} is JSON of another kind, of type {type(found).__name__}; a problem is an object")
        return variables_of(found, str(given))
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, Mapping) for part in given):
        h, J = given
        return tuple(dict.fromkeys([*h, *(end for key in J if isinstance(key, tuple) for end in key)]))
    if isinstance(given, Mapping) and isinstance(given.get("variable_ids"), list):
        return labels_of_bqpjson(given, where)
    if isinstance(given, Mapping) and isinstance(given.get("variable_labels"), list):
        return labels_of_model(given, where)
    if all(hasattr(given, name) for name in MODEL):
        return tuple(given.variables)
    raise ValueError(f"{where} is of type {type(given).__name__}, and names no variables")


def _reads_of_json(data: Any, where: str) -> Reads:
    if isinstance(data, Mapping):
        if data.get("type") == "SampleSet":
            dimod = need("dimod", "dwave")
            try:
                sampleset = dimod.SampleSet.from_serializable(data)
            except Exception as error:  # it has no error of its own: a wrong field shows as any of a dozen
                raise ValueError(f"{where} is a damaged SampleSet ({error!r:.200})") from error
            return _reads_of_sampleset(sampleset, where)
        solutions = data.get("solutions")
        first = solutions[0] if isinstance(solutions, list) and solutions else None
        if isinstance(first, Mapping) and "assignment" in first:
            return reads_of_bqpjson(data, where)
        if isinstance(first, Mapping) and "solution" in first:
            return reads_of_dwisc(data, where)
        if "quadratic_terms" in data or data.get("type") == "BinaryQuadraticModel":
            raise ValueError(
                f"{where} is a problem without reads; sample it with dwave(problem=…), or give the reads too"
            )
    keys = f"an object with {few(list(data))}" if isinstance(data, Mapping) else f"a {type(data).__name__}"
    raise ValueError(
        f"{where} is JSON of another kind ({keys}); known are the to_serializable() of a dimod SampleSet, the output of "
        "dwisc, and bqpjson with solutions"
    )


def _reads_of_sampleset(sampleset: Any, where: str) -> Reads:
    vartype = sampleset.vartype.name
    if vartype not in ("SPIN", "BINARY"):
        raise ValueError(f"{where} has variables of the type {vartype}; SPIN and BINARY are supported")
    record, labels = sampleset.record, tuple(sampleset.variables)
    vectors = {name: np.asarray(record[name]) for name in record.dtype.names}
    spins = as_spins(vectors.pop("sample"), where, labels, bits=vartype == "BINARY")
    counts = as_counts(vectors.pop("num_occurrences"), len(spins), f"{where}: num_occurrences")
    rows = {"energies": vectors.pop("energy"), **vectors}
    return Reads(labels, spins, counts, rows, None, {"vartype": vartype, "sampleset_info": dict(sampleset.info)})


def _problem_of_json(data: Any, labels: Labels, where: str) -> Problem:
    if isinstance(data, Mapping) and data.get("type") == "BinaryQuadraticModel":
        return problem_of_bqpjson(as_bqpjson(data, where), labels, where)
    if isinstance(data, Mapping) and "linear_terms" in data and "quadratic_terms" in data:
        return problem_of_bqpjson(data, labels, where)
    keys = f"an object with {few(list(data))}" if isinstance(data, Mapping) else f"a {type(data).__name__}"
    raise ValueError(
        f"{where} is JSON of another kind ({keys}); a problem is bqpjson, with linear_terms and quadratic_terms, or the "
        "to_serializable() of a dimod BinaryQuadraticModel"
    )


def _problem_of_model(model: Any, labels: Labels, where: str) -> Problem:
    spins = model.change_vartype("SPIN", inplace=False)
    return problem_of_terms(dict(spins.linear), dict(spins.quadratic), spins.offset, labels, where)
