import itertools

import numpy as np
import oracles
import pytest
import torch
from fixtures import Untrained, untrained
from tiny import model as tiny_model
from tiny import spins

from neurise import exact, theory
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACES = [Space(sites=4, states=2), Space(sites=2, states=3)]
ROUNDING = 1e-12


def errors_by_loops(model: Untrained, pmf: np.ndarray) -> tuple[list[float], list[float]]:
    """Largest and mean distance of the learnt from the Bayes kernel, column by column of explicit matrices."""
    noise, space = model.conditionals.noise, model.conditionals.noise.space
    configurations = oracles.configurations(space)
    place = {x: i for i, x in enumerate(configurations)}
    laws = oracles.noised_laws(space, pmf, noise.keep_prob, noise.cycles)
    largest, mean = [], []
    for t in range(noise.num_steps):
        u, step = t % space.sites, torch.tensor([t])
        a = (1 - noise.keep_prob) / space.states
        with torch.no_grad():
            x = torch.tensor(configurations, dtype=torch.uint8)
            table = model.conditionals.log_conditional(step, step % space.sites, x).exp().numpy()
        true = oracles.bayes_kernel(space, t, noise.keep_prob, laws[t])
        distances = []
        for old, row in enumerate(configurations):
            weight = np.array([table[old, c] * (a + noise.keep_prob * (c == row[u])) for c in range(space.states)])
            learnt = np.zeros(space.size)
            for c in range(space.states):
                learnt[place[(*row[:u], c, *row[u + 1 :])]] = weight[c] / weight.sum()
            distances.append(oracles.tv(learnt, true[:, old]))
        largest.append(max(distances))
        mean.append(float(laws[t + 1] @ distances))
    return largest, mean


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", [0.0, 0.3, 0.8])
def test_errors_of_the_steps_are_those_of_explicit_kernels(space: Space, keep_prob: float) -> None:
    model, pmf = untrained(space, keep_prob, cycles=2, scale=0.5), oracles.random_law(space, seed=3)
    found = theory.step_errors(model, pmf)
    largest, mean = errors_by_loops(model, pmf)
    np.testing.assert_allclose(found.largest, largest, atol=ROUNDING)
    np.testing.assert_allclose(found.mean, mean, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(12))
def test_every_bound_holds_and_they_are_in_order(seed: int) -> None:
    space, keep_prob = SPACES[seed % 2], (0.0, 0.3, 0.6, 0.9)[seed // 3]
    model = untrained(space, keep_prob, cycles=1 + seed % 3, scale=0.3, hide_noised=seed % 2 == 0)
    pmf = oracles.random_law(space, seed, zeros=0.3 * (seed % 2))
    noise = model.conditionals.noise
    mu_last = oracles.noised_laws(space, pmf, keep_prob, noise.cycles)[-1]
    for start in (None, oracles.random_law(space, seed + 100), mu_last, np.eye(space.size)[seed % space.size]):
        found = theory.terms(model, pmf, start)
        uniform = np.full(space.size, 1 / space.size)
        first = uniform if start is None else start
        assert found.paper == exact.bound(model, pmf, start)
        assert found.paper.eta == pytest.approx(float(theory.step_errors(model, pmf).largest.max()), abs=ROUNDING)
        assert found.mismatch == pytest.approx(oracles.tv(first, mu_last), abs=ROUNDING)
        assert found.paper.gamma == pytest.approx(oracles.tv(first, uniform), abs=ROUNDING)
        loose = found.mismatch + found.sum_largest
        chain = [found.paper.tv, found.sharp, loose, found.paper.bound]
        assert all(below <= above + ROUNDING for below, above in itertools.pairwise(chain))
        assert found.mean_eta <= found.paper.eta + ROUNDING


def test_contexts_that_cannot_occur_do_not_count() -> None:
    space, t = SPACES[1], torch.tensor([0])
    model = untrained(space, 0.0, scale=1.0)
    contexts = torch.tensor([[0, 0], [0, 1], [0, 2]], dtype=torch.uint8)
    with torch.no_grad():
        right, *others = model.conditionals.log_conditional(t, t, contexts).exp().numpy()
    # The second site is always 0, and the model is right where it is; hard noise comes to the first site first.
    pmf = np.outer(right, [1, 0, 0]).flatten()
    assert all(oracles.tv(law, guess) > 0.01 for law in others for guess in (right, np.full(3, 1 / 3)))
    found = theory.step_errors(model, pmf)
    assert float(found.largest[0]) == pytest.approx(0, abs=ROUNDING)
    assert float(found.largest.max()) == pytest.approx(exact.bound(model, pmf).eta, abs=ROUNDING)


def test_the_sharp_bound_is_attained_when_one_step_alone_is_wrong() -> None:
    # One site, one step of hard noise: the law of the model is the learnt conditional, and the only error is all of it.
    space = Space(sites=1, states=3)
    model, pmf = untrained(space, 0.0, scale=1.0), np.array([0.2, 0.5, 0.3])
    found = theory.terms(model, pmf)
    assert found.paper.tv > 0.01
    assert found.sharp == pytest.approx(found.paper.tv, abs=ROUNDING)


@pytest.mark.parametrize("keep_prob", [0.0, 0.4])
def test_true_conditionals_leave_the_mismatch_alone(keep_prob: float) -> None:
    space = SPACES[1]
    pmf = oracles.random_law(space, seed=3, zeros=0.4)
    chain = exact.ExactConditionals(pmf, RoundRobin(space, keep_prob, 2))
    found = theory.terms(chain, pmf)
    assert found.sum_mean == pytest.approx(0, abs=ROUNDING)
    assert found.sum_largest == pytest.approx(0, abs=ROUNDING)
    assert found.paper.tv <= found.sharp + ROUNDING
    right = theory.terms(chain, pmf, exact.noised(pmf, chain.noise, chain.noise.num_steps))
    assert right.paper.tv == pytest.approx(0, abs=ROUNDING)
    assert right.mismatch == pytest.approx(0, abs=ROUNDING)
    assert right.paper.gamma == pytest.approx(right.paper.delta_T)  # the corollary charges for a perfect start


def test_sites_in_another_order_are_found_at_their_places() -> None:
    space, rows = Space(sites=3, states=2), spins(sites=3)
    pmf = oracles.random_law(space, seed=7)
    model = tiny_model(keep_prob=0.4, cycles=2, order=[2, 0, 1], alphabet=[-1, 1]).fit(rows, verbose=False)
    start = oracles.random_law(space, seed=8)
    found = theory.terms(model, pmf, start)
    cube = pmf.reshape(2, 2, 2).transpose(2, 0, 1).reshape(-1)  # over the places of the order
    mu_last = oracles.noised_laws(space, cube, 0.4, 2)[-1]
    first = start.reshape(2, 2, 2).transpose(2, 0, 1).reshape(-1)
    assert found.mismatch == pytest.approx(oracles.tv(first, mu_last), abs=1e-12)
    largest = theory.step_errors(model, pmf).largest.max()
    assert float(largest) == pytest.approx(exact.bound(model, pmf).eta, abs=1e-6)  # the network computes in float32


def test_a_model_with_labels_needs_one() -> None:
    rows = spins()
    model = tiny_model().fit(rows, rows[:, 0] > 0, verbose=False)
    pmf = oracles.random_law(Space(sites=3, states=2), seed=0)
    with pytest.raises(ValueError, match="give y"):
        theory.step_errors(model, pmf)
    assert theory.step_errors(model, pmf, y=True).largest.shape == (3,)
