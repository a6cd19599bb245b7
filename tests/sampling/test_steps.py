"""T that is no multiple of the number of sites, and starts from any law: everything against kernels written out."""

import math
from functools import partial

import chi_square
import noisy
import numpy as np
import oracles
import pytest
import tiny
import torch

from neurise import exact, likelihood, load
from neurise.noise.round_robin import RoundRobin
from neurise.sampling import graphs, incremental
from neurise.sampling.clamped import sample_clamped
from neurise.sampling.reverse import reverse, sample
from neurise.space import Space

BITS, TRITS, QUADS = Space(sites=4, states=2), Space(sites=2, states=3), Space(sites=3, states=4)
CASES = [(BITS, 3), (BITS, 6), (TRITS, 1), (TRITS, 3), (QUADS, 2), (QUADS, 4)]
KEEP_PROBS = [0.0, 0.4]
FORMS = {
    "reference": reverse,
    "incremental": incremental.reverse,
    "graphs": partial(graphs.reverse, record=lambda work: work),
}


def noised_laws(space: Space, law: np.ndarray, keep_prob: float, steps: int) -> list[np.ndarray]:
    """μ_0 … μ_T from the paper's kernels."""
    laws = [law]
    for t in range(steps):
        laws.append(oracles.forward_kernel(space, t, keep_prob) @ laws[-1])
    return laws


@pytest.mark.parametrize(("space", "steps"), CASES, ids=str)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_forward_laws_and_visits(space: Space, steps: int, keep_prob: float) -> None:
    noise = RoundRobin(space, keep_prob, steps=steps)
    assert noise.num_steps == steps
    assert [noise.top(cycle) for cycle in range(noise.cycles)] == [
        min(space.sites, steps - first) for first in range(0, steps, space.sites)
    ]
    pmf, generator, n = oracles.random_law(space, seed=1), torch.Generator().manual_seed(2), 4000
    x_0 = space.configurations()[1].expand(n, -1)
    alone = noised_laws(space, np.eye(space.size)[1], keep_prob, steps)
    visited = [0] * space.sites
    for t, mu_t in enumerate(noised_laws(space, pmf, keep_prob, steps)):
        assert noise.visits(torch.tensor(t)).tolist() == visited
        visited[t % space.sites] += 1
        np.testing.assert_allclose(exact.noised(pmf, noise, t), mu_t, atol=1e-14)
        places = space.index(noise.corrupt(x_0, torch.full((n,), t), generator=generator)).numpy()
        if t:
            chi_square.assert_drawn_from(places, alone[t])


@pytest.mark.parametrize(("space", "steps"), CASES, ids=str)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("hide_noised", [True, False])
def test_exact_conditionals_give_the_data_law_from_the_last_law(
    space: Space, steps: int, keep_prob: float, hide_noised: bool
) -> None:
    pmf = oracles.random_law(space, seed=5, zeros=0.3)
    chain = exact.ExactConditionals(pmf, RoundRobin(space, keep_prob, steps=steps), hide_noised=hide_noised)
    mu_last = noised_laws(space, pmf, keep_prob, steps)[-1]
    np.testing.assert_allclose(exact.law(chain, start=mu_last), pmf, atol=1e-13)
    found = exact.bound(chain, pmf, mu_last)
    uniform = np.full(space.size, 1 / space.size)
    assert steps == found.T
    assert found.gamma == pytest.approx(oracles.tv(mu_last, uniform), abs=1e-12)
    assert found.delta_T == pytest.approx(oracles.tv(mu_last, uniform), abs=1e-12)
    assert found.tv == pytest.approx(0, abs=1e-12)
    away = oracles.tv(exact.law(chain).numpy(), pmf)
    if steps >= space.sites and keep_prob == 0:
        assert away == pytest.approx(0, abs=1e-12)
    else:
        assert away > 1e-3  # from uniform noise the law is another one


@pytest.mark.parametrize(("space", "steps"), CASES, ids=str)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("hide_noised", [True, False])
def test_the_law_of_a_network_equals_its_kernels_from_any_start(
    space: Space, steps: int, keep_prob: float, hide_noised: bool
) -> None:
    model = noisy.untrained_with(RoundRobin(space, keep_prob, steps=steps), hide_noised=hide_noised)
    uniform, other = np.full(space.size, 1 / space.size), oracles.random_law(space, seed=6)
    np.testing.assert_allclose(exact.law(model), noisy.chain(model.conditionals, uniform), atol=1e-13)
    np.testing.assert_allclose(exact.law(model, start=other), noisy.chain(model.conditionals, other), atol=1e-13)


