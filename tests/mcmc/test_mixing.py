"""What is said of how well chains mixed, against exact answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neurise.mcmc import autocorrelation_time, r_hat


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_autocorrelation_time_of_a_known_process(phi: float) -> None:
    r"""x_{t+1} = φ x_t + noise has ρ(k) = φ^k and τ = (1 + φ)/(1 − φ)."""
    chains, times = 8, 20_000
    rng = np.random.default_rng(0)
    series = np.empty((chains, times))
    series[:, 0] = rng.normal(size=chains) / math.sqrt(1 - phi**2)
    noise = rng.normal(size=(chains, times))
    for time in range(1, times):
        series[:, time] = phi * series[:, time - 1] + noise[:, time]
    exact = (1 + phi) / (1 - phi)
    # Sokal: the estimate's relative variance is 2(2M + 1)/N with M = 5τ the window; e^{−5·2} of the sum is cut off.
    relative = math.sqrt(2 * (2 * 5 * exact + 1) / (chains * times))
    assert autocorrelation_time(series) == pytest.approx(exact, rel=5 * relative)


def test_autocorrelation_time_at_the_ends() -> None:
    assert autocorrelation_time(np.ones((2, 100))) == 1.0
    apart = np.stack([np.zeros(100), np.ones(100)])  # two chains that never meet: every time is like every other
    assert autocorrelation_time(apart) == pytest.approx(199)


def test_r_hat_by_hand() -> None:
    rng = np.random.default_rng(0)
    series = rng.normal(size=(4, 100)) + np.array([0.0, 0.0, 0.0, 3.0])[:, None]
    halves = [series[c, s : s + 50] for s in (0, 50) for c in range(4)]
    within = np.mean([np.var(half, ddof=1) for half in halves])
    between = 50 * np.var([np.mean(half) for half in halves], ddof=1)
    assert r_hat(series) == pytest.approx(math.sqrt((49 / 50 * within + between / 50) / within))
    assert r_hat(series) > 1.5
    assert r_hat(np.ones((4, 100))) == pytest.approx(1)
    assert r_hat(np.repeat([[0.0], [1.0]], 100, axis=1)) == math.inf
