import numpy as np
import oracles
import pytest
import torch

from neurise import theory
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space
from neurise.theory.kernels import KERNELS, Maker

SPACES = [Space(sites=4, states=2), Space(sites=2, states=3), Space(sites=3, states=3)]
KEEP_PROBS = [0.0, 0.3, 0.9]
LOCAL = ["Bayes", "heat bath", "½ Bayes + ½ heat bath"]
EXACT = 1e-12


def heat_bath(space: Space, t: int, mu_t: np.ndarray) -> np.ndarray:
    """[new, old]: the site of the step is drawn from its conditional, the others stay."""
    u = t % space.sites
    table = oracles.conditional(space, mu_t, u)
    kernel = np.zeros((space.size, space.size))
    for i, new in enumerate(oracles.configurations(space)):
        for j, old in enumerate(oracles.configurations(space)):
            if (*new[:u], *new[u + 1 :]) == (*old[:u], *old[u + 1 :]):
                kernel[i, j] = table[j, new[u]]
    return kernel


def by_hand(name: str, space: Space, t: int, keep_prob: float, mu_t: np.ndarray) -> np.ndarray:
    bayes = oracles.bayes_kernel(space, t, keep_prob, mu_t)
    bath = heat_bath(space, t, mu_t)
    degenerate = np.repeat(mu_t[:, None], space.size, axis=1)
    return {
        "Bayes": bayes,
        "heat bath": bath,
        "½ Bayes + ½ heat bath": 0.5 * bayes + 0.5 * bath,
        "½ Bayes + ½ degenerate": 0.5 * bayes + 0.5 * degenerate,
        "degenerate": degenerate,
    }[name]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_every_kernel_keeps_every_marginal(name: str, space: Space, keep_prob: float) -> None:
    noise, pmf = RoundRobin(space, keep_prob, cycles=2), oracles.random_law(space, seed=1)
    laws = oracles.noised_laws(space, pmf, keep_prob, cycles=2)
    for t in range(noise.num_steps):
        kernel = KERNELS[name](torch.tensor(laws[t]), noise, t)
        matrix = kernel.matrix().numpy()
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=0), 1, atol=EXACT)
        np.testing.assert_allclose(matrix @ laws[t + 1], laws[t], atol=EXACT)
        np.testing.assert_allclose(kernel.push(torch.tensor(laws[t + 1])), laws[t], atol=EXACT)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("space", SPACES[:2])
@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_kernels_and_their_locality_are_those_of_matrices_written_by_hand(
    name: str, space: Space, keep_prob: float
) -> None:
    noise, pmf = RoundRobin(space, keep_prob, cycles=2), oracles.random_law(space, seed=2)
    laws = oracles.noised_laws(space, pmf, keep_prob, cycles=2)
    x = np.array(oracles.configurations(space))
    differ = x[:, None] != x[None]  # [new, old, site]
    for t in range(noise.num_steps):
        kernel, expected = KERNELS[name](torch.tensor(laws[t]), noise, t), by_hand(name, space, t, keep_prob, laws[t])
        np.testing.assert_allclose(kernel.matrix(), expected, atol=EXACT)
        for law in (laws[t + 1], oracles.random_law(space, seed=50 + t)):
            changes = np.einsum("ijs,ij,j->s", differ, expected, law)
            np.testing.assert_allclose(kernel.changes(torch.tensor(law)), changes, atol=EXACT)
        assert kernel.reach == (expected > 0).sum(axis=0).max()


