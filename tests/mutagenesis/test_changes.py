"""Single changes, held against enumerated laws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figure_checks
import numpy as np
import pytest
import tiny

import neurise
from neurise import exact, mutagenesis, mutations
from neurise.modeling.model import Model
from neurise.mutagenesis import changes

SITES, STATES = 4, 3
SYMBOLS = np.array(list("bca"))  # named in another order than the alphabet's
ORDER = [2, 0, 3, 1]
WILD = np.array(list("acba"))


def rows(n: int = 120, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.choice(STATES, (n, SITES), p=[0.5, 0.3, 0.2])
    x[:, 1] = np.where(rng.random(n) < 0.8, x[:, 0], x[:, 1])
    return SYMBOLS[x]


def fitted(name: str = "neurise", y: Any = None, **params: Any) -> Model:
    model = tiny.model(name, alphabet=SYMBOLS.tolist(), order=ORDER, **params)
    return model.fit(rows(), y, verbose=False) if tiny.is_trained(name) else model.fit(rows(), y)


def enumerated(law: np.ndarray) -> np.ndarray:
    """Return log P(mutant) − log P(wild type), (sites, states), from the whole law."""
    joint = np.log(law.reshape([STATES] * SITES))
    place = [SYMBOLS.tolist().index(symbol) for symbol in WILD.tolist()]
    found = np.empty((SITES, STATES))
    for site in range(SITES):
        for state in range(STATES):
            changed = (*place[:site], state, *place[site + 1 :])
            found[site, state] = joint[changed] - joint[tuple(place)]
    return found


@pytest.mark.parametrize("name", ["neurise", "pairwise", "independent"])
@pytest.mark.parametrize("labelled", [False, True])
def test_log_ratios_are_those_of_the_enumerated_law(name: str, labelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "BLOCK", 20)  # five changes at a time
    model = fitted(name, np.resize(["low", "high"], 120) if labelled else None)
    found = mutations(model, WILD)
    np.testing.assert_allclose(found.log_ratio, enumerated(exact.law(model).numpy()), atol=5e-6)
    assert found.of == "log_prob"
    assert found.error is None
    assert found.symbols.tolist() == [SYMBOLS.tolist()] * SITES
    assert found.wild_type.tolist() == WILD.tolist()
    assert (found.log_ratio[found.is_wild] == 0).all()
    assert found.is_wild.sum(1).tolist() == [1] * SITES
    if labelled:
        law = exact.law(model, "low").numpy()
        np.testing.assert_allclose(mutations(model, WILD, "low").log_ratio, enumerated(law), atol=5e-6)


def test_conditionals_serve_where_there_is_no_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("pairwise")
    expected = mutations(model, WILD).log_ratio
    monkeypatch.setattr("neurise.models._pairwise.law.LIMIT", 1)
    monkeypatch.setattr("neurise.models._pairwise.law.MOST_ENTRIES", 0)
    found = mutations(model, WILD)
    assert found.of == "conditional"
    np.testing.assert_allclose(found.log_ratio, expected, atol=1e-6)


def test_soft_noise_gives_an_estimate_with_its_error() -> None:
    model = fitted(keep_prob=0.5, cycles=2)
    found = mutations(model, WILD, seed=1, draws=400)
    assert found.of == "elbo"
    assert found.error is not None
    assert (found.error[found.is_wild] == 0).all()
    again = mutations(model, WILD, seed=2, draws=400)
    spread = np.hypot(found.error, again.error)[~found.is_wild]
    # Five standard errors: exceeded by one in 10^6 of eight pairs.
    assert (abs(found.log_ratio - again.log_ratio)[~found.is_wild] < 5 * spread).all()


def test_changes_are_ranked_and_none_is_the_wild_type() -> None:
    found = mutations(fitted("independent"), WILD)
    ranked = found.ranked()
    assert len(ranked) == SITES * (STATES - 1)
    values = [found.log_ratio[place] for place in ranked]
    assert values == sorted(values, reverse=True)
    assert not any(found.is_wild[place] for place in ranked)


def test_constant_sites_are_named_and_impossible_symbols_are_infinite() -> None:
    X = np.column_stack([np.ones(20, int), np.arange(20) % 3])
    model = neurise.Independent(order=[1, 0]).fit(X)
    found = mutations(model, [1, 2])
    assert found.constant == (0,)
    assert np.isneginf(found.log_ratio[0]).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="holds the wild type for impossible"):
        mutations(model, [0, 2])


def test_wrong_rows_are_refused() -> None:
    model = fitted("independent")
    with pytest.raises(ValueError, match=r"one row of 4 sites; its shape is \(3,\)"):
        mutations(model, WILD[:3])
    with pytest.raises(ValueError, match="'x' at row 0, column 1"):
        mutations(model, list("axba"))
    with pytest.raises(NotImplementedError, match="no bound"):
        mutations(_Silent(), WILD)  # type: ignore[arg-type]


class _Silent:
    """A model that knows nothing of its law."""

    def __init__(self) -> None:
        self.schema_, self.space_ = fitted("independent").schema_, neurise.Space(SITES, STATES)

    def log_prob(self, X: Any, y: Any = None) -> Any:
        raise NotImplementedError("no likelihood")

    def elbo(self, X: Any, y: Any = None, **_: Any) -> Any:
        raise NotImplementedError("no bound")


def test_columns_have_changes_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unequal alphabets: what is no symbol of a column is no change of it."""
    rng = np.random.default_rng(0)
    table = np.empty((90, 3), dtype=object)
    table[:, 0], table[:, 1] = rng.choice(["red", "green", "blue"], 90), rng.choice([1, 10], 90)
    table[:, 2] = np.where(table[:, 0] == "red", "yes", "no")
    model = tiny.model(order=[2, 0, 1]).fit(table, verbose=False)
    found = mutations(model, ["red", 10, "yes"])
    assert found.wild_type.tolist() == ["red", 10, "yes"]
    assert found.symbols.tolist() == [["blue", "green", "red"], [1, 10, None], ["no", "yes", None]]
    assert np.isnan(found.log_ratio).tolist() == [[False] * 3, [False, False, True], [False, False, True]]
    assert len(found.ranked()) == 2 + 1 + 1
    pairs = tiny.model("pairwise").fit(table, verbose=False)
    expected = mutations(pairs, ["red", 10, "yes"]).log_ratio
    with monkeypatch.context() as patched:
        patched.setattr("neurise.models._pairwise.law.LIMIT", 1)
        np.testing.assert_allclose(mutations(pairs, ["red", 10, "yes"]).log_ratio, expected, atol=1e-5)
    green = np.array([["green", 10, "yes"], ["red", 10, "yes"]], dtype=object)
    assert found.log_ratio[0, 1] == pytest.approx(-np.diff(model.log_prob(green))[0])
    figure = figure_checks.drawn_figure(monkeypatch, lambda: mutagenesis.draw(found, tmp_path / "map.png"))
    figure_checks.check(figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(texts) == sorted(["blue", "green", "● red", "1", "● 10", "no", "● yes"])
