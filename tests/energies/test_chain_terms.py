"""Pairwise terms that are fitted before a network is trained stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from steps import replace_steps

import neurise
from neurise import exact
from neurise.conditionals.committee import Committee
from neurise.energies import pairwise_regression as pairwise
from neurise.energies import regressions
from neurise.energies.frontier import adjacency
from neurise.modeling.trained import TrainedModel
from neurise.networks.pairwise_terms import PairwiseTerms
from neurise.rows import Rows, with_folds

TERMS = ("pair", "bias", "clean_pair", "clean_bias")
PART = "pattern.parts.0."
"""Where a stack of sums has its pairwise terms."""
STATES = pytest.mark.parametrize("states", [2, 3])
SITES = 4


@pytest.fixture(autouse=True)
def _fewer_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    # All that is compared has the same, and two that are judged by one fold are fast.
    monkeypatch.setattr(regressions, "STRENGTHS", (0.2, 0.02))
    monkeypatch.setattr(regressions, "FEW_ROWS", 0)
    monkeypatch.setattr(regressions, "ITERATIONS", 60)


def data(states: int, n: int = 200, seed: int = 0) -> np.ndarray:
    """Tokens in which each site follows the one before, two times in three."""
    rng = np.random.default_rng(seed)
    x = rng.integers(states, size=(n, SITES))
    for site in range(1, SITES):
        x[:, site] = np.where(rng.random(n) < 2 / 3, x[:, site - 1], x[:, site])
    return x


def model(**params: Any) -> TrainedModel:
    made = tiny.model(**{"architecture__pairwise": True, "alphabet": None, **params})
    assert isinstance(made, TrainedModel)
    return made


def terms(fitted: Any) -> dict[str, torch.Tensor]:
    """The terms of a model that is one network."""
    return dict(fitted.conditionals.network.parts[0].named_parameters())


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, torch.Tensor], list[str]]]:
    """Keep the weights of every network that is trained, before the first step, and the names of those that are learnt."""
    seen: list[tuple[dict[str, torch.Tensor], list[str]]] = []

    def instead(state: Any, step: Any) -> torch.Tensor:
        if state.step == 0:
            weights = {name: tensor.clone() for name, tensor in state.network.state_dict().items()}
            seen.append((weights, [name for name, own in state.network.named_parameters() if own.requires_grad]))
        loss: torch.Tensor = step()
        return loss

    replace_steps(monkeypatch, instead)
    return seen


def by_fit(x: np.ndarray, states: int, sees: torch.Tensor, seed: int) -> pairwise.Terms:
    """What the regressions give for the rows that are not held back."""
    rows = Rows(torch.from_numpy(x).to(torch.uint8))
    kept = tiny.model(training__validation_fraction=0.1).divide(rows, None, seed)[0]  # type: ignore[attr-defined]
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
    assert torch.equal(found["bias"], expected.bias)
    assert found["pair"].abs().max() > 0.1
    ((before, learnt),) = seen
    after = {f"pattern.{name}": own for name, own in fitted.conditionals_.network.state_dict().items()}  # type: ignore[attr-defined]
    assert before.keys() == after.keys()
    assert not any(name.startswith(PART) for name in learnt)
    assert {name for name in after if name.startswith(PART)} == {f"{PART}pair", f"{PART}bias"}
    moved = {name for name, weight in after.items() if not torch.equal(weight, before[name][0])}
    assert moved == set(learnt) - {"pattern.parts.1.label"}


@STATES
def test_the_clean_conditionals_have_terms_of_their_own(states: int) -> None:
    x = data(states)
    fitted = model(corrector__clean=0.3).fit(x, seed=3)
    found = terms(fitted)
    assert set(found) == set(TERMS)
    everything = by_fit(x, states, ~torch.eye(SITES, dtype=torch.bool), seed=3)
    assert torch.equal(found["clean_pair"], everything.pair)
    assert torch.equal(found["clean_bias"], everything.bias)
    later = by_fit(x, states, torch.ones(SITES, SITES, dtype=torch.bool).triu(1), seed=3)
    assert torch.equal(found["pair"][1:], later.pair[1:])
    # Step 0 sees all other sites, at time 0: it is both.
    assert torch.equal(found["pair"][0], found["clean_pair"][0])
    assert torch.equal(found["bias"][0], found["clean_bias"][0])


@STATES
@pytest.mark.parametrize("clean", [0.0, 0.3])
def test_the_law_is_that_of_the_likelihood(states: int, clean: float) -> None:
    fitted = model(corrector__clean=clean).fit(data(states))
    law = exact.law(fitted)
    every = fitted.space_.configurations().numpy()
    # A law is pushed through q kernels in float64, from logits in float32: q · 1e-6 of each probability.
    assert abs(float(law.sum()) - 1) < 1e-12
    np.testing.assert_allclose(np.exp(fitted.log_prob(every)), law, rtol=SITES * 1e-6)


@STATES
def test_before_any_step_the_model_is_the_pairwise_one(states: int) -> None:
    x = data(states)
    fitted = model(training__learning_rate=1e-12, training__weight_decay=0.0).fit(x, max_steps=1)
    found, every = terms(fitted), fitted.space_.configurations().long()
    expected = torch.zeros(len(every), dtype=torch.float64)
    for u in range(SITES):
        logits = found["bias"][u].double().expand(len(every), -1)
        for i in range(u + 1, SITES):
            logits = logits + found["pair"][u].double()[:, states * i + every[:, i]].T
        expected += torch.log_softmax(logits, -1).gather(1, every[:, u, None])[:, 0]
    # The output layer starts at zero, and one step of Adam moves each of its numbers by 1e-12; logits are float32.
    np.testing.assert_allclose(fitted.log_prob(every.numpy()), expected, atol=SITES * 1e-6)


def test_constant_sites_have_no_terms() -> None:
    x = data(3)
    x[:, 2] = 1
    fitted = model(corrector__clean=0.3).fit(x)
    (known,) = (part for part in fitted.conditionals.modules() if isinstance(part, PairwiseTerms))  # type: ignore[attr-defined]
    for name in ("pair", "clean_pair"):
        pair = known.get_parameter(name).view(SITES, 3, SITES, 3)
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
    together = neurise.fit_many(model(corrector__clean=0.3), Xs, seeds=seeds, max_steps=20)
    ((_, learnt),) = seen  # as one
    assert learnt
    assert not any(".parts.0." in name for name in learnt)
    for fitted, x, seed in zip(together, Xs, seeds, strict=True):
        alone = model(corrector__clean=0.3).fit(x, seed=seed, max_steps=20)
        assert all(torch.equal(terms(fitted)[name], own) for name, own in terms(alone).items())
    assert not torch.equal(terms(together[0])["pair"], terms(together[1])["pair"])


def test_each_member_of_a_committee_has_terms_without_its_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, x = watched(monkeypatch), data(3)
    # An odd number of members is one committee, all of them with pairwise terms.
    fitted: Any = model(members=3, training__validation_fraction=0.25).fit(x, seed=3, max_steps=20)
    ((before, learnt),) = seen
    assert isinstance(fitted.conditionals_, Committee)
    assert f"{PART}pair" not in learnt
    rows = with_folds(Rows(torch.from_numpy(x).to(torch.uint8)), 4, seed=3)
    assert rows.fold is not None
    later = torch.ones(SITES, SITES, dtype=torch.bool).triu(1)
    parts = [rows.fold != member for member in range(3)]
    expected = pairwise.fit(Rows(rows.x), None, 3, later, parts=parts, seed=3, device=torch.device("cpu"))
    for number, (member, one) in enumerate(zip(fitted.conditionals_, expected, strict=True)):
        own = member.network.parts[0]
        assert torch.equal(before[f"{PART}pair"][number], own.pair)
        assert torch.equal(own.pair, one.pair)
        assert torch.equal(own.bias, one.bias)
    assert not torch.equal(expected[0].pair, expected[1].pair)


def test_files_keep_the_terms(tmp_path: Path) -> None:
    fitted = model(corrector__clean=0.3).fit(data(3), max_steps=10)
    fitted.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert tiny.same_weights(loaded, fitted)
    assert set(terms(loaded)) == set(TERMS)
    assert torch.equal(exact.law(loaded), exact.law(fitted))


@pytest.mark.parametrize(
    "params", [{"keep_prob": 0.4}, {"chain__hide_noised": False}], ids=["soft noise", "nothing hidden"]
)
def test_terms_of_a_model_that_is_not_autoregressive_are_learnt_along(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch)
    fitted = model(**params).fit(data(3))
    ((before, learnt),) = seen
    assert {f"{PART}pair", f"{PART}bias"} <= set(learnt)
    assert not before[f"{PART}pair"].any()
    assert all(tensor.any() for tensor in terms(fitted).values())


@pytest.mark.parametrize("keep_prob", [0.4, 0.0])
def test_sampling_asks_the_step_at_time_0_as_the_law_does(keep_prob: float) -> None:
    """Terms that are learnt along: those of step 0 are the clean ones, and the others of site 0 are never taught."""
    params = {"keep_prob": keep_prob, "chain__hide_noised": keep_prob > 0, "corrector__clean": 0.3}
    fitted: Any = model(**params, training__learning_rate=0.1).fit(data(3), max_steps=50)
    n, law = 20_000, exact.law(fitted).numpy()
    drawn = torch.from_numpy(fitted.sample(n, seed=0))
    assert oracles.tv(oracles.empirical(fitted.space_, drawn), law) < oracles.sampled_tv_tolerance(law, n)
    known = terms(fitted)
    assert (known["pair"][0] - known["clean_pair"][0]).abs().max() > 0.1  # it makes a difference which are asked


def test_a_graph_is_written_at_the_places_of_the_chain() -> None:
    near = adjacency([(0, 2), (2, 3)], order=[2, 0, 3, 1])  # site 2 comes first
    pairs = {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert {(int(i), int(j)) for i, j in torch.nonzero(near)} == pairs
    assert not adjacency([], order=[1, 0]).any()
    with pytest.raises(ValueError, match="two different sites from 0 to 3"):
        adjacency([(0, 4)], order=[2, 0, 3, 1])