@pytest.mark.parametrize("space", SPACES)
def test_local_kernels_change_no_other_site_and_the_degenerate_one_does(space: Space) -> None:
    noise = RoundRobin(space, 0.3, cycles=1)
    laws = list(theory.noised_laws(oracles.random_law(space, seed=3), noise))
    for t in range(noise.num_steps):
        for name, make in KERNELS.items():
            changes = make(laws[t], noise, t).changes(laws[t + 1]).numpy()
            others = np.delete(changes, t % space.sites)
            assert bool((others == 0).all() if name in LOCAL else (others > 0.01).all())
            assert changes[t % space.sites] > 0


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_mixtures_of_any_weight_keep_the_marginals(weight: float) -> None:
    space = SPACES[2]
    noise = RoundRobin(space, 0.6, cycles=1)
    laws = list(theory.noised_laws(oracles.random_law(space, seed=4), noise))
    first, second = theory.Bayes(laws[1], noise, 1), theory.Degenerate(laws[1], noise, 1)
    mixture = theory.Mixture(first, second, weight)
    torch.testing.assert_close(mixture.push(laws[2]), laws[1], atol=EXACT, rtol=0)
    expected = weight * first.matrix() + (1 - weight) * second.matrix()
    torch.testing.assert_close(mixture.matrix(), expected, atol=EXACT, rtol=0)
    assert mixture.reach == (space.states if weight == 1 else space.size)


def test_what_is_no_mixture_is_refused() -> None:
    space = SPACES[1]
    noise = RoundRobin(space, 0.6, cycles=1)
    mu, other = (torch.tensor(oracles.random_law(space, seed=seed)) for seed in (0, 1))
    for second in (theory.HeatBath(mu, noise, 1), theory.HeatBath(other, noise, 0)):
        with pytest.raises(ValueError, match="same step"):
            theory.Mixture(theory.Bayes(mu, noise, 0), second, 0.5)
    with pytest.raises(ValueError, match="weight must be"):
        theory.Mixture(theory.Bayes(mu, noise, 0), theory.Degenerate(mu, noise, 0), 1.5)


def test_a_matrix_too_large_is_refused() -> None:
    kernel = theory.Bayes(torch.full((2**13,), 2.0**-13), RoundRobin(Space(sites=13, states=2), 0.5, 1), 0)
    with pytest.raises(ValueError, match="too many to enumerate"):
        kernel.matrix()


def test_hard_noise_has_one_local_reversal() -> None:
    space = SPACES[0]
    noise = RoundRobin(space, 0.0, cycles=1)
    mu = torch.tensor(oracles.random_law(space, seed=5, zeros=0.5))
    torch.testing.assert_close(theory.Bayes(mu, noise, 2).matrix(), theory.HeatBath(mu, noise, 2).matrix())


@pytest.mark.parametrize("space", SPACES)
def test_a_bayes_step_changes_as_many_sites_as_the_noise_did(space: Space) -> None:
    keep_prob = 0.3
    found = theory.compare(oracles.random_law(space, seed=6), RoundRobin(space, keep_prob, cycles=2))
    assert found[0].name == "Bayes"
    assert found[0].hamming == pytest.approx((1 - keep_prob) * (1 - 1 / space.states), abs=EXACT)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_the_comparison_is_that_of_whole_chains(keep_prob: float) -> None:
    space = SPACES[1]
    pmf, noise = oracles.random_law(space, seed=7), RoundRobin(space, keep_prob, cycles=2)
    laws = oracles.noised_laws(space, pmf, keep_prob, cycles=2)
    x = np.array(oracles.configurations(space))
    hamming = (x[:, None] != x[None]).sum(-1)
    for found in theory.compare(pmf, noise):
        current, moved = np.full(space.size, 1 / space.size), 0.0
        for t in reversed(range(noise.num_steps)):
            kernel = by_hand(found.name, space, t, keep_prob, laws[t])
            moved += np.einsum("ij,ij,j->", hamming, kernel, laws[t + 1])
            current = kernel @ current
        assert found.defect < EXACT
        assert found.from_uniform == pytest.approx(oracles.tv(current, pmf), abs=EXACT)
        assert found.hamming == pytest.approx(moved / noise.num_steps, abs=EXACT)
        assert (found.elsewhere == 0) == (found.name in LOCAL)
        assert found.from_uniform <= oracles.tv(laws[-1], np.full(space.size, 1 / space.size)) + EXACT


def test_a_wrong_kernel_shows_its_defect() -> None:
    space = SPACES[1]
    noise = RoundRobin(space, 0.5, cycles=1)
    kernels: dict[str, Maker] = {"wrong": lambda mu, noise, t: theory.Bayes(mu, RoundRobin(space, 0.1, 1), t)}
    assert theory.compare(oracles.random_law(space, seed=8), noise, kernels)[0].defect > 1e-3
