"""What is solved for beside networks, or in their place: every way that a fit can be asked for it, saved and used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import torch

import neurise
from neurise import NeurISE
from neurise.deadline import Interrupts
from neurise.energies import choosing
from neurise.interactions import Interactions
from neurise.modeling import solved_members
from neurise.modeling.groups import Architecture
from neurise.space import Space

SPACE = Space(4, 2)
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
GLASS = neurise.datasets.edwards_anderson(side=4, seed=2)
SMALL: dict[str, Any] = {"width": 4, "depth": 1, "members": 1, "steps": 60, "architecture": Architecture(energy=True)}
"""Networks that are too small to be of use, beside an energy that is insisted on."""


def spins(n: int, seed: int = 0) -> np.ndarray:
    """Rows of a short open chain of spins."""
    law = Interactions.ising(EDGES, np.array([0.9, -0.8, 0.7]), np.array([0.3, -0.2, 0.1, 0.2]))
    weight = np.exp(law.log_weight(SPACE.configurations()).numpy())
    return oracles.draw(SPACE, weight / weight.sum(), n, seed)


def triples(n: int) -> np.ndarray:
    """Rows of three states whose last site is the sum of the others: no pair of sites depends on each other."""
    x = np.random.default_rng(0).integers(0, 3, (n, 3))
    return np.concatenate([x, x.sum(1, keepdims=True) % 3], axis=1)


@pytest.fixture(scope="module")
def alone() -> NeurISE:
    """A model of the defaults, whose energy is all that is needed. All pairs at once, which takes longest, is not tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "QUICK", 0)
        patch.setattr(choosing, "FEW_ROWS", 0)
        return NeurISE().fit(GLASS.sample(1000, seed=1002), verbose=False)


def test_the_defaults_keep_the_energy_alone_where_it_is_the_truth(alone: NeurISE) -> None:
    assert alone.shares_ == {"energy": 1.0}
    assert alone.stopped_ == "solved"
    facts = alone.summary()
    assert "of 120 pairs" in facts["energy"]
    assert "by a race of 160 steps of networks" in facts["choice"]
    assert "batch size" not in facts
    tv = 0.5 * np.abs(neurise.exact.law(alone).numpy() - GLASS.pmf).sum()
    assert tv < 1.5 * 0.4 * np.sqrt(48 / 1000)  # the bound of theory for 48 parameters, and half as much for the graph


def test_saved_and_loaded_it_is_the_same(alone: NeurISE, tmp_path: Path) -> None:
    alone.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    rows = alone.sample(50, seed=3)
    assert (again.sample(50, seed=3) == rows).all()
    np.testing.assert_array_equal(again.log_prob(rows), alone.log_prob(rows))
    assert str(again.summary()) == str(alone.summary())
    np.testing.assert_array_equal(again.structure_.errors, alone.structure_.errors)


def test_sweeps_leave_the_law_of_an_energy_as_it_is(alone: NeurISE) -> None:
    torch.testing.assert_close(neurise.exact.law(alone, sweeps=2), neurise.exact.law(alone))
    rows = alone.sample(3, sweeps=2, seed=0)
    assert alone.sweeps_ == 0
    np.testing.assert_allclose(alone.conditional(rows, 2).sum(1), 1)


def test_networks_stay_as_they_are_where_the_energy_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solved_members, "find_shares", lambda judges, answers, sizes: [1.0] + [0.0] * (len(sizes) - 1))
    monkeypatch.setattr(solved_members, "are_behind", lambda judges, networks, solved: False)
    options: dict[str, Any] = {"seed": 1, "verbose": False}
    beside = NeurISE(**{**SMALL, "members": 2}).fit(triples(500), **options)
    without = NeurISE(**{**SMALL, "members": 2, "architecture": Architecture()}).fit(triples(500), **options)
    assert set(beside.shares_) == set(without.shares_)
    assert "no share" in beside.summary()["energy"]
    np.testing.assert_array_equal(beside.log_prob(triples(30)), without.log_prob(triples(30)))
    assert (beside.sample(30, seed=0) == without.sample(30, seed=0)).all()
    assert beside.sweeps_ == 0
    with pytest.warns(UserWarning, match="to which held-back rows gave no share"):
        assert beside.sample(3, sweeps=1, seed=0).shape == (3, 4)  # the energy is there for whoever asks


@pytest.mark.parametrize(
    ("settings", "fitted"),
    [
        ({"network": "site_mlp"}, {}),
        ({"members": 2}, {}),
        ({"steps": 30}, {}),
        ({"loss": "screening"}, {}),
        ({"keep_prob": 0.3, "cycles": 2, "steps": 30}, {}),
        ({}, {"max_steps": 12}),
    ],
)
def test_who_asks_for_networks_gets_networks(settings: dict[str, Any], fitted: dict[str, Any]) -> None:
    model = NeurISE(**settings)
    model.begin_fit("cpu")
    model.schema_, rows, held = neurise.schema.learn_schema(spins(60), None, None, None, alphabet=None, order=None)
    model.check()
    run = neurise.modeling.model.Run(0, None, False, fitted.get("max_steps"), None, False, 0.0)
    model.jobs(rows, held, run)
    assert model.solved_ is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"keep_prob": 0.5}, "hard noise"),
        ({"cycles": 2}, "hard noise"),
        ({"architecture": Architecture(energy=True, orders=2)}, "one order"),
        ({"architecture": Architecture(energy="yes")}, "architecture__energy"),  # type: ignore[arg-type]
    ],
)
def test_an_energy_that_cannot_be_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NeurISE(**{"architecture": Architecture(energy=True), **settings}).fit(spins(60), max_steps=1)


