import itertools

import numpy as np
import oracles
import pytest
import torch

from neurise import exact, theory
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3), Space(sites=3, states=4)]
KEEP_PROBS = [0.0, 0.3, 0.9]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_delta_is_that_of_dense_transition_matrices(space: Space, keep_prob: float) -> None:
    pmf = oracles.random_law(space, seed=1)
    uniform = np.full(space.size, 1 / space.size)
    expected = [oracles.tv(law, uniform) for law in oracles.noised_laws(space, pmf, keep_prob, cycles=3)]
    found = theory.delta_curve(pmf, space, keep_prob, cycles=3)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_the_laws_along_the_chain_are_those_drawn_in_one_shot(keep_prob: float) -> None:
    space = SPACES[2]
    pmf, noise = oracles.random_law(space, seed=2, zeros=0.5), RoundRobin(space, keep_prob, cycles=2)
    laws = list(theory.noised_laws(pmf, noise))
    assert len(laws) == noise.num_steps + 1
    for t, law in enumerate(laws):
        torch.testing.assert_close(law, exact.noised(pmf, noise, t), atol=1e-15, rtol=0)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_the_ceiling_holds_for_every_law_and_is_one_minus_the_chance_that_all_were_redrawn(
    space: Space, keep_prob: float
) -> None:
    ceiling = theory.delta_ceiling(space, keep_prob, cycles=2)
    for t in range(2 * space.sites + 1):
        redrawn = 0.0  # over which of the t steps keep their site
        for kept in itertools.product([True, False], repeat=t):
            weight = np.prod([keep_prob if keep else 1 - keep_prob for keep in kept])
            if {step % space.sites for step in range(t) if not kept[step]} == set(range(space.sites)):
                redrawn += weight
        assert float(ceiling[t]) == pytest.approx(1 - redrawn, abs=1e-12)
    point = np.eye(space.size)[3]
    for pmf in (oracles.random_law(space, seed=4), point):
        assert bool((theory.delta_curve(pmf, space, keep_prob, cycles=2) <= ceiling + 1e-15).all())


def test_hard_noise_ends_after_one_cycle_and_soft_noise_never() -> None:
    space = SPACES[2]
    pmf = oracles.random_law(space, seed=5)
    hard = theory.delta_curve(pmf, space, 0.0, cycles=2)
    assert bool((hard[: space.sites] > 1e-3).all())
    assert float(hard[space.sites :].max()) < 1e-15
    assert float(theory.delta_curve(pmf, space, 0.3, cycles=2)[-1]) > 1e-4


def test_noise_brings_the_law_closer_to_the_uniform_one_step_by_step() -> None:
    for keep_prob in KEEP_PROBS:
        curve = theory.delta_curve(oracles.random_law(SPACES[1], seed=6), SPACES[1], keep_prob, cycles=3)
        assert bool((curve.diff() <= 1e-15).all())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep_prob": 1.0}, "keep_prob must be in .0, 1., got 1.0; at 1"),
        ({"cycles": 0}, "cycles must be"),
        ({"pmf": np.full(9, 0.2)}, "pmf sums to 1.8"),
        ({"pmf": np.full(8, 0.125)}, "pmf must have 9 entries"),
    ],
)
def test_wrong_input_is_refused(options: dict[str, object], message: str) -> None:
    given = {"pmf": np.full(9, 1 / 9), "space": SPACES[1], "keep_prob": 0.5, "cycles": 1} | options
    with pytest.raises(ValueError, match=message):
        theory.delta_curve(**given)  # type: ignore[arg-type]
