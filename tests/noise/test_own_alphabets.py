"""Noise on columns with alphabets of their own, against kernels written out site by site."""

import chi_square
import noisy
import numpy as np
import oracles
import pytest
import torch

from neurise import exact, likelihood
from neurise.noise.absorbing import Absorbing
from neurise.noise.base import SiteNoise
from neurise.noise.uniform import Uniform
from neurise.space import Space

SPACE = Space.of([3, 2, 4])
CASES = [(name, keep, steps) for name in noisy.SITE_NOISE for keep in (0.0, 0.4) for steps in (3, 7)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}-T{case[2]}")
def noise(request: pytest.FixtureRequest) -> SiteNoise:
    name, keep, steps = request.param
    made: SiteNoise = noisy.SITE_NOISE[name](SPACE, keep, steps=steps)
    return made


def kernel(noise: SiteNoise, site: int) -> np.ndarray:
    """One visit to a site, k[new, old] over all p or p + 1 tokens; columns of impossible ones are zero."""
    size, tokens, keep = SPACE.digits[site], noise.tokens, noise.keep_prob
    found = np.zeros((tokens, tokens))
    for old in [*range(size), *range(SPACE.states, tokens)]:
        found[old, old] += keep if old < SPACE.states else 1
        if old < SPACE.states:
            fresh = [SPACE.states] if tokens > SPACE.states else range(size)
            found[list(fresh), old] += (1 - keep) / len(fresh)
    return found


def written_out(noise: SiteNoise, pmf: np.ndarray, t: int) -> np.ndarray:
    """The law of X_t over all configurations on the way, axis by axis."""
    law = np.zeros([noise.tokens] * SPACE.sites)
    law[tuple(slice(size) for size in SPACE.digits)] = pmf.reshape(SPACE.digits)
    for step in range(t):
        site = step % SPACE.sites
        law = np.moveaxis(np.tensordot(kernel(noise, site), law, axes=(1, site)), 0, site)
    return law


def whole(noise: SiteNoise, law: torch.Tensor) -> np.ndarray:
    """A law of the package over all p^q or (p + 1)^q configurations."""
    if noise.tokens > SPACE.states:
        return law.numpy().reshape([noise.tokens] * SPACE.sites)
    found = np.zeros([SPACE.states] * SPACE.sites)
    found[tuple(slice(size) for size in SPACE.digits)] = law.numpy().reshape(SPACE.digits)
    return found


def test_laws_of_all_times_are_products_of_kernels(noise: SiteNoise) -> None:
    pmf = oracles.random_law(SPACE, seed=1)
    for t in range(noise.num_steps + 1):
        np.testing.assert_allclose(whole(noise, exact.noised(pmf, noise, t)), written_out(noise, pmf, t), atol=1e-14)


def test_corrupt_follows_them(noise: SiteNoise) -> None:
    pmf, generator = np.eye(SPACE.size)[SPACE.size - 3], torch.Generator().manual_seed(0)
    x_0 = SPACE.configurations()[SPACE.size - 3].expand(4000, -1)
    for t in range(1, noise.num_steps + 1):
        law = written_out(noise, pmf, t)
        x = noise.corrupt(x_0, torch.full((len(x_0),), t), generator=generator).long().numpy()
        places = np.ravel_multi_index(list(x.T), law.shape)
        if (law > 0).sum() > 1:
            chi_square.assert_drawn_from(places, law.ravel())


def test_exact_conditionals_run_the_chain_back_to_the_data(noise: SiteNoise) -> None:
    """Whatever ``reverse``, ``push`` and the tables of exact conditionals do, together they undo the noise."""
    pmf = torch.from_numpy(oracles.random_law(SPACE, seed=2))
    truth = exact.ExactConditionals(pmf, noise, hide_noised=noise.is_hard)
    start = exact.noised(pmf, noise, noise.num_steps)
    torch.testing.assert_close(exact.chain_law(truth, start=start), pmf, atol=1e-13, rtol=0)
    found = exact.bound(truth, pmf)
    assert found.eta == pytest.approx(0, abs=1e-12)
    assert found.tv <= found.bound + 1e-12


def test_a_bound_with_exact_conditionals_is_below_the_law_of_the_chain(noise: SiteNoise) -> None:
    pmf = torch.from_numpy(oracles.random_law(SPACE, seed=3))
    truth = exact.ExactConditionals(pmf, noise, hide_noised=noise.is_hard)
    law, x = exact.chain_law(truth), SPACE.configurations()
    generator = torch.Generator().manual_seed(1)
    draws = torch.stack([likelihood.elbo(truth, x, generator=generator) for _ in range(100)])
    value, error = draws.mean(0), draws.std(0) / 10
    assert bool((value - 6 * error <= law.log() + 1e-9).all())
    if noise.is_hard and noise.num_steps == SPACE.sites:
        torch.testing.assert_close(value, law.log(), atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", [Uniform, Absorbing])
def test_noise_on_all_sites_stays_inside_their_alphabets(kind: type) -> None:
    noise, generator = kind(SPACE), torch.Generator().manual_seed(0)
    x = noise.corrupt(
        SPACE.uniform(20_000, generator=generator), torch.full((20_000,), 0.3), generator=generator
    ).long()
    sizes = torch.tensor(SPACE.digits)
    assert bool(((x < sizes) | (x == SPACE.states) & (noise.tokens > SPACE.states)).all())
    law = noise.start_law().expand(SPACE.sites, -1)
    torch.testing.assert_close(law.sum(1), torch.ones(SPACE.sites, dtype=torch.float64))
    assert float(law[:, : SPACE.states][~SPACE.allowed()].sum()) == 0


def test_uniform_rows_are_uniform() -> None:
    places = SPACE.index(SPACE.uniform(24_000, generator=torch.Generator().manual_seed(3)))
    chi_square.assert_drawn_from(places.numpy(), np.full(SPACE.size, 1 / SPACE.size))


def test_a_space_counts_in_mixed_digits() -> None:
    torch.testing.assert_close(SPACE.index(SPACE.configurations()), torch.arange(24))
    assert SPACE.part(1, 3) == Space(2, 4, (2, 4))
    assert SPACE.in_order([2, 0, 1]).digits == (4, 3, 2)
    assert Space(3, 2, (2, 2, 2)) == Space(3, 2)
    for wrong in ((2, 2), (0, 2, 4), (2, 2, 5), (2, 2, 3)):
        with pytest.raises(ValueError, match="sizes must say"):
            Space(3, 4, wrong)
