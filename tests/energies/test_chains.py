"""Maximum likelihood by Markov chains, beside sums that are exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from family_cases import FAMILIES, law, parameters
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import maximum_likelihood
from neurise.energies.chain_fit import ADDED, CHECK, candidates, fit, information, pseudo_likelihood
from neurise.energies.chains import Chains, problems
from neurise.energies.exact_laws import exact_laws
from neurise.energies.family import Family
from neurise.energies.graph_selection import Rule
from neurise.energies.learning import Declined, Sampled, learn
from neurise.energies.maximum_likelihood import Aim, Prior
from neurise.models.pairwise import Pairwise
from neurise.rows import Rows
from neurise.space import Space

KINDS = ["spins", "three states", "own alphabets and labels"]
REPORTED = 40
"""Sweeps of a check that is short."""


def drawn(family: Family, theta: Tensor, n: int) -> Rows:
    """Rows of every class; every second one counts twice."""
    laws, rng = exact_laws(family), np.random.default_rng(0)
    assert laws is not None
    x = torch.cat([laws.solve(theta, kind).draw(n // family.kinds, rng) for kind in range(family.kinds)])
    y = torch.arange(family.kinds).repeat_interleave(n // family.kinds) if family.classes else None
    return Rows(x, y, weights=1.0 + torch.arange(len(x)) % 2)


def exact_moments(family: Family, theta: Tensor, shares: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Means of features over the classes, and their variances within classes."""
    mean, variance = np.zeros(family.size), np.zeros(family.size)
    for kind, share in enumerate(shares.tolist()):
        chances, _, features = law(family, theta, kind)
        own = chances @ features
        mean, variance = mean + share * own, variance + share * (chances @ features**2 - own**2)
    return mean, variance


@pytest.mark.parametrize("name", KINDS)
def test_moments_of_chains_are_those_of_the_law(name: str) -> None:
    """Also with importance weights, and however the chains were started."""
    family = FAMILIES[name]
    theta = parameters(family, size=0.4)
    aim = Aim.of(drawn(family, theta, 600), family.classes)
    chains = Chains.at_rows(family, aim)
    near = theta + parameters(family, seed=5, size=0.05)
    for run in (chains, chains.elsewhere(3)):
        snapshot = run.run(theta, 30, Work())
        for at in (theta, near):
            moved = snapshot.moved(at)
            mean, variance = exact_moments(family, at, aim.shares)
            # Chains are independent: each of k ≤ 30 means is normal with variance σ²/n, and 5 errors are not exceeded.
            error = np.sqrt(variance / (run.number * moved.effective))
            assert (np.abs(moved.moments.numpy() - mean) <= 5 * error + 1e-12).all()
            assert moved.effective > 0.5
        exact = [law(family, near, kind)[1] - law(family, theta, kind)[1] for kind in range(family.kinds)]
        assert moved.log_z == pytest.approx(float(np.dot(aim.shares.numpy(), exact)), abs=5 / np.sqrt(run.number))


@pytest.mark.parametrize("name", KINDS)
def test_the_fit_is_that_of_exact_sums(name: str) -> None:
    family = FAMILIES[name]
    laws = exact_laws(family)
    aim = Aim.of(drawn(family, parameters(family, size=0.4), 1000), family.classes)
    assert laws is not None
    exact = maximum_likelihood.fit(laws, aim, prior=Prior(1.0))
    found = fit(family, aim, prior=Prior(1.0), check=100)
    assert found.problems == ()
    apart = (found.theta - exact.theta) / exact.covariance().diagonal().sqrt()
    # The chains add a share ADDED of the variance of the rows; correlated in time they add a few times as much.
    assert float(apart.square().mean()) < 5 * ADDED
    ratio = found.covariance().diagonal() / exact.covariance().diagonal()
    assert 0.3 < float(ratio.min()) <= float(ratio.max()) < 3  # rare states are in a few dozen chains only


