"""Networks that an energy teaches where its conditionals cannot be had: what they learn from, and how that is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import torch

import neurise
from neurise import NeurISE
from neurise.conditionals import energy_conditionals
from neurise.energies import choosing, learning
from neurise.energies.draws import draws
from neurise.energies.learning import Learnt, Sampled
from neurise.interactions import Interactions
from neurise.modeling import lessons
from neurise.modeling.groups import Architecture
from neurise.modeling.lessons import Lessons
from neurise.modeling.weighing import Judges
from neurise.rows import Rows, with_folds
from neurise.space import Space

SPACE = Space(4, 3)
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
SMALL: dict[str, Any] = {"width": 4, "depth": 1, "members": 1, "steps": 160, "architecture": Architecture(energy=True)}
"""Networks that are too small to be of use, beside an energy that is insisted on; each of three short runs has ten steps."""


def truth() -> np.ndarray:
    """The law of a short open chain of sites of three states, over all configurations."""
    tables = np.random.default_rng(7).normal(size=(3, 3, 3))
    law = Interactions(EDGES, tables, np.random.default_rng(8).normal(size=(4, 3)) / 2)
    weight: np.ndarray = np.exp(law.log_weight(SPACE.configurations()).numpy())
    return weight / weight.sum()


def rows(n: int, seed: int = 0) -> np.ndarray:
    """Draw rows of it."""
    return oracles.draw(SPACE, truth(), n, seed)


def law_of(own: Rows) -> np.ndarray:
    """Return the law of weighted rows, over all configurations."""
    place = np.ravel_multi_index(tuple(own.x.numpy().T), (3,) * 4)
    mass = np.ones(len(own)) if own.weights is None else own.weights.numpy()
    found = np.bincount(place, mass, minlength=SPACE.size)
    return found / found.sum()


def energy_of(own: Rows, monkeypatch: pytest.MonkeyPatch, *, chains: bool) -> Learnt | Sampled:
    if chains:  # no sum can be done
        monkeypatch.setattr(choosing, "exact_laws", lambda *given: None)
        monkeypatch.setattr("neurise.energies.pair_candidates.exact_laws", lambda *given: None)
    found = learning.learn(own, SPACE, chains=chains, judged=True)
    assert isinstance(found, Sampled if chains else Learnt)
    return found


@pytest.fixture
def _no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every table too large, so that no energy has conditionals of its own."""
    monkeypatch.setattr(energy_conditionals, "MOST_ENTRIES", 0)
    monkeypatch.setattr(lessons, "ROWS", 2000)


@pytest.mark.parametrize("chains", [False, True])
def test_rows_that_are_drawn_follow_the_law_of_the_energy(chains: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = energy_of(Rows(torch.from_numpy(rows(800)).to(torch.uint8)), monkeypatch, chains=chains)
    drawn = draws(found, 4000, seed=1)
    assert len(drawn) >= 4000
    weight = np.exp(found.family.interactions(found.theta).log_weight(SPACE.configurations()).numpy())
    tv = 0.5 * np.abs(law_of(drawn) - weight / weight.sum()).sum()
    # Independent rows are off by ½ Σ √(p / n) ≤ ½ √(81 / n) at most on average; a thousand chains, looked at four times.
    assert tv < 0.5 * np.sqrt(81 / 4000) * (1.5 if not chains else 2.0)


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_follow_the_mixture_of_data_and_energy(share: float, weighted: bool) -> None:
    x = torch.from_numpy(rows(200)).to(torch.uint8)
    data = Rows(x, weights=torch.arange(200, dtype=torch.float64) if weighted else None)
    taught = Rows(torch.from_numpy(rows(333, 1)).to(torch.uint8), weights=torch.full((333,), 1 / 333).double())
    mixed = Lessons(taught, share).mixed_into(data, 0)
    np.testing.assert_allclose(law_of(mixed), (1 - share) * law_of(data) + share * law_of(taught), atol=1e-12)


def test_a_member_that_lacks_a_fold_learns_the_same_mixture() -> None:
    folds, share = 5, 0.5
    data = with_folds(Rows(torch.from_numpy(rows(200)).to(torch.uint8)), folds, seed=0)
    taught = Rows(torch.from_numpy(rows(333, 1)).to(torch.uint8), weights=torch.full((333,), 1 / 333).double())
    mixed = Lessons(taught, share).mixed_into(data, folds)
    assert mixed.fold is not None
    assert mixed.weights is not None
    for member in range(2):
        own = mixed.take(mixed.fold != member)
        seen = data.take(torch.as_tensor(data.fold != member))
        np.testing.assert_allclose(law_of(own), (1 - share) * law_of(seen) + share * law_of(taught), atol=1e-12)


def test_no_share_is_taken_unless_another_is_clearly_better() -> None:
    x = torch.zeros(400, 1, dtype=torch.uint8)
    x[200:] = 1
    judges = Judges(Rows(x), torch.tensor([True]))

    def says(chance: float) -> torch.Tensor:
        return torch.tensor([chance, 1 - chance]).double().log().expand(400, 1, 2)

    assert lessons.best(judges, {0.0: says(0.5), 0.5: says(0.5), 0.9: says(0.5)}) == 0.0
    assert lessons.best(judges, {0.0: says(0.51), 0.5: says(0.5)}) == 0.0  # better, by less than two standard errors
    assert lessons.best(judges, {0.0: says(0.9), 0.5: says(0.6), 0.9: says(0.5)}) == 0.9
    assert lessons.best(judges, {0.0: says(0.5), 0.9: says(0.9)}) == 0.0


def test_an_energy_that_chains_have_learnt_joins_as_any_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "exact_laws", lambda *given: None)
    monkeypatch.setattr("neurise.energies.pair_candidates.exact_laws", lambda *given: None)
    model = NeurISE(**{**SMALL, "steps": 20}).fit(rows(1000), verbose=False)
    assert "Markov chains" in model.summary()["energy"]
    assert model.shares_["energy"] > 0.5
    assert {(0, 1), (1, 2), (2, 3)} >= set(map(tuple, np.argwhere(np.triu(model.structure_.adjacency)).tolist()))
    # It has 8 fields and 4 couplings for each of 3 pairs: rows leave an error of 0.4 √(20 / 1000), chains and a graph add half.
    assert 0.5 * np.abs(neurise.exact.law(model).numpy().ravel() - truth()).sum() < 1.5 * 0.4 * np.sqrt(20 / 1000)


