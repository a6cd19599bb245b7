from typing import Any, NamedTuple

import numpy as np
import pytest
import tiny

from neurise.metrics import elbo


class Draws(NamedTuple):
    value: np.ndarray
    standard_error: np.ndarray


class Bounded:
    """Bounds every row by −2 − x₀ and adds normal noise; y shifts it."""

    def __init__(self, noise: float = 0.0) -> None:
        self.noise = noise

    def elbo(self, X: Any, y: Any = None, *, seed: int | None = None, draws: int = 4) -> Draws:
        x = np.asarray(X)[:, 0].astype(float)
        noise = np.random.default_rng(seed).normal(0, self.noise, (draws, len(x)))
        values = -2 - x - (0 if y is None else np.asarray(y)) + noise
        return Draws(values.mean(axis=0), np.full(len(x), self.noise / draws**0.5))


ROWS = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]])


def test_hand_worked() -> None:
    found = elbo(Bounded(), ROWS, pmf_log_prob=lambda X: np.full(len(X), -1.0))
    assert (found.nats, found.nats.floor, found.nats.units) == (pytest.approx(-2.75), pytest.approx(-1), "nats")
    assert found.nats.error == pytest.approx(np.sqrt((0.75**2 + 3 * 0.25**2) / 12))
    assert found.bits_per_site == pytest.approx(2.75 / 3 / np.log(2))
    assert found.bits_per_site.floor == pytest.approx(1 / 3 / np.log(2))
    assert (found.monte_carlo, found.impossible) == (0, 0)
    assert elbo(Bounded(), ROWS, [1, 1, 3, 3]).nats == pytest.approx(-4.75)


def test_the_error_holds_the_rows_and_the_draws() -> None:
    """Over new rows and draws the mean spreads by √((Var x + σ²/draws)/n), and over new draws alone by σ/√(draws·n)."""
    rng, n, runs, noise, draws = np.random.default_rng(0), 100, 300, 1.0, 2
    sets = [elbo(Bounded(noise), rng.integers(0, 2, (n, 3)), seed=k, draws=draws) for k in range(runs)]
    # A spread of 300 numbers is known to 1/√600 = 4 %: five times that.
    assert np.std([found.nats for found in sets]) == pytest.approx(np.sqrt((0.25 + 0.5) / n), rel=0.2)
    assert np.mean([found.nats.error for found in sets]) == pytest.approx(np.sqrt((0.25 + 0.5) / n), rel=0.05)
    same = [elbo(Bounded(noise), np.zeros((n, 3), int), seed=k, draws=draws) for k in range(runs)]
    assert np.std([found.nats for found in same]) == pytest.approx(same[0].monte_carlo, rel=0.2)


def test_counts_weigh_rows_and_their_noise() -> None:
    counts = np.array([2, 0, 1, 3])
    found = elbo(Bounded(0.5), ROWS, weights=counts, seed=3)
    values = Bounded(0.5).elbo(ROWS, seed=3).value
    assert found.nats == pytest.approx(np.average(values, weights=counts))
    assert found.monte_carlo == pytest.approx(0.25 * np.sqrt(4 + 1 + 9) / 6)


def test_a_seed_gives_the_same_bits() -> None:
    assert elbo(Bounded(1.0), ROWS, seed=1) == elbo(Bounded(1.0), ROWS, seed=1)
    assert elbo(Bounded(1.0), ROWS, seed=1) != elbo(Bounded(1.0), ROWS, seed=2)


def test_an_impossible_row_is_told() -> None:
    class Strict(Bounded):
        def elbo(self, X: Any, y: Any = None, *, seed: int | None = None, draws: int = 4) -> Draws:
            return Draws(np.array([-1.0, -np.inf]), np.array([0.1, np.nan]))

    found = elbo(Strict(), ROWS[:2])
    assert (found.nats, found.nats.error, found.monte_carlo, found.impossible) == (-np.inf, None, None, 1)
    spared = elbo(Strict(), ROWS[:2], weights=[1, 0])
    assert (spared.nats, spared.monte_carlo) == (-1, pytest.approx(0.1))


def test_a_fitted_model_will_do() -> None:
    rows = tiny.spins(40)
    model = tiny.model(keep_prob=0.5, cycles=2).fit(rows, verbose=False)
    found, own = elbo(model, rows, seed=5, draws=3), model.elbo(rows, seed=5, draws=3)
    assert found.nats == pytest.approx(own.value.mean())
    assert found.monte_carlo == pytest.approx(np.sqrt((own.standard_error**2).sum()) / 40)


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (ROWS, {"weights": [1.0]}, "weights must give one number for each of the 4 rows"),
        (ROWS, {"pmf_log_prob": np.zeros(3)}, r"shape \(3,\) for 4 rows"),
        (np.zeros((0, 1), int), {}, "X is empty"),
    ],
)
def test_what_makes_no_sense_is_refused(X: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        elbo(Bounded(), X, **options)
