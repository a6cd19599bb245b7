"""The bounds of planned denoising, against quadrature over an enumerated space and against the exact law."""

import math

import numpy as np
import oracles
import planning
import pytest
import tiny
import torch

import neurise
from neurise.models._ddpd.objective import PlannedObjective
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])
SPACE = Space(sites=2, states=3)
DRAWS = 400
TAIL = 6
"""Standard errors: a mean of 400 draws is nearly normal, and one of nine leaves this range less often than once in 10^7."""


def nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes of m in (0, 1), and weights of dm/m: m = w³ leaves w⁵ log w of the logarithms at the end."""
    places, weights = np.polynomial.legendre.leggauss(24)
    w = (places + 1) / 2
    return w**3, weights / 2 * 3 / w


def published(m: float, clean: tuple[int, ...], zeta: np.ndarray, mu: np.ndarray) -> float:
    """Mean of both cross-entropies for one clean row."""
    total = 0.0
    for place, x in enumerate(oracles.configurations(SPACE)):
        for redrawn in planning.subsets(SPACE.sites):
            loss = -sum(
                math.log(zeta[place, i]) + math.log(mu[place, i, clean[i]]) if gone else math.log(1 - zeta[place, i])
                for i, gone in enumerate(redrawn)
            )
            total += planning.chance(x, redrawn, clean, m, SPACE.states) * loss
    return total


def paths(m: float, clean: tuple[int, ...], zeta: np.ndarray, mu: np.ndarray) -> float:
    """Mean divergence of the paths per −d log m for one clean row."""
    total = 0.0
    for place, x in enumerate(oracles.configurations(SPACE)):
        for redrawn in planning.subsets(SPACE.sites):
            divergence = 0.0
            for i in range(SPACE.sites):
                rates = [zeta[place, i] * mu[place, i, a] for a in range(SPACE.states)]
                divergence += sum(rate for a, rate in enumerate(rates) if a != x[i])
                if x[i] != clean[i]:  # the noise given x_0 goes there at the rate 1, and nowhere else
                    divergence += math.log(1 / rates[clean[i]]) - 1
            total += planning.chance(x, redrawn, clean, m, SPACE.states) * divergence
    return total


def integrals(law: np.ndarray) -> np.ndarray:
    """Both losses of every clean row with perfect networks, (2, size)."""
    found = np.zeros((2, SPACE.size))
    for m, weight in zip(*nodes(), strict=True):
        true = planning.truth(law, SPACE, m)
        for place, clean in enumerate(oracles.configurations(SPACE)):
            for row, loss in enumerate((paths, published)):
                found[row, place] += weight * loss(m, clean, true.zeta, true.mu)
    return found


def bounds(objective: PlannedObjective) -> tuple[np.ndarray, np.ndarray]:
    x = SPACE.configurations().repeat(DRAWS, 1)
    values = objective.bound(x, None, generator=torch.Generator().manual_seed(0)).view(DRAWS, -1).numpy()
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(DRAWS)


def test_the_bound_is_the_divergence_of_the_paths_and_neither_loss_is_tight() -> None:
    law = oracles.random_law(SPACE, seed=0)
    mean, error = bounds(planning.exact(law, SPACE))
    path, cross_entropy = integrals(law)
    assert (np.abs(mean + path) < TAIL * error + 1e-6).all()  # with 24 nodes the rule errs by less
    assert error.max() < 0.2
    assert (path > -np.log(law) + 0.3).all()
    assert (cross_entropy > path + 2).all()
    gaps = [float(law @ (loss + np.log(law))) for loss in (path, cross_entropy)]
    assert gaps == pytest.approx([0.558, 3.184], abs=1e-3)  # as the guide has it


@each_space
def test_the_published_loss_is_never_below_the_divergence_of_the_paths(space: Space) -> None:
    """For any networks, in the mean over the noise of each clean row, at any time."""
    objective = planning.objective(planning.AnyPlan(space, seed=8), space)
    for v in (0.1, 0.5, 0.99):
        drawn, weights = planning.all_examples(np.ones(space.size), space, v)
        published_loss = weights * objective.losses(objective.network, drawn)
        path = weights * objective.path_loss(drawn.v, drawn.x, None, drawn.x_0)
        gaps = (published_loss - path).view(space.size, -1).sum(-1)
        assert (gaps > 1e-3).all()


def trained(**params: object) -> neurise.DDPD:
    rows = np.random.default_rng(0).choice(9, size=300, p=oracles.random_law(SPACE, seed=0))
    model = tiny.model("ddpd", training__learning_rate=0.05, alphabet=[0, 1, 2], **params)
    assert isinstance(model, neurise.DDPD)
    return model.fit(SPACE.configurations().numpy()[rows], max_steps=60)


@pytest.mark.parametrize("sampler", ["planned", "parallel"])
def test_networks_that_err_have_a_bound_too(sampler: str) -> None:
    model = trained(sampler=sampler)
    coarse, fine = (neurise.exact.law(model.set_params(sampling_steps=steps)).numpy() for steps in (100, 200))
    limit = 2 * fine - coarse  # the error of a law is c/N + O(1/N²), and of that about 1/N is left
    slack = np.abs(coarse - limit) / limit / 100
    mean, error = bounds(model.objective_)  # type: ignore[arg-type]
    assert (limit > 0).all()
    assert (mean < np.log(limit) + slack + TAIL * error).all()
    assert (mean > np.log(limit) - 4).all()  # nor is it an empty bound


def test_a_row_that_differs_at_a_constant_site_is_impossible() -> None:
    X = tiny.spins()
    X[:, 1] = -1
    model = tiny.model("ddpd").fit(X, max_steps=5)
    X[::2, 1] = 1
    value = model.elbo(X, seed=0, draws=2).value
    assert np.isneginf(value[::2]).all()
    assert np.isfinite(value[1::2]).all()
