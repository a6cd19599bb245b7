"""Reads and problems in LANL's JSON, and every fault in them that is named."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest

from neurise.datasets.dwave import dwave


def bqpjson(domain: str = "spin") -> dict[str, Any]:
    """A document of the published format, with energies from its formula, term by term."""
    low = -1 if domain == "spin" else 0
    linear, quadratic = {2: 1.3, 6: -0.7}, {(2, 4): -0.2, (2, 6): 1.5}
    scale, offset = 0.5, 3.0
    solutions = []
    for number, values in enumerate([(low, 1, 1), (1, low, 1), (low, low, low)]):
        b = dict(zip((2, 4, 6), values, strict=True))
        energy = scale * (
            sum(c * b[i] * b[j] for (i, j), c in quadratic.items()) + sum(c * b[i] for i, c in linear.items()) + offset
        )
        assignment = [{"id": i, "value": value} for i, value in reversed(b.items())]
        solutions.append({"id": number, "assignment": assignment, "evaluation": energy, "num_occurrences": 5 + number})
    return {
        "version": "1.0.0",
        "id": 7,
        "metadata": {"dw_chip_id": "DW_2000Q_LANL"},
        "variable_ids": [2, 4, 6],
        "variable_domain": domain,
        "scale": scale,
        "offset": offset,
        "linear_terms": [{"id": i, "coeff": c} for i, c in linear.items()],
        "quadratic_terms": [{"id_tail": i, "id_head": j, "coeff": c} for (i, j), c in quadratic.items()],
        "solutions": solutions,
    }


def dwisc() -> dict[str, Any]:
    return {
        "variable_ids": [0, 5, 96],
        "solutions": [
            {"energy": -1.5, "num_occurrences": 11192, "solution": [-1, 1, 1], "batch": 1},
            {"energy": 2.5, "num_occurrences": 3, "solution": [1, 1, 1], "batch": 2},
        ],
        "metadata": {"dw_solver_name": "DW2X"},
        "timing": {"qpu_sampling_time": 4169500},
        "collection_start": "2017-11-05 17:42:44",
        "solve_ising_args": {"annealing_time": 5},
    }


DWISC_PROBLEM: tuple[dict[Hashable, float], dict[Any, float]] = ({0: 1.0, 5: 0.5}, {(0, 96): 1.0, (5, 0): 0.0})


@pytest.mark.parametrize("domain", ["spin", "boolean"])
def test_bqpjson_with_solutions(tmp_path: Path, domain: str) -> None:
    path = tmp_path / "solved.json"
    path.write_text(json.dumps(bqpjson(domain)))
    data = dwave(path, test_fraction=0)
    assert data.train.tolist() == [[-1, 1, 1], [1, -1, 1], [-1, -1, -1]]
    assert data.weights.tolist() == [5, 6, 7]
    assert data.info["qubit_ids"] == (2, 4, 6)
    assert data.info["vartype"] == ("SPIN" if domain == "spin" else "BINARY")
    assert data.info["metadata"] == {"dw_chip_id": "DW_2000Q_LANL"}
    np.testing.assert_allclose(data.energy(data.train), data.info["energies"], rtol=0, atol=1e-14)  # 7 terms below 4


def test_dwisc(tmp_path: Path) -> None:
    path = tmp_path / "histogram.json"
    path.write_text(json.dumps(dwisc()))
    data = dwave(str(path), problem=DWISC_PROBLEM, test_fraction=0)
    assert data.train.tolist() == [[-1, 1, 1], [1, 1, 1]]
    assert data.weights.tolist() == [11192, 3]
    assert data.info["qubit_ids"] == (0, 5, 96)
    assert data.info["batch"].tolist() == [1, 2]
    assert data.info["timing"] == {"qpu_sampling_time": 4169500}
    assert data.energy(data.train).tolist() == [-1.5, 2.5]
    assert dwave(dwisc(), test_fraction=0).info["energies"].tolist() == [
        -1.5,
        2.5,
    ]  # without a problem: kept, unchecked


@pytest.mark.parametrize("kind", ["model", "json", "bqpjson", "file"])
def test_problem_in_all_its_forms(tmp_path: Path, kind: str) -> None:
    model = dimod.BinaryQuadraticModel.from_ising(*DWISC_PROBLEM)
    problem: Any = {
        "model": model,
        "json": model.to_serializable(),
        "bqpjson": {
            "variable_ids": [0, 5, 96],
            "variable_domain": "spin",
            "scale": 2.0,
            "offset": 0.0,
            "linear_terms": [{"id": 0, "coeff": 0.5}, {"id": 5, "coeff": 0.25}],
            "quadratic_terms": [{"id_tail": 96, "id_head": 0, "coeff": 0.5}],
        },
    }.get(kind)
    if kind == "file":
        problem = tmp_path / "problem.json"
        problem.write_text(json.dumps(model.to_serializable()))
    data = dwave(dwisc(), problem=problem, test_fraction=0)
    assert data.energy(data.train).tolist() == [-1.5, 2.5]


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a document with one thing changed; the value None removes it."""
    result = copy.deepcopy(document)
    place: Any = result
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return result


