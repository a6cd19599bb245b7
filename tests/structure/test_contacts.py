"""Ranked pairs, held against the plain formula, and on a chain whose contacts are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import figure_checks
import numpy as np
import pytest

from neurise import structure
from neurise.structure import Structure
from neurise.structure.gauge import zero_sum


def made(sites: int, states: int, *, constant: tuple[int, ...] = (), seed: int = 0) -> Structure:
    """Random tables in the zero-sum gauge; those of constant sites are not known."""
    tables = np.zeros((sites, sites, states, states))
    rng = np.random.default_rng(seed)
    for i in range(sites):
        for j in range(i + 1, sites):
            own = zero_sum(rng.normal(0, 1 / (j - i), (states, states)))
            tables[i, j], tables[j, i] = own, own.T
    tables[list(constant)] = tables[:, list(constant)] = np.nan
    nothing = np.zeros((sites, sites))
    symbols = np.array(list("-ACDEFGH")[:states])
    return Structure(
        symbols, tables, nothing, nothing, nothing > 0, None, "given", constant=constant, rows=1
    )  # fmt: skip


def plain(found: Structure, left: tuple[int, ...] = ()) -> dict[tuple[int, int], float]:
    """Write the formula out, pair by pair."""
    sites, states = found.tables.shape[1:3]
    free = [site for site in range(sites) if site not in found.constant]
    norm = {
        (i, j): sum(
            found.tables[i, j, a, b] ** 2
            for a in range(states)
            for b in range(states)
            if a not in left and b not in left
        )
        ** 0.5
        for i in free
        for j in free
        if i != j
    }
    mean = {i: sum(norm[i, j] for j in free if j != i) / (len(free) - 1) for i in free}
    all_pairs = sum(norm.values()) / len(norm)
    return {(i, j): norm[i, j] - mean[i] * mean[j] / all_pairs for i, j in norm if i < j}


@pytest.mark.parametrize("states", [2, 5])
@pytest.mark.parametrize("constant", [(), (2, 5)])
def test_scores_are_those_of_the_plain_formula(states: int, constant: tuple[int, ...]) -> None:
    found = made(7, states, constant=constant)
    ranked = structure.contacts(found)
    expected = plain(found)
    assert {tuple(pair) for pair in ranked.pairs.tolist()} == set(expected)
    for (i, j), value in expected.items():
        assert ranked.scores[i, j] == pytest.approx(value)
        assert ranked.scores[j, i] == ranked.scores[i, j]
    values = [expected[i, j] for i, j in ranked.pairs.tolist()]
    assert values == sorted(values, reverse=True)
    assert np.isnan(ranked.scores[list(constant)]).sum() == len(constant) * 6  # but for the diagonal


def test_gaps_are_left_out_of_the_norms() -> None:
    found = made(6, 4)
    ranked = structure.contacts(found, leave_out="-")
    for (i, j), value in plain(found, left=(0,)).items():
        assert ranked.scores[i, j] == pytest.approx(value)


def test_near_pairs_are_not_ranked_but_count_in_the_means() -> None:
    found = made(9, 3)
    ranked, whole = structure.contacts(found, min_separation=4), structure.contacts(found)
    assert (ranked.pairs[:, 1] - ranked.pairs[:, 0]).min() == 4
    assert len(ranked.pairs) == 5 * 6 // 2
    np.testing.assert_array_equal(ranked.scores, whole.scores)
    some = structure.contacts(found, sites=[1, 4, 8])
    assert sorted(some.pairs.tolist()) == [[1, 4], [1, 8], [4, 8]]


def test_no_couplings_have_no_contacts_to_divide_by() -> None:
    found = made(4, 3)
    ranked = structure.contacts(replace(found, tables=np.zeros_like(found.tables)))
    assert (ranked.scores == 0).all()


def test_wrong_values_are_refused() -> None:
    found = made(4, 3)
    with pytest.raises(ValueError, match="min_separation must be a whole number"):
        structure.contacts(found, min_separation=0)
    with pytest.raises(ValueError, match="leave_out names 'X'"):
        structure.contacts(found, leave_out="X")
    with pytest.raises(ValueError, match="sites must be whole numbers from 0 to 3"):
        structure.contacts(found, sites=[2, 4])


@pytest.mark.parametrize("sites", [5, 53, 263])
def test_the_map_can_be_read(sites: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = structure.contacts(made(sites, 2, constant=(1,)), min_separation=2)
    path = tmp_path / "map.png"
    figure = figure_checks.drawn_figure(monkeypatch, lambda: structure.draw_contacts(ranked, path))
    figure_checks.check(figure)
    marks = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_array_equal(marks, ranked.pairs[: min(sites, len(ranked.pairs))])
    assert path.stat().st_size > 0
