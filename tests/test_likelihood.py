import math

import numpy as np
import oracles
import pytest
import torch
from fixtures import untrained

from neurise import exact, likelihood
from neurise.space import Space

SPACE = Space(sites=3, states=4)
EVERYTHING = torch.tensor(oracles.configurations(SPACE), dtype=torch.uint8)


@pytest.mark.parametrize("cycles", [1, 2])
@pytest.mark.parametrize("network", ["site_mlp", "local_mlp"])
def test_log_prob_is_the_log_of_the_law_and_sums_to_one(cycles: int, network: str) -> None:
    model = untrained(SPACE, 0.0, cycles, network=network)
    found = likelihood.log_prob(model.conditionals, EVERYTHING)
    assert float(found.exp().sum()) == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(found.exp(), exact.law(model), atol=1e-13, rtol=0)


def test_log_prob_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals = untrained(SPACE, 0.0).conditionals
    whole = likelihood.log_prob(conditionals, EVERYTHING)
    for evaluations in (1, 2, 7):
        monkeypatch.setattr("neurise.conditionals.base.CACHE", evaluations * conditionals.bytes_per_row)
        torch.testing.assert_close(likelihood.log_prob(conditionals, EVERYTHING), whole)


@pytest.mark.parametrize(
    ("keep_prob", "hide", "expected"), [(0.0, True, True), (0.0, False, False), (0.2, True, False)]
)
def test_exactness_is_known(keep_prob: float, hide: bool, expected: bool) -> None:
    assert untrained(SPACE, keep_prob, hide_noised=hide).conditionals.is_autoregressive is expected


def test_a_symbol_that_a_constant_site_never_shows_is_impossible() -> None:
    found = likelihood.log_prob(untrained(SPACE, 0.0, constant=(-1, 2, -1)).conditionals, EVERYTHING)
    assert torch.equal(found > -math.inf, EVERYTHING[:, 1] == 2)


def enumerated_elbo(model: object, x_0: tuple[int, ...], keep_prob: float, cycles: int) -> np.ndarray:
    """−KL(X_T | x_0 ‖ uniform) − Σ_t E KL(q(x_t | x_0, x_{t+1}) ‖ p(x_t | x_{t+1})) over whole configurations.

    One number for the steps of each site, and a share of the start: two cycles noise all sites alike.
    """
    conditionals = model.conditionals  # type: ignore[attr-defined]
    laws = oracles.noised_laws(SPACE, np.eye(SPACE.size)[oracles.configurations(SPACE).index(x_0)], keep_prob, cycles)
    total = np.full(SPACE.sites, -sum(w * math.log(w * SPACE.size) for w in laws[-1] if w > 0) / SPACE.sites)
    for t in range(cycles * SPACE.sites):
        u, step = t % SPACE.sites, torch.tensor([t])
        joint = oracles.forward_kernel(SPACE, t, keep_prob) * laws[t]  # [x_{t+1}, x_t]
        with torch.no_grad():
            mu = conditionals.log_conditional(step, step % SPACE.sites, EVERYTHING).exp().numpy()
        a = (1 - keep_prob) / SPACE.states
        for later in range(SPACE.size):
            mass = joint[later].sum()
            if mass == 0:
                continue
            present = int(EVERYTHING[later, u])
            weight = np.array([mu[later, c] * (a + keep_prob * (c == present)) for c in range(SPACE.states)])
            weight /= weight.sum()
            for earlier in np.flatnonzero(joint[later]):
                q = joint[later, earlier] / mass
                total[u] -= mass * q * math.log(q / weight[int(EVERYTHING[earlier, u])])
    return total


@pytest.mark.parametrize(("keep_prob", "hide"), [(0.0, False), (0.3, True), (0.9, True)])
def test_elbo_is_unbiased_and_below_the_likelihood(keep_prob: float, hide: bool) -> None:
    model = untrained(SPACE, keep_prob, cycles=2, hide_noised=hide, scale=0.7)
    law = exact.law(model)
    generator, draws = torch.Generator().manual_seed(0), 4000
    for place in (5, 42):
        rows = EVERYTHING[place].expand(draws, -1)
        values = likelihood.elbo(model.conditionals, rows, generator=generator)
        terms = enumerated_elbo(model, oracles.configurations(SPACE)[place], keep_prob, 2)
        expected = terms.sum()
        assert expected <= float(law[place].log())
        error = float(values.std()) / draws**0.5
        # Five standard errors: exceeded by one in 10^6.
        assert abs(float(values.mean()) - expected) <= 5 * error + 1e-12
        found = likelihood.elbo_terms(model.conditionals, rows, generator=generator)
        assert (abs(found.mean(0).numpy() - terms) <= 5 * found.std(0).numpy() / draws**0.5 + 1e-12).all()


def test_elbo_is_the_likelihood_where_that_is_exact() -> None:
    conditionals = untrained(SPACE, 0.0).conditionals
    bound = likelihood.elbo(conditionals, EVERYTHING, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(bound, likelihood.log_prob(conditionals, EVERYTHING), atol=1e-12, rtol=0)
