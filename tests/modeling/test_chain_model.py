"""Ratios of probabilities, and what is said and saved of a model whose parameters were changed after the fit."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import discovery, exact
from neurise.energies import regressions
from neurise.modeling.summary import best_scores

FLOAT32 = 1e-4
"""Relative error of a ratio of two probabilities that are products of three float32 conditionals each."""
SHAPES = {"bits": (3, 2), "four": (2, 4)}
both = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@functools.cache
def fitted(shape: tuple[int, int], labels: bool = False, **params: Any) -> Any:
    sites, states = shape
    X = np.random.default_rng(0).integers(states, size=(200, sites))
    X[:120, 1] = X[:120, 0]
    y = np.where(X[:, 0] > 0, "up", "down") if labels else None
    return tiny.model(training__learning_rate=0.02, order=tuple(reversed(range(sites))), **params).fit(
        X, y, max_steps=40
    )


def neighbours(sites: int, states: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of configurations that differ at one site, and every configuration with itself."""
    everything = list(itertools.product(range(states), repeat=sites))
    pairs = [(x, y) for x in everything for y in everything if sum(a != b for a, b in zip(x, y, strict=True)) <= 1]
    first, second = zip(*pairs, strict=True)
    return np.array(first), np.array(second)


# --- ratios ------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("params", [{}, {"members": 2}, {"cycles": 2}], ids=str)
def test_ratios_are_those_of_the_exact_law(shape: tuple[int, int], params: dict[str, Any]) -> None:
    model, (X, Y) = fitted(shape, **params), neighbours(*shape)
    law = exact.law(model).numpy()
    place = shape[1] ** np.arange(shape[0])[::-1]
    found = model.ratio(X, Y)
    np.testing.assert_allclose(found, law[Y @ place] / law[X @ place], rtol=FLOAT32)
    assert (found[(X == Y).all(1)] == 1).all()
    assert np.abs(np.log(found)).max() > 0.1
    np.testing.assert_allclose(found * model.ratio(Y, X), 1, rtol=FLOAT32)


@both
@pytest.mark.parametrize("y", [None, "up", "each"])
def test_ratios_with_labels_are_those_of_the_mixture_or_of_one(shape: tuple[int, int], y: str | None) -> None:
    model, (X, Y) = fitted(shape, labels=True), neighbours(*shape)
    place = shape[1] ** np.arange(shape[0])[::-1]
    if y == "each":
        own = np.array(["down", "up"])[np.arange(len(X)) % 2]
        laws = {label: exact.law(model, label).numpy() for label in ("down", "up")}
        wanted = [laws[label][b] / laws[label][a] for label, a, b in zip(own, X @ place, Y @ place, strict=True)]
        np.testing.assert_allclose(model.ratio(X, Y, own), wanted, rtol=FLOAT32)
        return
    law = exact.law(model, y).numpy()
    np.testing.assert_allclose(model.ratio(X, Y, y), law[Y @ place] / law[X @ place], rtol=FLOAT32)


@both
@pytest.mark.parametrize("params", [{}, {"keep_prob": 0.5, "cycles": 2}], ids=["hard", "soft"])
def test_a_network_that_was_taught_the_clean_conditionals_is_asked(
    shape: tuple[int, int], params: dict[str, Any]
) -> None:
    model, (X, Y) = fitted(shape, corrector__clean=0.5, **params), neighbours(*shape)
    found, order = model.ratio(X, Y), list(reversed(range(shape[0])))
    for site in range(shape[0]):
        rows = np.flatnonzero(X[:, site] != Y[:, site])
        law = model.conditional(X[rows], site)
        at = np.arange(len(rows))
        wanted = law[at, Y[rows, site]] / law[at, X[rows, site]]
        np.testing.assert_allclose(found[rows], wanted, rtol=1e-12)
        t, u = torch.tensor([0]), torch.tensor([order.index(site)])
        said = model.conditionals.clean.log_conditional(t, u, model.schema_.encode(X[rows])).double().softmax(-1)
        np.testing.assert_allclose(law, said, rtol=1e-6)


