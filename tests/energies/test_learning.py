"""Maximum likelihood and the search for a graph, where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from family_cases import FAMILIES, configurations, law, parameters
from torch import Tensor

from neurise.deadline import Work
from neurise.energies.exact_laws import exact_laws
from neurise.energies.family import Family
from neurise.energies.graph_selection import absent_from, additions, wald
from neurise.energies.learning import Declined, Learnt, learn
from neurise.energies.maximum_likelihood import FIELDS, Aim, Prior, fit
from neurise.energies.pair_candidates import regress
from neurise.rows import Rows
from neurise.space import Space


def drawn(family: Family, theta: Tensor, n: int, seed: int = 0) -> Rows:
    """Rows of every class, equally many of each."""
    laws, rng = exact_laws(family), np.random.default_rng(seed)
    assert laws is not None
    parts = [laws.solve(theta, kind).draw(n // family.kinds, rng) for kind in range(family.kinds)]
    y = torch.arange(family.kinds).repeat_interleave(n // family.kinds) if family.classes else None
    return Rows(torch.cat(parts), y)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_of_the_penalised_likelihood_vanishes(name: str) -> None:
    family = FAMILIES[name]
    laws = exact_laws(family)
    rows = drawn(family, parameters(family), 600)
    assert laws is not None
    found = fit(laws, Aim.of(rows, family.classes), prior=Prior(2.0))
    assert found.converged
    shares = np.full(family.kinds, 1 / family.kinds)
    exact = [law(family, found.theta, kind) for kind in range(family.kinds)]
    moments = sum(share * chances @ matrix for share, (chances, _, matrix) in zip(shares, exact, strict=True))
    digits = np.array(family.space.digits)
    each = [
        2.0 * digits[i] * digits[j] / 4
        for (i, j), d in zip(family.edges, family.numbers, strict=True)
        for _ in range(d)
    ]
    penalty = np.array([FIELDS] * family.num_fields + each) / 600
    gap = family.mean(rows).numpy() - moments - penalty * found.theta.numpy()
    # The fit ends at 0.05 standard errors, √(var f / N), as the draws see them: var f of contrasts is at most (p − 1)².
    assert np.abs(gap).max() <= 0.1 * (family.space.states - 1) ** 2 / np.sqrt(600)
    places = family.space.index(rows.x).numpy()
    labels = np.zeros(600, dtype=int) if rows.y is None else rows.y.numpy()
    mean = np.mean([np.log(exact[kind][0][place]) for kind, place in zip(labels, places, strict=True)])
    assert found.value == pytest.approx(mean, abs=1e-5)
    assert found.score(rows) == pytest.approx(mean, abs=1e-5)


def test_counts_are_rows_that_occur_often() -> None:
    family = FAMILIES["three states"]
    rows = drawn(family, parameters(family), 400)
    values, counts = torch.unique(rows.x, dim=0, return_counts=True)
    laws = exact_laws(family)
    assert laws is not None
    often = fit(laws, Aim.of(Rows(values, weights=counts.double())), prior=Prior(1.0))
    assert float((often.theta - fit(laws, Aim.of(rows), prior=Prior(1.0)).theta).abs().max()) < 1e-6


def test_a_fit_far_from_the_start_does_not_diverge() -> None:
    """Sites that always agree: the penalty alone keeps the couplings finite."""
    x = torch.zeros(50, 6, dtype=torch.uint8)
    x[25:] = 1
    laws = exact_laws(Family.dense(Space(6, 2)))
    assert laws is not None
    found = fit(laws, Aim.of(Rows(x)), prior=Prior(0.1), start=5 * parameters(laws.family))
    assert found.converged
    assert found.value == pytest.approx(-np.log(2), abs=0.05)


def test_wald_and_additions_foretell_the_change_of_the_likelihood() -> None:
    """To second order, which is good where a coupling is weak."""
    family = Family(Space(4, 3, (3, 2, 3, 3)), np.array([[0, 1], [1, 2], [2, 3]]))
    theta = parameters(family, size=0.5)
    theta[-4:] *= 0.2
    rows = drawn(family, theta, 3000)
    aim, whole = Aim.of(rows), exact_laws(family)
    assert whole is not None
    with_it = fit(whole, aim, prior=Prior(0.01))
    narrower = exact_laws(family.restricted(np.array([True, True, False]))[0])
    assert narrower is not None
    without = fit(narrower, aim, prior=Prior(0.01))
    lost = 3000 * (with_it.value - without.value)
    assert wald(with_it)[2] == pytest.approx(lost, rel=0.25)
    absent = absent_from(without.family)
    place = absent.edges.tolist().index([2, 3])
    # Draws of the law blur the difference: they are seven times as many as the rows.
    assert additions(without, absent, aim)[place] == pytest.approx(lost, rel=0.4)


@pytest.mark.parametrize("name", ["spins", "three states", "labels", "own alphabets", "own alphabets and labels"])
def test_the_graph_is_found(name: str) -> None:
    family = FAMILIES[name]
    theta = parameters(family, seed=3, size=0.35)
    theta[family.num_fields :] += 0.35 * theta[family.num_fields :].sign()  # no coupling is weak
    rows = drawn(family, theta, 12_000, seed=1)
    found = learn(rows, family.space, classes=family.classes)
    assert isinstance(found, Learnt)
    assert {tuple(pair) for pair in found.graph.tolist()} == {tuple(pair) for pair in family.edges.tolist()}
    # Normal errors: none of the k parameters is 5 standard errors off.
    error = found.covariance().diagonal().sqrt()
    truth = Family(family.space, found.graph, family.classes)
    assert ((found.theta - family.carried(theta, truth)).abs() <= 5 * error).all()


def test_what_is_learnt_is_a_law() -> None:
    family = FAMILIES["own alphabets and labels"]
    rows = drawn(family, parameters(family, size=0.4), 2000)
    found = learn(rows, family.space, classes=2)
    assert isinstance(found, Learnt)
    x = torch.tensor(configurations(family.space), dtype=torch.uint8)
    for kind in range(2):
        assert float(found.log_prob(x, torch.full((len(x),), kind)).exp().sum()) == pytest.approx(1, abs=1e-5)
    own = found.log_prob(rows.x, rows.y).mean()
    assert found.mean_log_likelihood == pytest.approx(float(own), abs=1e-5)
    assert found.draw(7, 1, seed=0).shape == (7, 4)
    assert str(len(found.graph)) in found.words


def test_couplings_of_regressions_are_near_those_of_the_law() -> None:
    for name in ("all spins", "three states", "own alphabets"):
        family = FAMILIES[name]
        theta = parameters(family, size=0.3)
        start = regress(drawn(family, theta, 20_000), family.space.states).start(family)
        couplings = slice(family.num_fields, None)
        assert float((start[couplings] - theta[couplings]).abs().max()) < 0.2, name


def test_what_cannot_be_learnt_is_declined_with_a_reason() -> None:
    x = torch.zeros(4, 3, dtype=torch.uint8)
    gaps = learn(Rows(x, missing=torch.ones(4, 3, dtype=torch.bool)), Space(3, 2))
    assert isinstance(gaps, Declined)
    assert "gaps" in gaps.reason
    proteins = learn(Rows(x), Space(3, 21))
    assert isinstance(proteins, Declined)
    assert "400 numbers" in proteins.reason
    wide = learn(Rows(torch.zeros(4, 301, dtype=torch.uint8)), Space(301, 2))
    assert isinstance(wide, Declined)
    assert "301 numbers in a row" in wide.reason


def test_time_that_is_over_still_gives_an_energy() -> None:
    family = FAMILIES["all spins"]
    found = learn(drawn(family, parameters(family), 200), family.space, work=Work(seconds=0.0))
    assert isinstance(found, Learnt)


@pytest.mark.parametrize("counts", [[2, 1], [2, 2], [1, 3]])
def test_few_observations_may_all_fall_into_one_fold(counts: list[int]) -> None:
    """Of two rows with their counts nothing is left to fit then, and nothing to judge in other folds."""
    rows = Rows(torch.tensor([[0, 1], [1, 0]], dtype=torch.uint8), weights=torch.tensor(counts).double())
    for seed in range(20):
        found = learn(rows, Space(2, 2), seed=seed)
        assert isinstance(found, Learnt)
        assert np.isfinite(found.found.value)