def test_a_law_of_two_valleys_is_reported() -> None:
    """All spins agree in the rows, nine of ten are up: chains keep to where they were."""
    family = Family.dense(Space(8, 2))
    theta = torch.cat([torch.zeros(8), torch.full((28,), 1.0)]).double()
    x = torch.ones(1000, 8, dtype=torch.uint8)
    x[:100] = 0
    chains = Chains.at_rows(family, Aim.of(Rows(x)))
    found = "; ".join(problems(chains, theta, sweeps=REPORTED, seed=0, work=Work()))
    assert "with itself" in found
    assert "chains from anywhere" in found
    weak = problems(chains, 0.05 * theta, sweeps=REPORTED, seed=0, work=Work())
    assert weak == []


def test_pairs_that_share_information_are_candidates() -> None:
    family = FAMILIES["three states"]
    x = torch.randint(3, (2000, 4), generator=torch.Generator().manual_seed(0)).byte()
    x[:1500, 2] = x[:1500, 0]
    aim = Aim.of(Rows(x))
    joint = np.zeros((3, 3))
    np.add.at(joint, (x[:, 0], x[:, 2]), 1 / 2000)
    expected = 2000 * (joint * np.log(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
    costs = information(aim, 3)
    assert float(costs[0, 2]) == pytest.approx(expected, rel=1e-4)
    rule = Rule(0.5 * np.log(2000), 0.5 * np.log(6), Prior(1.0))
    assert candidates(Family.dense(family.space), rule, costs).edges.tolist() == [[0, 2]]


def test_the_start_is_near_the_law() -> None:
    for name in ("spins", "three states", "own alphabets"):
        family = FAMILIES[name]
        theta = parameters(family, size=0.3)
        start = pseudo_likelihood(family, Aim.of(drawn(family, theta, 4000)), Work())
        # Parameters of rare pairs of states have errors up to about 0.1.
        assert float((start - theta).abs().max()) < 0.4, name


@pytest.mark.slow
def test_a_graph_is_found_where_no_sum_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    family = FAMILIES["spins"]
    rows = drawn(family, torch.full((family.size,), 0.4).double(), 800)
    monkeypatch.setattr("neurise.energies.choosing.exact_laws", lambda *given: None)
    monkeypatch.setattr("neurise.energies.choosing.candidates", lambda *given, **named: None)
    assert isinstance(learn(rows, family.space), Declined)
    model = Pairwise().fit(rows.x.numpy(), verbose=False)
    assert "Markov chains" in str(model.energy_)
    pairs = {tuple(pair) for pair in np.argwhere(np.triu(model.couplings_) != 0).tolist()}
    assert pairs == {tuple(pair) for pair in family.edges.tolist()}
    assert model.stopped_ == "solved"
    with monkeypatch.context() as fewer:
        fewer.setattr("neurise.energies.chain_fit.MOST_PARAMETERS", 6)
        few = learn(rows, family.space, graph=family.edges, chains=True)
    assert isinstance(few, Declined)
    assert "5 pairs have 10 parameters" in few.reason
    ended = learn(rows, family.space, graph=family.edges, chains=True, work=Work(seconds=0.0))
    assert isinstance(ended, Sampled)
    assert "that were given" in ended.words


def test_chains_that_are_slow_are_given_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """And who judges an energy by rows held back has it whether or not they mix."""
    family, asked = FAMILIES["spins"], list[int]()
    rows = drawn(family, torch.full((family.size,), 0.4).double(), 800)

    def slow(chains: Chains, theta: Tensor, *, sweeps: int, seed: int, work: Work) -> list[str]:
        asked.append(sweeps)
        return ["they are slow"] if sweeps < enough else []

    monkeypatch.setattr("neurise.energies.chain_fit.problems", slow)
    monkeypatch.setattr("neurise.energies.choosing.exact_laws", lambda *given: None)
    enough = 4 * CHECK
    assert isinstance(learn(rows, family.space, graph=family.edges, chains=True), Sampled)
    assert asked == [CHECK, 4 * CHECK]
    enough = 5 * CHECK
    refused = learn(rows, family.space, graph=family.edges, chains=True)
    assert isinstance(refused, Declined)
    assert "they are slow" in refused.reason
    judged = learn(rows, family.space, graph=family.edges, chains=True, judged=True)
    assert isinstance(judged, Sampled)
    assert "they are slow" in judged.words
