"""The lower bound of discrete flow matching, against quadrature over an enumerated space and against the exact law."""

import math

import numpy as np
import oracles
import pytest
import tiny
import torch
from flows import exact, random_law

import neurise
from neurise import batching
from neurise.models._dfm.bound import BOUND_TIMES
from neurise.models._dfm.objective import Example, PosteriorObjective
from neurise.models._dfm.path import Path
from neurise.models.dfm import SOURCES
from neurise.space import Space

SPACE = Space(sites=2, states=3)
DRAWS = 400
TAIL = 6
"""Standard errors: a mean of 400 draws is nearly normal, and one of nine leaves this range less often than once in 10^7."""


def bounds(source: str, exponent: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean bound of every configuration with the true posterior, and its standard error."""
    denoiser = exact(random_law(SPACE), SPACE, source, exponent)
    return estimates(PosteriorObjective(denoiser, Path(source, exponent), "generalised_kl"))


def estimates(objective: PosteriorObjective) -> tuple[np.ndarray, np.ndarray]:
    x = SPACE.configurations().repeat(DRAWS, 1)
    values = objective.bound(x, None, generator=torch.Generator().manual_seed(0)).view(DRAWS, -1).numpy()
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(DRAWS)


def integrand(law: np.ndarray, kappa: float, x_1: tuple[int, ...]) -> float:
    """Mean loss of x_1 under uniform noise, as a density in κ: explicit sums, with the published form of the loss."""
    configurations = oracles.configurations(SPACE)

    def likelihood(x: tuple[int, ...], clean: tuple[int, ...]) -> float:
        return math.prod(kappa * (a == b) + (1 - kappa) / SPACE.states for a, b in zip(x, clean, strict=True))

    total = 0.0
    for x in configurations:
        joint = np.array([likelihood(x, clean) for clean in configurations]) * law
        for site in range(SPACE.sites):
            p = np.zeros(SPACE.states)
            for weight, clean in zip(joint / joint.sum(), configurations, strict=True):
                p[clean[site]] += weight
            same = x[site] == x_1[site]
            loss = -(p[x[site]] - same + (1 - same) * math.log(p[x_1[site]])) / (1 - kappa)
            total += likelihood(x, x_1) * loss
    return total


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_for_the_mask_source_the_bound_is_the_likelihood(exponent: float) -> None:
    mean, error = bounds("mask", exponent)
    assert (np.abs(mean - random_law(SPACE).log().numpy()) < TAIL * error).all()
    # Of a site that is noised with probability v² the term 2f/(vS) has a variance below 4f²/S²: S strata and two sites
    # give 8f²/S, and f, minus the logarithm of a posterior, is at most minus that of the law.
    assert error.max() < 1.2 * -float(random_law(SPACE).min().log()) * math.sqrt(8 / BOUND_TIMES / DRAWS)


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_for_the_uniform_source_the_bound_is_the_integral_and_is_not_tight(exponent: float) -> None:
    mean, error = bounds("uniform", exponent)
    law = random_law(SPACE).numpy()
    # 1 − κ = w³ leaves w⁵ log w of the logarithm at the end: with 24 nodes the rule errs by less than 10^-6.
    nodes, weights = np.polynomial.legendre.leggauss(24)
    w = (nodes + 1) / 2
    for place, x_1 in enumerate(oracles.configurations(SPACE)):
        values = np.array([integrand(law, 1 - node**3, x_1) for node in w])
        integral = -float((weights / 2 * 3 * w**2 * values).sum())
        assert abs(mean[place] - integral) < TAIL * error[place] + 1e-6
        assert integral < math.log(law[place]) - 0.01
    assert error.max() < 0.2


def test_the_training_loss_is_the_integrand_of_the_bound() -> None:
    law, v = random_law(SPACE), 0.7
    objective = PosteriorObjective(exact(law, SPACE, "uniform"), Path("uniform", 2.0), "generalised_kl")
    x = SPACE.configurations()
    kernel = objective.denoiser.noise.kernel(torch.tensor(1 - v**2, dtype=torch.float64))
    for x_1 in x:
        example = Example(torch.full((9,), v, dtype=torch.float64), x, None, x_1.expand(9, -1))
        mean = kernel[x_1.long(), x.long()].prod(-1) @ objective.losses(objective.network, example)
        expected = integrand(law.numpy(), 1 - v**2, tuple(x_1.tolist()))
        assert float(mean) == pytest.approx(2 * v * expected, abs=1e-12)  # a density in κ, and dκ = 2v dv


def trained(source: str) -> neurise.DFM:
    rows = np.random.default_rng(0).choice(9, size=300, p=random_law(SPACE).numpy())
    model = tiny.model("dfm", source=source, training__learning_rate=0.05, alphabet=[0, 1, 2])
    assert isinstance(model, neurise.DFM)
    return model.fit(SPACE.configurations().numpy()[rows], max_steps=60)


@pytest.mark.parametrize("source", SOURCES)
def test_a_network_that_errs_has_a_bound_too(source: str) -> None:
    model = trained(source)
    coarse, fine = (neurise.exact.law(model.set_params(sampling_steps=steps)).numpy() for steps in (100, 200))
    limit = 2 * fine - coarse  # the error of a law is c/N + O(1/N²), and of that about 1/N is left
    slack = np.abs(coarse - limit) / limit / 100
    mean, error = estimates(model.objective_)  # type: ignore[arg-type]
    assert (limit > 0).all()
    assert (mean < np.log(limit) + slack + TAIL * error).all()
    # Nor is it an empty bound: a perfect network is within 2 nats of the likelihood here.
    assert (mean > np.log(limit) - 4).all()


def test_a_row_that_differs_at_a_constant_site_is_impossible() -> None:
    X = tiny.spins()
    X[:, 1] = -1
    model = tiny.model("dfm").fit(X, max_steps=5)
    X[::2, 1] = 1
    value = model.elbo(X, seed=0, draws=2).value
    assert np.isneginf(value[::2]).all()
    assert np.isfinite(value[1::2]).all()


def test_the_bound_keeps_to_the_memory_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained("mask")
    seen: list[int] = []
    model.objective_.network.register_forward_hook(lambda module, inputs, output: seen.append(len(inputs[1])))
    monkeypatch.setattr(batching, "MEMORY_BUDGET", 2 * model.objective_.denoiser.bytes_per_row)  # type: ignore[attr-defined]
    bound = model.elbo(SPACE.configurations().numpy()[:5], seed=1, draws=2)
    assert np.isfinite(bound.value).all()
    assert sorted(set(seen)) == [1, 2]