@pytest.mark.parametrize("kind", noisy.SITE_NOISE)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_the_largest_error_of_a_step_leaves_impossible_contexts_out(kind: str, keep_prob: float) -> None:
    noise = noisy.SITE_NOISE[kind](BITS, keep_prob, cycles=1, steps=5)
    pmf, other = oracles.random_law(BITS, seed=3, zeros=0.6), oracles.random_law(BITS, seed=4)
    # Near the truth where there is one, and anything where there is none.
    model, truth = (exact.ExactConditionals(law, noise) for law in ((1 - 1e-6) * pmf + 1e-6 * other, pmf))
    eta = everywhere = 0.0
    for t, mu_t in enumerate(noisy.laws(noise, pmf)[:-1]):
        u = t % BITS.sites
        learnt, true = (noisy.backward(noise, t, noisy.answers(one, t, u)) for one in (model, truth))
        split = mu_t.reshape(noise.tokens**u, noise.tokens, -1)
        possible = np.broadcast_to(split.sum(1, keepdims=True) > 0, split.shape).flatten()
        errors = 0.5 * np.abs(learnt - true).sum(0)
        eta, everywhere = max(eta, errors[possible].max()), max(everywhere, errors.max())
    found = exact.bound(model, pmf)
    assert found.eta == pytest.approx(eta, abs=1e-12)
    assert found.tv <= found.bound
    assert everywhere > eta + 0.01  # otherwise nothing was tested


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("space", "steps", "keep_prob"), [(BITS, 3, 0.0), (BITS, 6, 0.4), (QUADS, 2, 0.4), (QUADS, 4, 0.0)]
)
def test_rows_of_every_form_follow_the_exact_law(form: str, space: Space, steps: int, keep_prob: float) -> None:
    n, other = 20_000, oracles.random_law(space, seed=7)
    for hide in (True, False):
        model = noisy.untrained_with(RoundRobin(space, keep_prob, steps=steps), hide_noised=hide)
        begin = torch.from_numpy(oracles.draw(space, other, n, seed=8)).to(torch.uint8)
        rows = FORMS[form](model.conditionals, begin, generator=torch.Generator().manual_seed(9))
        law = exact.law(model, start=other).numpy()
        chi_square.assert_drawn_from(space.index(rows).numpy(), law)
        plain = reverse(model.conditionals, begin, generator=torch.Generator().manual_seed(9))
        assert torch.equal(rows, plain)  # in float64 a step parts ways with a chance of about 1e-15


