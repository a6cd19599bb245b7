"""Models and data sets as dimod's objects."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import dimod
import dimod.testing
import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from neurise.datasets.dwave import dwave
from neurise.datasets.edwards_anderson import edwards_anderson
from neurise.dimod_bridge import ModelSampler, sampleset
from neurise.space import Space

LABELS = (30, "b", (4, 5))


class Known:
    """Stands for a fitted model: a row of it is a number's digits, and the number is the seed plus the row's place."""

    def __init__(self, sites: int = 3, states: int = 2, low: int = -1) -> None:
        self.space_, self.low = Space(sites, states), low

    def sample(self, n: int, *, seed: int | None = None) -> np.ndarray:
        index = (np.arange(n) + (seed or 0)) % 2**self.space_.sites
        bits = index[:, None] >> np.arange(self.space_.sites) & 1
        return bits if self.low == 0 else 2 * bits - 1


def problem(vartype: str = "SPIN") -> dimod.BinaryQuadraticModel:
    return dimod.BinaryQuadraticModel(
        {30: 0.5, "b": -1.0, (4, 5): 0.0}, {(30, "b"): 2.0, ("b", (4, 5)): -0.75}, 1.5, vartype
    )


@pytest.mark.parametrize("low", [-1, 0])
@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_sampler_conforms(vartype: str, low: int) -> None:
    sampler = ModelSampler(Known(low=low), LABELS)
    dimod.testing.assert_sampler_api(sampler)
    model = problem(vartype)
    found = sampler.sample(model, num_reads=8)
    dimod.testing.assert_sampleset_energies(found, model)
    assert found.vartype is model.vartype
    assert set(found.variables) == set(LABELS)
    assert len(found) == 8
    assert len(set(map(tuple, found.record.sample.tolist()))) == 8
    h, J, _ = model.to_ising()
    dimod.testing.assert_sampleset_energies(sampler.sample_ising(h, J, num_reads=3), dimod.BQM.from_ising(h, J))
    Q, _ = model.to_qubo()
    dimod.testing.assert_sampleset_energies(sampler.sample_qubo(Q, num_reads=3), dimod.BQM.from_qubo(Q))
    assert set(sampler.parameters) == {"num_reads", "seed"}
    assert sampler.properties["num_variables"] == 3
    assert sampler.properties["variables"] == LABELS


def test_sampler_draws_the_rows_of_the_model() -> None:
    model = tiny.model().fit(tiny.spins(), seed=0, device="cpu", verbose=False)
    sampler = ModelSampler(model, variables=LABELS)
    found = sampler.sample(problem(), num_reads=20, seed=5)
    assert list(found.variables) == list(LABELS)
    assert np.array_equal(found.record.sample, model.sample(20, seed=5))
    assert np.array_equal(sampler.sample(problem(), num_reads=20, seed=5).record.sample, found.record.sample)
    assert not np.array_equal(sampler.sample(problem(), num_reads=20, seed=6).record.sample, found.record.sample)
    assert np.array_equal(
        sampler.sample(problem("BINARY"), num_reads=20, seed=5).record.sample, (found.record.sample + 1) // 2
    )


def test_the_order_of_variables_in_a_problem_does_not_matter() -> None:
    turned = dimod.BinaryQuadraticModel({(4, 5): 0.0, "b": -1.0, 30: 0.5}, {}, "SPIN")
    found = ModelSampler(Known(), LABELS).sample(turned, num_reads=2, seed=1)  # rows + - - and - + -
    assert found.record.energy.tolist() == [0.5 + 1.0, -0.5 - 1.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ModelSampler(tiny.model()), "not fitted yet|call fit"),
        (lambda: ModelSampler(object()), "object is no fitted model"),  # type: ignore[arg-type]
        (lambda: ModelSampler(Known(states=3)), "3 states per site"),
        (lambda: ModelSampler(Known(), [1, 2]), "2 different columns .* 3 sites"),
        (lambda: ModelSampler(Known(), [1, 2, 2]), "2 different columns"),
        (lambda: ModelSampler(Known()).sample(problem()), r"the problem has 30, 'b', \(4, 5\), which the samples lack"),
        (
            lambda: ModelSampler(Known(), LABELS).sample(dimod.BQM({30: 1.0}, {}, "SPIN")),
            r"lacks 'b', \(4, 5\).*add_linear",
        ),
        (lambda: ModelSampler(Known(), LABELS).sample(problem(), num_reads=0), "num_reads must be .* got 0"),
        (lambda: sampleset([[1, -1]]), "energies need a problem"),
        (
            lambda: sampleset([[1, 2]], ({0: 1.0, 1: 1.0}, {})),
            "samples has .*2.* at row 0, column 1; it must be -1 or 1",
        ),
        (lambda: sampleset([[0, 1], [0, -1]], ({0: 1.0, 1: 1.0}, {})), "row 1, column 1; it must be 0 or 1"),
        (lambda: sampleset([1, -1], ({0: 1.0, 1: 1.0}, {})), r"shape is \(2,\)"),
        (lambda: sampleset([[1, -1]], 5), "problem is of type int"),
        (lambda: sampleset([[1, -1]], ({0: 1.0}, {})), "the problem lacks 1"),
        (lambda: sampleset([[1]], ({0: 1.0}, {}), num_occurrences=[1.5]), "num_occurrences has 1.5 at row 0"),
        (lambda: sampleset([[1]], ({0: 1.0}, {}), num_occurrences=[-1]), "num_occurrences has -1 at row 0"),
        (lambda: sampleset([[1]], ({0: 1.0}, {}), num_occurrences=[1, 2]), r"shape \(2,\)"),
        (lambda: sampleset([[1]], ({0: 1.0}, {}), vartype="DISCRETE"), "vartype must be 'SPIN' or 'BINARY'"),
        (lambda: sampleset(edwards_anderson(3)), "has no rows"),
    ],
)
def test_what_is_wrong_is_named(make: Any, words: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=words):
        make()


def test_a_problem_that_does_not_fit_is_refused_before_anything_is_drawn() -> None:
    class Untouched(Known):
        def sample(self, n: int, *, seed: int | None = None) -> np.ndarray:
            raise AssertionError("drawn in vain")

    with pytest.raises(ValueError, match="the problem has 30"):
        ModelSampler(Untouched()).sample(problem())


def test_misspelt_options_are_refused() -> None:
    with pytest.raises(TypeError, match="num_read"):
        ModelSampler(Known(), LABELS).sample(problem(), num_read=3)  # type: ignore[call-arg]


@settings(deadline=None)  # other work on the machine is no fault
@given(st.data())
def test_samples_with_energies(data: Any) -> None:
    sites = data.draw(st.integers(1, 6))
    bias = st.floats(-3, 3)
    h = {site: data.draw(bias) for site in range(sites)}
    J = {(i, j): data.draw(bias) for i in range(sites) for j in range(i) if data.draw(st.booleans())}
    rows = data.draw(
        st.lists(st.lists(st.sampled_from([-1, 1]), min_size=sites, max_size=sites), min_size=1, max_size=5)
    )
    counts = data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
    vartype = data.draw(st.sampled_from(["SPIN", "BINARY"]))
    found = sampleset(rows, (h, J), num_occurrences=counts, vartype=vartype)
    assert found.vartype.name == vartype
    assert found.change_vartype("SPIN", inplace=False).record.sample.tolist() == rows
    assert found.record.num_occurrences.tolist() == counts
    for row, energy in zip(rows, found.record.energy, strict=True):
        expected = sum(c * row[i] * row[j] for (i, j), c in J.items()) + sum(c * row[i] for i, c in h.items())
        assert abs(energy - expected) <= 2 * 21 * 63 * 2**-53  # 21 terms below 3, summed in two orders


def test_a_split_data_set_comes_back_whole() -> None:
    rows = np.array([[1, 1, -1], [1, -1, -1], [-1, -1, 1], [1, 1, 1]])
    given_set = dimod.SampleSet.from_samples_bqm((rows, LABELS), problem(), num_occurrences=[5, 1, 7, 2])
    data = dwave(given_set, problem=problem(), test_fraction=0.4)
    assert data.test is not None
    back = sampleset(data).aggregate()
    assert back.record.num_occurrences.sum() == 15
    expected = {tuple(row): count for row, count in zip(rows.tolist(), [5, 1, 7, 2], strict=True)}
    assert {
        tuple(r): c for r, c in zip(back.record.sample.tolist(), back.record.num_occurrences, strict=True)
    } == expected
    dimod.testing.assert_sampleset_energies(back, problem())
    other = sampleset(data, problem("BINARY"))  # asked about another problem: its energies, in its variables
    dimod.testing.assert_sampleset_energies(other, problem("BINARY"))
    with pytest.raises(ValueError, match="counts of its own"):
        sampleset(data, num_occurrences=[1])


def test_without_dimod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dimod", None)
    monkeypatch.delitem(sys.modules, "neurise.dimod_bridge")
    with pytest.raises(ImportError, match=r"pip install 'neurise\[dwave\]'"):
        importlib.import_module("neurise.dimod_bridge")
