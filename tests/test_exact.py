import numpy as np
import oracles
import pytest
import torch
from fixtures import Untrained, untrained

from neurise import chain_law, exact
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.reverse import sample
from neurise.space import Space

SPACES = [Space(sites=4, states=2), Space(sites=2, states=3), Space(sites=3, states=4)]
KEEP_PROBS = [0.0, 0.3, 0.9]


def law_by_kernels(model: Untrained) -> np.ndarray:
    """The law of the sampler from explicit p^q × p^q kernels, context by context."""
    conditionals = model.conditionals
    noise, space = conditionals.noise, conditionals.noise.space
    configurations = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    current = np.full(space.size, 1 / space.size)
    for t in reversed(range(noise.num_steps)):
        u, step = t % space.sites, torch.tensor([t])
        with torch.no_grad():
            mu = conditionals.log_conditional(step, step % space.sites, configurations).exp().numpy()
        kernel = np.zeros((space.size, space.size))
        for old in range(space.size):
            present = int(configurations[old, u])
            a = (1 - noise.keep_prob) / space.states
            weight = [mu[old, token] * (a + noise.keep_prob * (token == present)) for token in range(space.states)]
            for token in range(space.states):
                new = configurations[old].clone()
                new[u] = token
                kernel[int(space.index(new)), old] = weight[token] / sum(weight)
        current = kernel @ current
    return current


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("hide_noised", [True, False])
def test_reverse_chain_with_exact_conditionals_returns_the_data_law(
    space: Space, keep_prob: float, hide_noised: bool
) -> None:
    noise = RoundRobin(space, keep_prob, cycles=2)
    pmf = oracles.random_law(space, seed=5)
    chain = exact.ExactConditionals(pmf, noise, hide_noised=hide_noised)
    mu_last = oracles.noised_laws(space, pmf, keep_prob, cycles=2)[-1]
    np.testing.assert_allclose(exact.law(chain, start=mu_last), pmf, atol=1e-13)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_data_with_impossible_configurations_come_back_too(keep_prob: float) -> None:
    space = SPACES[2]
    pmf = oracles.random_law(space, seed=6, zeros=0.6)
    chain = exact.ExactConditionals(pmf, RoundRobin(space, keep_prob, cycles=2))
    mu_last = oracles.noised_laws(space, pmf, keep_prob, cycles=2)[-1]
    np.testing.assert_allclose(exact.law(chain, start=mu_last), pmf, atol=1e-13)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_conditionals_of_the_noised_laws(space: Space, keep_prob: float) -> None:
    pmf = oracles.random_law(space, seed=8)
    chain = exact.ExactConditionals(pmf, RoundRobin(space, keep_prob, cycles=2))
    x = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    for t, mu_t in enumerate(oracles.noised_laws(space, pmf, keep_prob, cycles=2)[:-1]):
        step = torch.tensor([t])
        found = chain.log_conditional(step, step % space.sites, x).exp()
        np.testing.assert_allclose(found, oracles.conditional(space, mu_t, t % space.sites), atol=1e-13)


def test_hard_noise_starts_from_nothing_and_soft_noise_pays_for_it() -> None:
    space = SPACES[2]
    pmf = oracles.random_law(space, seed=9)
    hard = exact.law(exact.ExactConditionals(pmf, RoundRobin(space, 0.0, cycles=1)))
    np.testing.assert_allclose(hard, pmf, atol=1e-13)
    noise = RoundRobin(space, 0.5, cycles=2)
    soft = exact.law(exact.ExactConditionals(pmf, noise))
    delta = oracles.tv(oracles.noised_laws(space, pmf, 0.5, 2)[-1], np.full(space.size, 1 / space.size))
    assert 1e-3 < oracles.tv(soft, pmf) <= delta


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("hide_noised", [True, False])
@pytest.mark.parametrize("network", ["site_mlp", "local_mlp"])
def test_law_of_a_network_equals_its_kernels(space: Space, keep_prob: float, hide_noised: bool, network: str) -> None:
    model = untrained(space, keep_prob, cycles=2, hide_noised=hide_noised, network=network)
    found = exact.law(model)
    np.testing.assert_allclose(found, law_by_kernels(model), atol=1e-13)
    assert float(found.sum()) == pytest.approx(1, abs=1e-12)


def test_law_does_not_depend_on_how_contexts_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    model = untrained(SPACES[2], 0.3, cycles=2)
    whole = exact.law(model)
    for rows in (1, 3, 5):
        monkeypatch.setitem(chain_law.BUDGET, "cpu", rows * model.conditionals.bytes_per_row)
        torch.testing.assert_close(exact.law(model), whole, atol=1e-14, rtol=0)