def test_rows_start_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch begins with its own rows of ``start``: sites that no step touches come out as they went in."""
    model = noisy.untrained_with(RoundRobin(BITS, 0.0, steps=2))
    begin = BITS.uniform(50, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr("neurise.conditionals.base.MEMORY_BUDGET", 7 * model.conditionals.bytes_per_row)
    rows = sample(model.conditionals, 50, generator=torch.Generator().manual_seed(1), start=begin)
    assert torch.equal(rows[:, 2:], begin[:, 2:])
    assert not torch.equal(rows[:, :2], begin[:, :2])


def enumerated_elbo(conditionals: object, x_0: int, keep_prob: float, steps: int, space: Space) -> float:
    """−KL(X_T | x_0 ‖ uniform) − Σ_t E KL(q(x_t | x_0, x_{t+1}) ‖ p(x_t | x_{t+1})) over whole configurations."""
    laws = noised_laws(space, np.eye(space.size)[x_0], keep_prob, steps)
    total = -sum(w * math.log(w * space.size) for w in laws[-1] if w > 0)
    for t in range(steps):
        joint = oracles.forward_kernel(space, t, keep_prob) * laws[t]  # [x_{t+1}, x_t]
        learnt = noisy.backward(conditionals.noise, t, noisy.answers(conditionals, t, t % space.sites))  # type: ignore[attr-defined]
        for later, earlier in np.argwhere(joint > 0):
            q = joint[later, earlier] / joint[later].sum()
            total -= joint[later, earlier] * math.log(q / learnt[earlier, later])
    return total


@pytest.mark.parametrize(
    ("space", "steps", "keep_prob"), [(QUADS, 2, 0.0), (QUADS, 4, 0.4), (TRITS, 1, 0.4), (BITS, 6, 0.0)]
)
def test_elbo_is_unbiased_and_below_the_likelihood(space: Space, steps: int, keep_prob: float) -> None:
    model = noisy.untrained_with(RoundRobin(space, keep_prob, steps=steps), hide_noised=False, scale=0.7)
    law, draws = exact.law(model), 4000
    for place in (1, 5):
        rows = space.configurations()[place].expand(draws, -1)
        values = likelihood.elbo(model.conditionals, rows, generator=torch.Generator().manual_seed(0))
        expected = enumerated_elbo(model.conditionals, place, keep_prob, steps, space)
        assert expected <= float(law[place].log()) + 1e-12
        # Five standard errors: exceeded by one in 10^6.
        assert abs(float(values.mean()) - expected) <= 5 * float(values.std()) / draws**0.5 + 1e-12


def test_the_likelihood_is_exact_only_where_every_site_is_drawn() -> None:
    assert not noisy.untrained_with(RoundRobin(QUADS, 0.0, steps=2)).conditionals.is_autoregressive
    model = noisy.untrained_with(RoundRobin(QUADS, 0.0, steps=4))
    assert model.conditionals.is_autoregressive
    found = likelihood.log_prob(model.conditionals, QUADS.configurations())
    np.testing.assert_allclose(found.exp(), exact.law(model), atol=1e-13)


@pytest.mark.parametrize("steps", [2, 4])
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("site", [0, 2])
def test_given_sites_are_held_in_law(steps: int, keep_prob: float, site: int) -> None:
    n, model = 20_000, noisy.untrained_with(RoundRobin(QUADS, keep_prob, steps=steps), scale=1.0)
    tokens, given = torch.full((1, 3), 1, dtype=torch.uint8), torch.zeros(1, 3, dtype=torch.bool)
    given[0, site] = True
    drawn = sample_clamped(model.conditionals, n, tokens, given, generator=torch.Generator().manual_seed(0))
    expected = exact.law(model).numpy() * np.array([x[site] == 1 for x in oracles.configurations(QUADS)])
    expected /= expected.sum()
    shares = torch.bincount(QUADS.index(drawn.x), minlength=QUADS.size).numpy() / n
    worth = 1 / (1 / n + (0 if drawn.exact else 1 / float(drawn.effective.sum())))
    assert oracles.tv(shares, expected) <= oracles.sampled_tv_tolerance(expected, worth)


@pytest.mark.parametrize(("keep_prob", "steps"), [(0.0, 2), (0.4, 2), (0.4, 4)])
def test_a_model_starts_from_rows(keep_prob: float, steps: int, tmp_path: object) -> None:
    """Symbols and an order of the user's own: start, law and rows are all the user's."""
    X, n = tiny.spins(200), 20_000
    model = tiny.model(keep_prob=keep_prob, chain__steps=steps, order=[2, 0, 1]).fit(X, max_steps=60)
    assert model.conditionals.noise.num_steps == steps  # type: ignore[attr-defined]
    space, other = model.space_, oracles.random_law(model.space_, seed=11)
    begin = 2 * oracles.draw(space, other, n, seed=12) - 1
    rows = torch.from_numpy((model.sample(n, start=begin, seed=1) > 0).astype(np.uint8))
    law = exact.law(model, start=other).numpy()
    chi_square.assert_drawn_from(space.index(rows).numpy(), law)
    assert oracles.tv(law, exact.law(model).numpy()) > 1e-3
    if steps == 2:
        assert (rows[:, 1].long().numpy() * 2 - 1 == begin[:, 1]).all()  # the last of the order is never noised
    assert np.isfinite(model.elbo(X[:5], seed=0).value).all()
    model.save(tmp_path / "model")  # type: ignore[operator]
    np.testing.assert_array_equal(load(tmp_path / "model").sample(20, seed=3), model.sample(20, seed=3))  # type: ignore[operator]
    with pytest.raises(ValueError, match="start has 3 rows for n=4"):
        model.sample(4, start=begin[:3])
    with pytest.raises(NotImplementedError, match="start cannot be combined with clamp"):
        model.sample(4, start=begin[:4], clamp=np.ma.masked_all(3, int))


def test_steps_at_constant_sites_alone_teach_nothing() -> None:
    X = tiny.spins(50)
    X[:, 0] = 1
    model = tiny.model(chain__steps=1).fit(X, max_steps=5)
    rows = model.sample(200, start=X[np.arange(200) % 50], seed=0)
    np.testing.assert_array_equal(rows, X[np.arange(200) % 50])
    with pytest.raises(ValueError, match="the 1 steps of the chain touch sites that never vary"):
        tiny.model(chain__steps=1, corrector__clean=0.5).fit(X, max_steps=5)