def test_rows_that_cannot_be_compared_are_refused() -> None:
    model = fitted((3, 2))
    with pytest.raises(
        ValueError, match=r"row 1 of X and Y differs at the sites \[0, 2\]; ratio takes rows that differ at one"
    ):
        model.ratio([[0, 0, 0], [1, 0, 1]], [[0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="X has 2 rows and Y has 1"):
        model.ratio([[0, 0, 0], [0, 0, 0]], [[0, 0, 1]])
    with pytest.raises(ValueError, match="Y has 2 features"):
        model.ratio([[0, 0, 0]], [[0, 0]])
    with pytest.raises(ValueError, match="fitted without labels"):
        model.ratio([[0, 0, 0]], [[0, 0, 1]], "up")
    with pytest.raises(NotImplementedError, match="corrector__clean above 0"):
        fitted((3, 2), keep_prob=0.5).ratio([[0, 0, 0]], [[0, 0, 1]])
    with pytest.raises(RuntimeError, match="not fitted"):
        tiny.model().ratio([[0, 0, 0]], [[0, 0, 1]])


# --- after the fit -----------------------------------------------------------------------------------------------------

CHANGES: dict[str, Any] = {
    "width": 11,
    "depth": 3,
    "members": 3,
    "keep_prob": 0.3,
    "cycles": 3,
    "timesteps": 5,
    "order": [2, 1, 0],
    "alphabet": [-1, 1, 3],
    "steps": 7,
    "network": "local_mlp",
    "reverse": "heat_bath",
    "source": "uniform",
    "exponent": 1.0,
    "schedule": "geometric",
    "posterior": "published",
    "l2": 0.5,
    "training__batch_size": 7,
    "chain__unseen": 0.2,
    "chain__hide_noised": False,
    "corrector__clean": 0.5,
    "architecture__heads": "shared",
    "architecture__pairwise": True,
}


@pytest.mark.parametrize("name", discovery.names("neurise.models"))
def test_what_is_changed_after_the_fit_is_for_the_next_one(name: str, tmp_path: Path) -> None:
    X = tiny.spins()
    X[:, 2] = 1  # a constant site
    model = tiny.model(name).fit(X, max_steps=5)
    before, drawn, law = model.get_params(), model.sample(50, seed=0), exact.law(model)
    summary = str(model.summary())
    later = {leaf: value for leaf, value in CHANGES.items() if leaf in model.leaves() and leaf not in model.changeable}
    model.set_params(**later)
    assert np.array_equal(model.sample(50, seed=0), drawn)
    assert np.array_equal(exact.law(model), law)
    assert str(model.summary()) == summary
    model.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert loaded.get_params() == before
    assert np.array_equal(loaded.sample(50, seed=0), drawn)
    assert str(loaded.summary()) == summary
    assert all(model.flat_params()[leaf] == value for leaf, value in later.items())


def test_how_to_sample_may_be_changed_after_the_fit_and_is_saved(tmp_path: Path) -> None:
    model = tiny.model(corrector__clean=0.5).fit(tiny.spins(), max_steps=20)
    plain = exact.law(model)
    model.set_params(corrector__sweeps=2)
    swept = exact.law(model)
    assert float((swept - plain).abs().sum()) > 1e-4
    model.save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert loaded.corrector.sweeps == 2
    assert np.array_equal(exact.law(loaded), swept)
    assert loaded.summary()["sweeps"] == 2


# --- summaries ---------------------------------------------------------------------------------------------------------


def test_a_summary_says_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressions, "ITERATIONS", 10)
    X = tiny.spins(60, sites=4)
    X[:, 3] = 1
    y = np.where(X[:, 0] > 0, "up", "down")
    model = neurise.NeurISE(width=8, steps=20).fit(X, y, verbose=False, device="cpu")
    facts, chosen = model.summary(), model.chosen()
    assert facts["model"] == "NeurISE(width=8, steps=20)"
    assert facts["data"] == "60 rows of 4 sites, 2 states"
    assert (facts["labels"], facts["constant sites"]) == (2, 1)
    assert facts["noise"] == "round_robin, keep_prob=0, 4 steps"
    assert facts["network"] == f"{chosen.members} × site_mlp + pairwise terms, width 8, depth {chosen.depth}"
    assert (facts["batch size"], facts["learning rate"]) == (chosen.batch_size, chosen.learning_rate)
    shares = model.shares_
    assert facts["shares"] == ", ".join(f"{share:.2f} {kind}" for kind, share in shares.items())
    assert (facts["parameters"], facts["steps"], facts["stopped"]) == (model.num_parameters_, 2 * 20, "steps")
    assert facts["validation"] == pytest.approx(np.mean(best_scores(model.history_)))
    shown = str(facts).splitlines()
    assert len(shown) == len(facts)
    assert all(line.startswith(name) for line, name in zip(shown, facts, strict=True))
    assert repr(facts) == str(facts)


@pytest.mark.parametrize("name", discovery.names("neurise.models"))
def test_every_model_has_a_summary(name: str) -> None:
    with pytest.raises(RuntimeError, match="not fitted"):
        tiny.model(name).summary()
    facts = tiny.model(name).fit(tiny.spins(), max_steps=3).summary()
    assert facts["data"] == "60 rows of 3 sites, 2 states"
    assert facts["parameters"] > 0
    assert facts["stopped"] in ("steps", "solved")
    assert "labels" not in facts
