"""Reads of annealers from dimod's objects and their JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dimod
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurise.datasets.dwave import dwave
from neurise.dimod_bridge import sampleset

LABELS = st.one_of(
    st.integers(0, 6000), st.text(min_size=1, max_size=3), st.tuples(st.integers(0, 9), st.integers(0, 9))
)
BIAS = st.floats(-4, 4, allow_nan=False)


@st.composite
def problems(draw: Callable[[Any], Any]) -> dimod.BinaryQuadraticModel:
    """A random problem, spins or bits, whose variables are called anything; 17 variables take three packed bytes."""
    labels = draw(st.lists(LABELS, min_size=1, max_size=17, unique=True))
    model = dimod.BinaryQuadraticModel(draw(st.sampled_from(["SPIN", "BINARY"])))
    for label in labels:
        model.add_linear(label, draw(BIAS))
    if len(labels) > 1:
        for _ in range(draw(st.integers(0, 8))):
            u, v = draw(st.lists(st.sampled_from(labels), min_size=2, max_size=2, unique=True))
            model.add_quadratic(u, v, draw(BIAS))
    model.offset = draw(BIAS)
    return model


@st.composite
def answers(draw: Callable[[Any], Any]) -> tuple[dimod.BinaryQuadraticModel, dimod.SampleSet]:
    """A problem with an answer to it, as a sampler gives one."""
    model = draw(problems())
    n, rows = model.num_variables, draw(st.integers(1, 6))
    low = -1 if model.vartype is dimod.SPIN else 0
    values = draw(st.lists(st.lists(st.sampled_from([low, 1]), min_size=n, max_size=n), min_size=rows, max_size=rows))
    labels = draw(st.permutations(list(model.variables)))  # the columns stand in an order of their own
    counts = draw(st.lists(st.integers(1, 50), min_size=rows, max_size=rows))
    broken = draw(st.lists(st.floats(0, 1), min_size=rows, max_size=rows))
    found = dimod.SampleSet.from_samples_bqm(
        (np.array(values, dtype=np.int8), labels), model, num_occurrences=counts, chain_break_fraction=broken
    )
    found.info["timing"] = {"qpu_access_time": 8550.5}
    return model, found


def same(first: dimod.SampleSet, second: dimod.SampleSet) -> bool:
    return (
        list(first.variables) == list(second.variables)
        and first.vartype is second.vartype
        and first.info == second.info
        and set(first.record.dtype.names) == set(second.record.dtype.names)
        and all(np.array_equal(first.record[name], second.record[name]) for name in first.record.dtype.names)
    )


@settings(max_examples=40, deadline=None)  # other work on the machine is no fault
@given(answers())
def test_sampleset_to_dataset_and_back(answer: tuple[dimod.BinaryQuadraticModel, dimod.SampleSet]) -> None:
    model, found = answer
    data = dwave(found, problem=model, test_fraction=0)
    assert same(sampleset(data), found)
    assert data.info["qubit_ids"] == tuple(found.variables)
    assert set(np.unique(data.train)) <= {-1, 1}
    assert data.weights is None or np.array_equal(data.weights, found.record.num_occurrences)


@settings(max_examples=40, deadline=None)  # other work on the machine is no fault
@given(answers())
def test_json_of_a_sampleset(answer: tuple[dimod.BinaryQuadraticModel, dimod.SampleSet]) -> None:
    _, found = answer
    text = json.dumps(found.to_serializable())
    data = dwave(json.loads(text), test_fraction=0)
    assert same(sampleset(data), dimod.SampleSet.from_serializable(json.loads(text)))
    assert data.couplings is None
    assert data.log_weight is None


@settings(max_examples=40, deadline=None)  # other work on the machine is no fault
@given(answers(), st.integers(0, 5))
def test_energies_and_signs(answer: tuple[dimod.BinaryQuadraticModel, dimod.SampleSet], seed: int) -> None:
    model, found = answer
    data = dwave(found, problem=model, test_fraction=0, seed=seed)
    # At most 17 + 8 + 1 terms of at most 4 each, four roundings of 2^-53 a term on the way from bits to spins and as many in
    # each of the two sums: 26 · 104 · 12 · 2^-53 = 3.6e-12.
    assert np.abs(data.energy(data.train) - found.record.energy).max() <= 4e-12
    column = {label: place for place, label in enumerate(data.info["qubit_ids"])}
    for (u, v), strength in model.spin.quadratic.items():
        ends = {column[u], column[v]}
        mine = [J for pair, J in zip(data.edges, data.couplings, strict=True) if set(pair.tolist()) == ends]
        assert mine == pytest.approx([-strength], abs=4e-12)
    fields = [-model.spin.linear[label] for label in data.info["qubit_ids"]]
    assert data.fields == pytest.approx(fields, abs=4e-12)
    assert "no beta" in data.info["temperature"]


@settings(max_examples=40, deadline=None)  # other work on the machine is no fault
@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.floats(0, 0.99), st.integers(0, 3))
def test_reads_are_split_not_rows(counts: list[int], fraction: float, seed: int) -> None:
    if not sum(counts):
        counts[0] = 1
    rows = np.unpackbits(np.arange(len(counts), dtype=np.uint8)[:, None], axis=1)  # all different
    found = dimod.SampleSet.from_samples(rows, "BINARY", energy=0, num_occurrences=counts)
    data = dwave(found, test_fraction=fraction, seed=seed)
    seen = np.zeros(len(counts), dtype=int)
    total = 0
    for part, weights in ((data.train, data.weights), (data.test, data.test_weights)):
        if part is None:
            continue
        index = np.packbits(part > 0, axis=1)[:, 0]
        assert (np.diff(index) > 0).all()  # each configuration once, in the order it came in
        seen[index] += 1 if weights is None else weights
        total += len(part) if weights is None else int(weights.sum())
    assert seen.tolist() == counts
    held = 0 if data.test is None else len(data.test) if data.test_weights is None else int(data.test_weights.sum())
    assert held == min(round(fraction * sum(counts)), sum(counts) - 1)
    again = dwave(found, test_fraction=fraction, seed=seed)
    assert np.array_equal(again.train, data.train)


def test_the_split_is_fair() -> None:
    """One read of three is held back: the row that was read twice gives it in 2/3 of all splits."""
    found = dimod.SampleSet.from_samples([[1, 1], [1, -1]], "SPIN", energy=0, num_occurrences=[2, 1])
    splits = [dwave(found, test_fraction=1 / 3, seed=seed).test[0].tolist() == [1, 1] for seed in range(900)]
    # Binomial(900, 2/3): standard error 0.0157 of the share; six of them are passed once in 10^9 runs.
    assert abs(np.mean(splits) - 2 / 3) < 6 * 0.0157


def test_the_tolerance_is_a_share_of_all_strengths() -> None:
    found = dimod.SampleSet.from_samples([[1, 1]], "SPIN", energy=[100.0 * (1 + 5e-7)])
    problem = ({}, {(0, 1): 100.0})
    assert dwave(found, problem=problem).info["energies"][0] > 100  # 5e-7 of 100 is what single precision may lose
    with pytest.raises(ValueError, match="row 0"):
        dwave(found, problem=problem, tolerance=1e-7)


def test_values_that_are_not_of_the_declared_kind() -> None:
    found = dimod.SampleSet.from_samples(([[1, 1], [1, 0]], ["a", 9]), "SPIN", energy=0)  # dimod does not look
    with pytest.raises(ValueError, match=r"row 1, column 1 \(variable 9\) is 0; it must be -1 or 1"):
        dwave(found)


def test_options_that_would_change_nothing_are_refused() -> None:
    found = dimod.SampleSet.from_samples([[1, -1]], "SPIN", energy=0)
    with pytest.raises(ValueError, match="reads, sweeps cannot be chosen for reads that exist"):
        dwave(found, reads=5, sweeps=3)
    with pytest.raises(ValueError, match=r"test_fraction must be in \[0, 1\), got 1"):
        dwave(found, test_fraction=1)
    discrete = dimod.SampleSet.from_samples([[0, 2]], "INTEGER", energy=0)
    with pytest.raises(ValueError, match="INTEGER"):
        dwave(discrete)


def test_the_package_is_light_and_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys, neurise.datasets; print(sorted({'dimod', 'dwave', 'networkx'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
    document = dimod.SampleSet.from_samples([[1, -1]], "SPIN", energy=0).to_serializable()
    monkeypatch.setitem(sys.modules, "dimod", None)
    with pytest.raises(ImportError, match=r"neurise\[dwave\]"):
        dwave(document)
