"""Pairwise terms that are fitted before a network is trained stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps

import neurise
from neurise import exact
from neurise.modeling.trained import TrainedModel
from neurise.networks._committee import Committee
from neurise.networks.site_mlp import SiteMLP
from neurise.training import pairwise
from neurise.rows import Rows

TERMS = ("pair", "pair_bias", "clean_pair", "clean_pair_bias")
STATES = pytest.mark.parametrize("states", [2, 3])
SITES = 4


@pytest.fixture(autouse=True)
def _fewer_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    # All that is compared has the same, and two that are judged by one fold are fast.
    monkeypatch.setattr(pairwise, "STRENGTHS", (0.2, 0.02))
    monkeypatch.setattr(pairwise, "FEW_ROWS", 0)


def data(states: int, n: int = 200, seed: int = 0) -> np.ndarray:
    """Tokens in which each site follows the one before, two times in three."""
    rng = np.random.default_rng(seed)
    x = rng.integers(states, size=(n, SITES))
    for site in range(1, SITES):
        x[:, site] = np.where(rng.random(n) < 2 / 3, x[:, site - 1], x[:, site])
    return x


def model(**params: Any) -> TrainedModel:
    made = tiny.model(**{"skip": True, "alphabet": None, **params})
    assert isinstance(made, TrainedModel)
    return made


def terms(fitted: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in fitted.objective_.network.state_dict().items() if name in TERMS}


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SiteMLP, dict[str, torch.Tensor], list[str]]]:
    """Keep every network that is trained, with its weights before the first step and the names of those that are learnt."""
    seen: list[tuple[Any, dict[str, torch.Tensor], list[str]]] = []

    def instead(state: Any, step: Any) -> torch.Tensor:
        if state.step == 0:
            weights = {name: tensor.clone() for name, tensor in state.network.state_dict().items()}
            seen.append((state.network, weights, [n for n, p in state.network.named_parameters() if p.requires_grad]))
        loss: torch.Tensor = step()
        return loss

    replace_steps(monkeypatch, instead)
    return seen


def by_fit(x: np.ndarray, states: int, sees: torch.Tensor, seed: int) -> pairwise.Terms:
    """What the regressions give for the rows that are not held back."""
    rows = Rows(torch.from_numpy(x).to(torch.uint8))
    kept = tiny.model(validation_fraction=0.1).divide(rows, None, seed)[0]  # type: ignore[attr-defined]
    return pairwise.fit(kept, None, states, sees, seed=seed, device=torch.device("cpu"))[0]


@STATES
def test_the_terms_are_those_of_the_regressions_and_training_leaves_them(
    states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, x = watched(monkeypatch), data(states)
    fitted = model().fit(x, seed=3)
    later = torch.ones(SITES, SITES, dtype=torch.bool).triu(1)  # hard noise erases sites in their order
    expected = by_fit(x, states, later, seed=3)
    found = terms(fitted)
    assert torch.equal(found["pair"], expected.pair)
    assert torch.equal(found["pair_bias"], expected.bias)
    assert found["pair"].abs().max() > 0.1
    ((_, before, learnt),) = seen
    after = fitted.objective_.network.state_dict()
    assert not set(TERMS) & set(learnt)
    assert all(torch.equal(before[name], after[name]) for name in ("pair", "pair_bias"))
    assert {name for name, weight in after.items() if not torch.equal(weight, before[name])} == set(learnt) - {"label"}


@STATES
def test_the_clean_conditionals_have_terms_of_their_own(states: int) -> None:
    x = data(states)
    fitted = model(clean=0.3).fit(x, seed=3)
    found = terms(fitted)
    assert set(found) == set(TERMS)
    everything = by_fit(x, states, ~torch.eye(SITES, dtype=torch.bool), seed=3)
    assert torch.equal(found["clean_pair"], everything.pair)
    assert torch.equal(found["clean_pair_bias"], everything.bias)
    later = by_fit(x, states, torch.ones(SITES, SITES, dtype=torch.bool).triu(1), seed=3)
    assert torch.equal(found["pair"][1:], later.pair[1:])
    # Step 0 sees all other sites, at time 0: it is both.
    assert torch.equal(found["pair"][0], found["clean_pair"][0])
    assert torch.equal(found["pair_bias"][0], found["clean_pair_bias"][0])


@STATES
@pytest.mark.parametrize("clean", [0.0, 0.3])
def test_the_law_is_that_of_the_likelihood(states: int, clean: float) -> None:
    fitted = model(clean=clean).fit(data(states))
    law = exact.law(fitted)
    every = fitted.space_.configurations().numpy()
    # A law is pushed through q kernels in float64, from logits in float32: q · 1e-6 of each probability.
    assert abs(float(law.sum()) - 1) < 1e-12
    np.testing.assert_allclose(np.exp(fitted.log_prob(every)), law, rtol=SITES * 1e-6)


@STATES
def test_before_any_step_the_model_is_the_pairwise_one(states: int) -> None:
    x = data(states)
    fitted = model(learning_rate=1e-12, weight_decay=0.0).fit(x, max_steps=1)
    found, every = terms(fitted), fitted.space_.configurations().long()
    expected = torch.zeros(len(every), dtype=torch.float64)
    for u in range(SITES):
        logits = found["pair_bias"][u].double().expand(len(every), -1)
        for i in range(u + 1, SITES):
            logits = logits + found["pair"][u].double()[:, states * i + every[:, i]].T
        expected += torch.log_softmax(logits, -1).gather(1, every[:, u, None])[:, 0]
    # The output layer starts at zero, and one step of Adam moves each of its numbers by 1e-12; logits are float32.
    np.testing.assert_allclose(fitted.log_prob(every.numpy()), expected, atol=SITES * 1e-6)


def test_constant_sites_have_no_terms() -> None:
    x = data(3)
    x[:, 2] = 1
    fitted = model(clean=0.3).fit(x)
    for name in ("pair", "clean_pair"):
        pair = terms(fitted)[name].view(SITES, 3, SITES, 3)
        assert not pair[2].any()
        assert not pair[:, :, 2].any()
        assert pair[0].any()
    assert float(exact.law(fitted).sum()) == pytest.approx(1, abs=1e-12)


@STATES
def test_models_that_are_fitted_together_have_the_terms_that_each_has_alone(
    states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Xs, seeds = [data(states, seed=1), data(states, 150, seed=2)], [5, 6]
    seen = watched(monkeypatch)
    together = neurise.fit_many(model(clean=0.3), Xs, seeds=seeds, max_steps=20)
    ((_, _, learnt),) = seen  # as one
    assert learnt
    assert not any(name.rpartition(".")[2] in TERMS for name in learnt)
    for fitted, x, seed in zip(together, Xs, seeds, strict=True):
        alone = model(clean=0.3).fit(x, seed=seed, max_steps=20)
        assert all(torch.equal(terms(fitted)[name], own) for name, own in terms(alone).items())
    assert not torch.equal(terms(together[0])["pair"], terms(together[1])["pair"])


def test_each_member_of_a_committee_has_terms_without_its_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, x = watched(monkeypatch), data(3)
    # An odd number of members is one committee, all of them with pairwise terms.
    fitted: Any = model(members=3, validation_fraction=0.25).fit(x, seed=3, max_steps=20)
    ((_, before, learnt),) = seen
    network = fitted.objective_.network
    assert isinstance(network, Committee)
    assert "members.pair" not in learnt
    assert torch.equal(before["members.pair"], network.members["pair"])
    divided = model(members=3, validation_fraction=0.25)
    divided.schema_, divided.device_ = fitted.schema_, fitted.device_
    rows = divided.divide(Rows(torch.from_numpy(x).to(torch.uint8)), None, 3)[0]
    later = torch.ones(SITES, SITES, dtype=torch.bool).triu(1)
    parts = [rows.x[:, -1] != member for member in range(3)]
    own = Rows(rows.x[:, :SITES])
    expected = pairwise.fit(own, None, 3, later, parts=parts, seed=3, device=torch.device("cpu"))
    for member, one in enumerate(expected):
        assert torch.equal(network.members["pair"][member], one.pair)
        assert torch.equal(network.members["pair_bias"][member], one.bias)
    assert not torch.equal(expected[0].pair, expected[1].pair)


def test_files_keep_the_terms(tmp_path: Path) -> None:
    fitted = model(clean=0.3).fit(data(3), max_steps=10)
    fitted.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert tiny.same_weights(loaded, fitted)
    assert set(terms(loaded)) == set(TERMS)
    assert torch.equal(exact.law(loaded), exact.law(fitted))


@pytest.mark.parametrize("params", [{"keep_prob": 0.4}, {"hide_noised": False}], ids=["soft noise", "nothing hidden"])
def test_terms_of_a_model_that_is_not_autoregressive_are_learnt_along(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch)
    fitted = model(**params).fit(data(3))
    ((_, before, learnt),) = seen
    assert {"pair", "pair_bias"} <= set(learnt)
    assert not before["pair"].any()
    assert all(tensor.any() for tensor in terms(fitted).values())