@pytest.mark.parametrize(("small", "stopped"), [(2**16, "solved"), (80, "steps")])
def test_networks_beside_counts_of_a_large_space_are_trained_whole(
    small: int, stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solved_members, "SMALL", small)  # the space has 81 configurations
    monkeypatch.setattr(solved_members, "are_behind", lambda judges, networks, solved: True)
    counted = {**SMALL, "architecture": Architecture(counts=True, energy=False)}
    model = NeurISE(**counted).fit(triples(500), verbose=False)
    assert model.stopped_ == stopped
    assert "counts" in model.shares_


def test_sweeps_need_an_energy_or_networks_that_were_taught() -> None:
    model = NeurISE().set_params(corrector__sweeps=1, network="site_mlp", width=4, depth=1)
    with pytest.raises(ValueError, match="architecture__energy"):
        model.fit(spins(60), max_steps=1)
    model.set_params(architecture__energy=True, members=1)
    assert model.fit(spins(400), max_steps=12, verbose=False).sample(2, seed=0).shape == (2, 4)


def test_labels_weights_constant_sites_and_symbols() -> None:
    x = np.concatenate([spins(900), np.ones((900, 1), dtype=int)], axis=1)
    values, counts = np.unique(np.c_[x, x[:, 0]], axis=0, return_counts=True)
    weighted = NeurISE(**SMALL).fit(
        values[:, :5] * 2 - 1, np.where(values[:, 5] == 1, "a", "b"), weights=counts, verbose=False
    )
    assert "energy" in weighted.shares_
    assert set(np.unique(weighted.sample(50, "a", seed=0))) <= {-1, 1}
    assert (weighted.sample(200, "a", seed=0)[:, 0] == 1).mean() > 0.9
    total = sum(
        np.exp(weighted.log_prob(np.c_[row[None], [[1]]] * 2 - 1)) for row in np.array(oracles.configurations(SPACE))
    )
    assert total == pytest.approx(1, abs=1e-4)  # all but what a constant site never showed
    assert weighted.structure_.constant == (4,)


def test_many_at_once_are_what_one_is() -> None:
    one = NeurISE(**SMALL).fit(spins(600), seed=3, verbose=False)
    (many,) = neurise.fit_many(NeurISE(**SMALL), [spins(600)], seeds=[3], verbose=False)
    np.testing.assert_array_equal(one.log_prob(spins(20)), many.log_prob(spins(20)))
    both = neurise.fit_many(NeurISE(**SMALL), [spins(600), spins(600, 1)], seeds=[3, 4], verbose=False)
    assert all("energy" in model.shares_ for model in both)


def test_a_run_that_goes_on_ends_where_it_would_have(tmp_path: Path) -> None:
    whole = NeurISE(**SMALL).fit(spins(600), verbose=False)
    folder = tmp_path / "run"

    def stop(step: int, *_: Any) -> bool:
        return step >= 20

    NeurISE(**SMALL).fit(spins(600), checkpoint=folder, verbose=False, callback=stop)
    again = NeurISE(**SMALL).fit(spins(600), checkpoint=folder, resume=True, verbose=False)
    np.testing.assert_array_equal(whole.log_prob(spins(20)), again.log_prob(spins(20)))
    assert again.shares_ == whole.shares_


def test_little_time_leaves_a_model() -> None:
    model = NeurISE().fit(spins(300), max_seconds=1e-3, verbose=False)
    assert np.isfinite(model.log_prob(spins(10))).all()


def test_ctrl_c_while_solving_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = solved_members.learn

    def interrupted(names: Any, job: Any, work: Any, near: Any) -> Any:
        found = learn(names, job, work, near)
        asked: Interrupts = work.interrupts
        asked.asked = True
        return found

    monkeypatch.setattr(solved_members, "learn", interrupted)
    model = NeurISE().fit(spins(300), verbose=False)
    assert (model.stopped_, model.shares_) == ("interrupted", {"energy": 1.0})
    monkeypatch.setattr(
        solved_members, "learn", lambda *given: interrupted(*given) and solved_members.Found(None, {}, None)
    )
    model = NeurISE().fit(spins(300), verbose=False)
    assert model.stopped_ == "interrupted"
    assert np.isfinite(model.log_prob(spins(10))).all()


def test_a_callback_sees_the_networks_on_the_way() -> None:
    seen = []

    def look(step: int, seconds: float, losses: Any, model: Any) -> None:
        seen.append(model.shares_)

    model = NeurISE(**SMALL).fit(triples(400), verbose=False, callback=look)
    assert seen
    assert all("energy" not in shares for shares in seen)
    assert "energy" in model.summary()


def test_what_was_solved_for_is_not_kept_with_its_rows(alone: NeurISE) -> None:
    assert alone.solved_ is None
