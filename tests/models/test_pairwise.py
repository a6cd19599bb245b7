"""What a pairwise model learns: its losses, its optimum, its couplings and its conditionals."""

from typing import Any

import numpy as np
import oracles
import pytest
import torch
from pairwise_models import SPACES
from scipy.optimize import minimize

from neurise import datasets, exact
from neurise.interactions import contrasts
from neurise.models._pairwise.tables import PairwiseTables
from neurise.models.pairwise import Pairwise
from neurise.space import Space

FLOAT32 = 1e-5
"""Weights are float32: logits below 10 carry an error below 10 · 2^-23 ~ 10^-6, and a few of them add up."""


def random_tables(space: Space, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Tables for all pairs, (q, q, p, p), and fields, (q, p), in the zero-sum gauge and without any other symmetry."""
    rng = np.random.default_rng(seed)
    tables = np.zeros((space.sites, space.sites, space.states, space.states))
    for i in range(space.sites):
        for j in range(i + 1, space.sites):
            table = rng.normal(scale=0.5, size=(space.states, space.states))
            table -= table.mean(0)
            tables[i, j] = table - table.mean(1, keepdims=True)
            tables[j, i] = tables[i, j].T
    fields = rng.normal(scale=0.5, size=(space.sites, space.states))
    return tables, fields - fields.mean(1, keepdims=True)


def law_of(space: Space, tables: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Probabilities of all configurations, pair by pair."""
    weight = []
    for x in oracles.configurations(space):
        pairs = sum(tables[i, j, x[i], x[j]] for i in range(space.sites) for j in range(i + 1, space.sites))
        weight.append(np.exp(pairs + sum(fields[i, x[i]] for i in range(space.sites))))
    return np.array(weight) / sum(weight)


def as_spins(tables: np.ndarray, fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ``couplings_`` and ``fields_`` should show: J and h for two states."""
    return (tables[..., 1, 1], fields[..., 1]) if tables.shape[-1] == 2 else (tables, fields)


def everything(space: Space) -> np.ndarray:
    return np.array(oracles.configurations(space))


def with_truth(space: Space, tables: np.ndarray, fields: np.ndarray, **params: Any) -> Pairwise:
    """A fitted model whose weights are replaced by the truth."""
    model = Pairwise().set_params(steps=1, **params).fit(everything(space))
    network = model.objective_.network
    assert isinstance(network, PairwiseTables)
    basis = contrasts(space.states) / space.states  # W = φ K φᵀ and φᵀφ = p, so K = φᵀ W φ / p²
    order = np.array(model.order_)
    first, second = order[network.pairs].T
    network.couplings.data[0] = torch.tensor(basis.T @ tables[first, second] @ basis / network.scale)
    network.fields.data[0] = torch.tensor(fields[order] @ basis / network.scale)
    return model


@pytest.mark.parametrize("states", [2, 3, 5])
def test_contrasts_are_the_corners_of_a_simplex(states: int) -> None:
    np.testing.assert_allclose(contrasts(states) @ contrasts(states).T, states * np.eye(states) - 1, atol=1e-12)
    assert contrasts(2).tolist() == [[-1], [1]]


@pytest.mark.parametrize("loss", ["cross_entropy", "screening", "weighted_screening(0.5)"])
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_population_loss_is_stationary_at_the_truth_alone(space: Space, loss: str) -> None:
    tables, fields = random_tables(space)
    law, x = torch.tensor(law_of(space, tables, fields)), torch.tensor(everything(space))
    model = with_truth(space, tables, fields, loss=loss, l2=0.0)
    objective = model.objective_
    network = objective.network.double()

    def gradient(scale: float) -> float:
        network.zero_grad()
        for weight in network.parameters():
            weight.data *= scale
        network.requires_grad_(True)
        (law @ objective.losses(network, (x, None))).backward()
        return max(float(weight.grad.abs().max()) for weight in network.parameters() if weight.grad is not None)

    for name, weight in dict(network.named_parameters()).items():  # float32 rounded the truth; put it back
        basis = contrasts(space.states) / space.states
        first, second = network.pairs.T
        exact_value = basis.T @ tables[first, second] @ basis if name == "couplings" else fields @ basis
        weight.data[0] = torch.tensor(exact_value / network.scale)
    assert gradient(1.0) < 1e-6
    assert gradient(1.1) > 1e-3


@pytest.mark.parametrize("loss", ["cross_entropy", "screening"])
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_training_on_the_law_itself_finds_its_couplings_and_fields(space: Space, loss: str) -> None:
    tables, fields = random_tables(space)
    law = law_of(space, tables, fields)
    model = Pairwise().set_params(
        loss=loss, l2=0.0, order=np.random.default_rng(1).permutation(space.sites), training__validation_fraction=0.0
    )
    model.fit(everything(space), weights=law, max_steps=600, verbose=False)
    # 600 minibatches of 1024 rows: if all counted once, a logit would be known to about 2/√600,000 ~ 0.003; the averaged
    # end of the run counts for less of them, and the maximum is over up to 54 numbers.
    for found, true in zip((model.couplings_, model.fields_), as_spins(tables, fields), strict=True):
        assert found.shape == true.shape
        np.testing.assert_allclose(found, true, atol=0.05)
    assert oracles.tv(exact.law(model).numpy(), law) < 0.01
    np.testing.assert_array_equal(model.couplings_, np.swapaxes(model.couplings_, 0, 1).swapaxes(-1, -2)
                                  if space.states > 2 else model.couplings_.T)  # fmt: skip


def test_the_loop_ends_near_the_optimum_that_another_optimiser_finds() -> None:
    data = datasets.edwards_anderson(side=3, seed=0)
    X = data.sample(10_000, seed=1)
    model = Pairwise().set_params(l2=0.0, training__validation_fraction=0.0).fit(X, max_steps=1000, verbose=False)
    rows, counts = np.unique(X, axis=0, return_counts=True)
    rows, share, (first, second) = rows.astype(float), counts / len(X), np.triu_indices(9, 1)

    def pseudo(vector: np.ndarray) -> tuple[float, np.ndarray]:
        J = np.zeros((9, 9))
        J[first, second] = J[second, first] = vector[9:]
        pull = rows * (rows @ J + vector[:9])
        slope = (-2 / (1 + np.exp(2 * pull)) * rows) * share[:, None]
        both = slope.T @ rows
        return float(share @ np.logaddexp(0, -2 * pull).sum(1)), np.append(slope.sum(0), (both + both.T)[first, second])

    best = minimize(pseudo, np.zeros(45), jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-13})
    ours = -model.pseudo_log_likelihood(X).mean()
    assert best.fun / 9 - 1e-6 <= ours / 9 < best.fun / 9 + 1e-3
    learnt = np.append(model.fields_, model.couplings_[first, second])
    assert pseudo(learnt)[0] == pytest.approx(ours, abs=FLOAT32)  # couplings and fields are Ising's, in sign and size


@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_the_conditional_is_that_of_the_law(order: list[int] | None) -> None:
    space = Space(sites=4, states=3)
    tables, fields = random_tables(space)
    model, law = with_truth(space, tables, fields, order=order), law_of(space, tables, fields)
    np.testing.assert_allclose(exact.law(model).numpy(), law, atol=FLOAT32)
    found = [model.conditional(everything(space), site) for site in range(4)]
    for site in range(4):
        np.testing.assert_allclose(found[site], oracles.conditional(space, law, site), atol=FLOAT32)
    chosen = [np.log(found[site][np.arange(81), everything(space)[:, site]]) for site in range(4)]
    np.testing.assert_allclose(model.pseudo_log_likelihood(everything(space)), np.sum(chosen, axis=0), atol=1e-9)
    np.testing.assert_allclose(model.log_prob(everything(space)), np.log(law), atol=1e-4)


def test_only_given_pairs_interact() -> None:
    space = Space(sites=4, states=3)
    tables, fields = random_tables(space)
    model = Pairwise(edges=[(3, 1), (0, 1), (1, 3)], order=[1, 2, 3, 0], steps=20)
    model.fit(everything(space), weights=law_of(space, tables, fields), verbose=False)
    size = np.abs(model.couplings_).sum((2, 3))
    assert [tuple(pair) for pair in np.argwhere(size > 0).tolist()] == [(0, 1), (1, 0), (1, 3), (3, 1)]
    assert model.num_parameters_ == 2 * 4 + 4 * 2


def test_penalties_draw_couplings_towards_zero() -> None:
    space = SPACES[0]
    law = law_of(space, *random_tables(space))

    def size(**params: float) -> float:
        model = (
            Pairwise()
            .set_params(training__validation_fraction=0.0, **params)
            .fit(everything(space), weights=law, max_steps=150)
        )
        return float(np.abs(model.couplings_).sum())

    plain = size()
    assert size(l2=0.1) < 0.8 * plain
    assert size(l1=0.1) < 0.8 * plain
    assert size(l1=1.0) < 0.1 * plain  # the slope of a pseudo-likelihood is below 2 · 1 a pair: zero is the minimum


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "l1": ({"l1": -1.0}, "l1 must be a number, not negative, got -1.0"),
    "l2": ({"l2": float("nan")}, "l2 must be .* got nan"),
    "loss": ({"loss": "least squares"}, "unknown loss 'least squares'"),
    "sweeps": ({"sweeps": 0}, "sweeps must be a positive whole number, got 0"),
    "own edge": ({"edges": [(0, 1), (2, 2)]}, r"edges has \[2, 2\] at row 1"),
    "far edge": ({"edges": [(0, 5)]}, r"edges has \[0, 5\] at row 0; .* from 0 to 4"),
    "no pairs": ({"edges": [0, 1]}, r"edges must be pairs .* shape \(2,\)"),
}


@pytest.mark.parametrize(("params", "message"), BAD.values(), ids=BAD)
def test_parameters_that_cannot_be_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pairwise().set_params(**params).fit(everything(SPACES[0]))


@pytest.mark.slow
def test_every_coupler_of_a_spin_glass_is_found_with_its_sign() -> None:
    data = datasets.edwards_anderson(side=4, seed=0)
    model = Pairwise().fit(data.sample(100_000, seed=1), verbose=False)
    true = np.zeros((16, 16))
    for (i, j), coupling in zip(data.edges, data.couplings, strict=True):
        true[i, j] = true[j, i] = coupling
    found = np.where(np.abs(model.couplings_) > 0.6, np.sign(model.couplings_), 0)  # half of |J| = 1.2
    np.testing.assert_array_equal(found, np.sign(true))