@pytest.mark.parametrize(
    ("document", "path", "value", "words"),
    [
        (bqpjson(), "variable_domain", "qubit", ["variable_domain", "'qubit'"]),
        (bqpjson(), "variable_ids", None, ["variable_ids"]),
        (bqpjson(), "variable_ids", [2, 4, 4], ["the variable 4", "columns 1 and 2"]),
        (bqpjson(), "linear_terms.1.id", 7, ["linear_terms[1]", "7", "2, 4, 6"]),
        (bqpjson(), "linear_terms.0.coeff", "x", ["linear_terms[0]", "'x'"]),
        (bqpjson(), "linear_terms.0.coeff", float("inf"), ["h has inf", "position 0"]),
        (bqpjson(), "quadratic_terms.1.id_head", 5, ["quadratic_terms[1]", "5"]),
        (bqpjson(), "quadratic_terms.0.id_head", 2, ["coupler 0", "2 to itself"]),
        (bqpjson(), "quadratic_terms.0.coeff", None, ["quadratic_terms[0]", "no coeff"]),
        (bqpjson(), "quadratic_terms", {}, ["quadratic_terms", "dict"]),
        (bqpjson(), "solutions.0.assignment.1.value", 0, ["row 0, column 1 (variable 4)", "0.0", "-1 or 1"]),
        (bqpjson("boolean"), "solutions.2.assignment.0.value", -1, ["row 2, column 2 (variable 6)", "-1.0", "0 or 1"]),
        (bqpjson(), "solutions.1.assignment.0", None, ["solutions[1].assignment", "no value for 6"]),
        (bqpjson(), "solutions.1.assignment.0.id", 2, ["solutions[1].assignment", "2 twice"]),
        (bqpjson(), "solutions.1.assignment.0.id", 3, ["solutions[1].assignment", "3"]),
        (bqpjson(), "solutions.1.assignment.0", 3, ["solutions[1].assignment", "the entry 3"]),
        (bqpjson(), "solutions.2.evaluation", None, ["solutions[2].evaluation", "None"]),
        (bqpjson(), "solutions.2.evaluation", 1.0, ["row 2", "1.0", "1.85"]),
        (bqpjson(), "scale", -0.5, ["row 0", "all signs are turned"]),
        (bqpjson(), "solutions.0.num_occurrences", -2, ["num_occurrences", "-2", "row 0"]),
        (bqpjson(), "solutions.1.num_occurrences", 2.5, ["num_occurrences", "2.5", "row 1"]),
        (bqpjson(), "solutions.1.num_occurrences", "many", ["num_occurrences"]),
        (bqpjson(), "solutions", [], ["without reads"]),
        (dwisc(), "solutions.1.solution", [1, 1], ["solutions[1]", "2 spins", "3 variable_ids"]),
        (dwisc(), "solutions.1.solution", [1, 3, 1], ["row 1, column 1 (variable 5)", "3"]),
        (dwisc(), "solutions.1.solution", [1, None, 1], ["row 1, column 1 (variable 5)", "None"]),
        (dwisc(), "solutions.1.solution", "+-+", ["solutions[1]"]),
        (dwisc(), "solutions.0.num_occurrences", -1, ["num_occurrences", "-1", "row 0"]),
        (dwisc(), "solutions.1.num_occurrences", None, ["num_occurrences"]),
        (dwisc(), "solutions.1.energy", "low", ["solutions[1].energy", "'low'"]),
        (dwisc(), "solutions.1.energy", float("nan"), ["energy", "nan", "row 1"]),
        (dwisc(), "variable_ids", [], ["variable_ids"]),
        (dwisc(), "solutions", [], ["another kind", "variable_ids"]),
    ],
)
def test_what_is_wrong_is_named(document: dict[str, Any], path: str, value: Any, words: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        dwave(changed(document, path, value), test_fraction=0)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


@pytest.mark.parametrize("document", [[1, 2], 3, {"points": [1]}, {"solutions": [{"x": 1}]}, {"solutions": 3}, {}])
def test_json_of_another_kind(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"other\.json is JSON of another kind .*dwisc"):
        dwave(path)


def test_files_that_are_not_what_they_should_be(tmp_path: Path) -> None:
    whole = json.dumps(dwisc())
    (tmp_path / "short.json").write_text(whole[: len(whole) // 2])
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "rows.csv").write_text("1,-1\n")
    for name, words in (("short.json", "cut short"), ("binary.json", "no JSON"), ("rows.csv", r"'\.csv' is not known")):
        with pytest.raises(ValueError, match=words):
            dwave(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        dwave(tmp_path / "nothing.json")
    with pytest.raises(ValueError, match="is a folder"):
        dwave(tmp_path)
    with pytest.raises(ValueError, match="neither a file nor one of the public reads: advantage41_q263"):
        dwave("advantage41")
    damaged = changed(
        dimod.SampleSet.from_samples([[1, -1]], "SPIN", energy=0).to_serializable(), "sample_data.shape", [7]
    )
    with pytest.raises(ValueError, match="damaged SampleSet"):
        dwave(damaged)
    with pytest.raises(ValueError, match="type int"):
        dwave(3)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (({}, {(0, 7): 1.0}), r"J names the coupler \(0, 7\), with 7, .*0, 5, 96"),
        (({7: 1.0}, {}), "h names 7"),
        (({}, {0: 1.0}), r"J has the key 0; a pair \(u, v\)"),
        (({}, {(5, 5): 1.0}), "joins 5 to itself"),
        (({}, {(0, 5): float("nan")}), "J has nan at position 0"),
        (({0: "strong"}, {}), "must be numbers"),
        (({0: 1.0}, {}), "row 0 has the energy -1.5, and its couplings and fields give -1.0"),
        ([1, 2], "problem is of type list"),
        ({"h": 1}, "problem is JSON of another kind"),
    ],
)
def test_problems_that_do_not_fit(problem: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dwave(dwisc(), problem=problem)


def test_a_document_with_its_own_problem_takes_no_other() -> None:
    with pytest.raises(ValueError, match="brings its own couplings"):
        dwave(bqpjson(), problem=({}, {}))