def always(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons, "best", lambda judges, answers: share)


@pytest.mark.usefixtures("_no_tables")
def test_the_networks_are_taught_and_the_summary_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    always(0.9, monkeypatch)
    model = NeurISE(**SMALL).fit(rows(400), verbose=False)
    assert "energy" not in model.shares_
    told = model.summary()
    assert "90% of what they learn from" in told["energy"]
    assert "networks taught in 90% of their rows: by a race" in told["choice"]
    model.save(tmp_path / "model")
    assert str(neurise.load(tmp_path / "model").summary()) == str(told)
    always(0.0, monkeypatch)
    plain = NeurISE(**SMALL).fit(rows(400), verbose=False)
    assert "nothing that held-back rows ask for" in plain.summary()["energy"]
    without = NeurISE(**{**SMALL, "architecture": Architecture()}).fit(rows(400), verbose=False)
    np.testing.assert_array_equal(plain.log_prob(rows(20)), without.log_prob(rows(20)))
    assert (model.log_prob(rows(20)) != without.log_prob(rows(20))).any()


@pytest.mark.usefixtures("_no_tables")
def test_a_taught_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    always(0.5, monkeypatch)
    options: dict[str, Any] = {
        "verbose": False,
        "weights": np.arange(300) % 3,
        "y": np.where(rows(300)[:, 0], "a", "b"),
    }
    whole = NeurISE(**SMALL).fit(rows(300), **options)

    def stop(step: int, *_: Any) -> bool:
        return step >= 20

    NeurISE(**SMALL).fit(rows(300), checkpoint=tmp_path, callback=stop, **options)
    monkeypatch.setattr(lessons, "best", None)  # which is not asked again
    again = NeurISE(**SMALL).fit(rows(300), checkpoint=tmp_path, resume=True, **options)
    np.testing.assert_array_equal(whole.log_prob(rows(20), ["a"] * 20), again.log_prob(rows(20), ["a"] * 20))
    assert "50%" in again.summary()["energy"]


@pytest.mark.usefixtures("_no_tables")
def test_several_models_are_taught_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    always(0.5, monkeypatch)
    one = NeurISE(**SMALL).fit(rows(300), seed=3, verbose=False)
    (many,) = neurise.fit_many(NeurISE(**SMALL), [rows(300)], seeds=[3], verbose=False)
    np.testing.assert_array_equal(one.log_prob(rows(20)), many.log_prob(rows(20)))
    both = neurise.fit_many(NeurISE(**SMALL), [rows(300), rows(300, 1)], seeds=[3, 4], verbose=False)
    assert all("50%" in model.summary()["energy"] for model in both)


@pytest.mark.usefixtures("_no_tables")
def test_little_time_leaves_a_model() -> None:
    model = NeurISE(**{**SMALL, "architecture": Architecture()}).set_params(architecture__energy=True)
    assert np.isfinite(model.fit(rows(300), max_seconds=1e-3, verbose=False).log_prob(rows(10))).all()
