"""Networks that were taught conditionals of any site from rows with gaps say what a missing value may be, without sums."""

import itertools
from typing import Any

import numpy as np
import pytest

from neurise import NeurISE
from neurise.modeling import partial_rows
from neurise.modeling.groups import Corrector
from neurise.training.settings import Training

SITES, STATES, ROWS = 4, 3, 3000
LAW = np.zeros((STATES,) * SITES)
for row in itertools.product(range(STATES), repeat=SITES):
    LAW[row] = np.prod([0.8 if b == (a + 1) % STATES else 0.1 for a, b in itertools.pairwise(row)]) / STATES


def with_gaps(n: int, seed: int) -> np.ndarray:
    """Draw rows of the law, and remove a fifth of their values."""
    rng = np.random.default_rng(seed)
    x = np.stack(np.unravel_index(rng.choice(LAW.size, n, p=LAW.ravel()), LAW.shape), axis=1).astype(float)
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


def truth(row: np.ndarray, column: int) -> np.ndarray:
    """The law of a column given what else is there of a row, by enumeration."""
    known = [slice(None) if k == column or np.isnan(v) else slice(int(v), int(v) + 1) for k, v in enumerate(row)]
    found = LAW[tuple(known)].sum(axis=tuple(axis for axis in range(SITES) if axis != column))
    return found / found.sum()


def fitted(X: np.ndarray, clean: float, steps: int = 2, **params: Any) -> NeurISE:
    quick = Training(batch_size=256, learning_rate=1e-2, validation_fraction=0.0)
    chosen: dict[str, Any] = {"width": 32, "depth": 1, "members": 1, "training": quick, **params}
    model = NeurISE(corrector=Corrector(clean=clean), **chosen)
    return model.fit(X, max_steps=steps, seed=0, verbose=False)


@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_the_learnt_law_of_a_column_is_the_enumerated_one(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted(with_gaps(ROWS, 0), 0.8, 200, order=order), with_gaps(200, 1)
    monkeypatch.setattr(partial_rows, "log_marginal", None)  # no sums: one evaluation
    for column in range(SITES):
        found = model.predict_proba(X, column)
        exact = np.stack([truth(row, column) for row in X])
        # To count each of the 27 contexts by itself leaves ROWS · 0.8⁴ / 27 ≈ 45 rows in one, and errors of √(p(1 − p) / 45):
        # 0.06 and twice 0.045 for p = 0.8, 0.1, 0.1, half the sum of which is 0.075. A network that generalises is nearer.
        assert 0.5 * np.abs(found - exact).sum(1).mean() < 0.075
        assert np.allclose(found.sum(1), 1)


def test_what_a_row_holds_in_the_column_or_in_a_gap_is_not_looked_at() -> None:
    model, X = fitted(with_gaps(300, 0), 0.8, members=2), with_gaps(50, 1)
    other = X.copy()
    other[:, 2] = np.nan
    assert np.array_equal(model.predict_proba(X, 2), model.predict_proba(other, 2))
    x, missing = model.schema_.encode_gaps(X)
    assert missing is not None
    changed = x.clone()
    changed[missing] = 2 - changed[missing]
    laws = [model._learnt_law(tokens, missing, 0) for tokens in (x, changed)]
    assert laws[0] is not None
    assert laws[1] is not None
    assert laws[0].equal(laws[1])


def test_a_constant_site_is_answered_as_it_is_known() -> None:
    X = with_gaps(300, 0)
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 2)
    found = fitted(X, 0.8).predict_proba(X, 1)
    assert np.allclose(found, [1e-6, 1e-6, 1 - 2e-6])


@pytest.mark.parametrize(("clean", "gaps"), [(0.0, True), (0.8, False)])
def test_what_was_not_learnt_is_summed_over(clean: float, gaps: bool) -> None:
    X = with_gaps(300, 0)
    model = fitted(X if gaps else np.nan_to_num(X), clean)
    x, missing = model.schema_.encode_gaps(X)
    assert missing is not None
    assert model._learnt_law(x, missing, 0) is None