@pytest.mark.parametrize(("keep_prob", "cycles", "hide"), [(0.0, 1, True), (0.0, 2, False), (0.4, 2, True)])
def test_law_agrees_with_samples(keep_prob: float, cycles: int, hide: bool) -> None:
    n, space = 100_000, Space(sites=3, states=4)
    model = untrained(space, keep_prob, cycles, hide_noised=hide)
    law = exact.law(model).numpy()
    rows = sample(model.conditionals, n, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(space.index(rows), minlength=space.size).numpy() / n
    assert oracles.tv(shares, law) <= oracles.sampled_tv_tolerance(law, n)


def test_hard_law_is_the_autoregressive_product() -> None:
    space = Space(sites=3, states=4)
    model = untrained(space, 0.0)
    product = np.ones(space.size)
    for i, x in enumerate(oracles.configurations(space)):
        for u in range(space.sites):
            blank = torch.tensor([[0 if site <= u else x[site] for site in range(space.sites)]], dtype=torch.uint8)
            hidden = torch.tensor([[site <= u for site in range(space.sites)]])
            t = torch.tensor([u])
            with torch.no_grad():
                product[i] *= model.conditionals.network(t, t, blank, hidden).softmax(-1)[0, x[u]]
    np.testing.assert_allclose(exact.law(model), product, atol=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_the_theorem_holds_and_its_quantities_are_right(seed: int) -> None:
    space, keep_prob = (SPACES[1], 0.3) if seed % 2 else (SPACES[0], 0.6)
    model = untrained(space, keep_prob, cycles=2, scale=0.3)
    pmf = oracles.random_law(space, seed)
    start = oracles.random_law(space, seed + 100) if seed >= 4 else None
    found = exact.bound(model, pmf, start)
    uniform = np.full(space.size, 1 / space.size)
    laws = oracles.noised_laws(space, pmf, keep_prob, 2)
    assert found.delta_T == pytest.approx(oracles.tv(laws[-1], uniform), abs=1e-12)
    assert found.gamma == pytest.approx(0 if start is None else oracles.tv(start, uniform), abs=1e-12)
    assert 2 * space.sites == found.T
    eta = 0.0
    x = torch.tensor(oracles.configurations(space), dtype=torch.uint8)
    for t in range(found.T):
        step = torch.tensor([t])
        with torch.no_grad():
            mu = model.conditionals.log_conditional(step, step % space.sites, x)
        learnt = model.conditionals.noise.reverse(mu, x[:, t % space.sites], step).exp().numpy()  # (old, token)
        true = oracles.bayes_kernel(space, t, keep_prob, laws[t])  # (new, old)
        for old in range(space.size):
            column = np.zeros(space.size)
            for token in range(space.states):
                new = x[old].clone()
                new[t % space.sites] = token
                column[int(space.index(new))] = learnt[old, token]
            eta = max(eta, oracles.tv(column, true[:, old]))
    assert found.eta == pytest.approx(eta, abs=1e-12)
    assert found.bound == pytest.approx(found.delta_T + found.T * found.eta + found.gamma)
    assert found.tv == pytest.approx(oracles.tv(exact.law(model, start=start), pmf), abs=1e-12)
    assert found.tv <= found.bound


def test_exact_conditionals_have_no_estimation_error() -> None:
    space = SPACES[2]
    pmf = oracles.random_law(space, seed=3, zeros=0.4)
    found = exact.bound(exact.ExactConditionals(pmf, RoundRobin(space, 0.4, 2)), pmf)
    assert found.eta == pytest.approx(0, abs=1e-12)
    assert 0 < found.tv <= found.delta_T


def test_a_constant_site_has_no_other_symbol_at_all() -> None:
    space = SPACES[2]
    for keep_prob in KEEP_PROBS:
        law = exact.law(untrained(space, keep_prob, 2, constant=(-1, 2, -1))).view(4, 4, 4)
        assert float(law[:, [0, 1, 3]].sum()) == 0


@pytest.mark.parametrize(
    ("pmf", "message"),
    [
        (np.full(5, 0.2), "must have 9 entries"),
        (np.full(9, 0.2), "sums to 1.8"),
        (np.array([1.1, -0.1] + [0.0] * 7), "-0.1 at index 1"),
        (np.array([1.0, np.nan] + [0.0] * 7), "nan at index 1"),
    ],
)
def test_what_is_no_law_is_refused(pmf: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact.bound(untrained(SPACES[1], 0.3), pmf)


def test_a_space_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="too many to enumerate"):
        exact.law(untrained(Space(sites=40, states=2), 0.0))
