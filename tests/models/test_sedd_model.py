"""SEDD's bound, its parameters, and that it trains."""

from typing import Any

import numpy as np
import oracles
import pytest
import sedd_truth
import tiny
import torch

from neurise import exact
from neurise.modeling.many import fit_many
from neurise.models._sedd.bound import elbo
from neurise.models.sedd import SEDD
from neurise.space import Space
from neurise.training.loop import TrainingDiverged

each_noise = pytest.mark.parametrize("noise", ["absorbing", "uniform"])
each_schedule = pytest.mark.parametrize("schedule", ["loglinear", "geometric"])


def end_of_noise(space: Space, pmf: np.ndarray, schedule: str) -> np.ndarray:
    """E over x_1 given x_0 of log start(x_1) − log p_1(x_1), for each x_0, under uniform noise."""
    kernel = sedd_truth.forward("uniform", space, sedd_truth.total_noise(schedule, 1.0))
    return np.asarray(-kernel @ np.log(pmf @ kernel * space.size))


@each_noise
@each_schedule
@pytest.mark.parametrize("space", [Space(3, 2), Space(2, 3)], ids=["3 sites, 2 states", "2 sites, 3 states"])
def test_the_bound_is_tight_with_the_true_score(noise: str, schedule: str, space: Space) -> None:
    """log p(x_0) and what is lost at the start of the chain: the paths given x_0 are the true posterior of the paths."""
    pmf, draws = 0.5 * oracles.random_law(space, seed=4) + 0.5 / space.size, 200
    network = sedd_truth.ExactScore(pmf, space, noise, schedule)
    x = space.configurations().repeat(draws, 1)
    generator = torch.Generator().manual_seed(0)
    values = elbo(*sedd_truth.parts(noise, schedule, space, network), x, None, generator=generator).numpy()
    values = values.reshape(draws, space.size)
    error = values.std(0, ddof=1) / draws**0.5
    expected = np.log(pmf) + (end_of_noise(space, pmf, schedule) if noise == "uniform" else 0)
    # Below σ = 10⁻⁴ the network of geometric uniform noise is asked about a little more noise than there is; that costs
    # less than 10⁻³. One mean in eight or nine is off by five standard errors once in 10⁵.
    assert (np.abs(values.mean(0) - expected) < 1e-3 + 5 * error).all()
    assert error.max() < 0.2


@each_noise
@each_schedule
def test_the_bound_is_below_the_likelihood_of_a_long_chain(noise: str, schedule: str) -> None:
    model = tiny.model("sedd", noise=noise, schedule=schedule, sampling_steps=100, training__learning_rate=0.02)
    model.fit(tiny.spins(200), max_steps=60)
    repeats, rows = 100, np.array([[-1, -1, 1], [1, -1, 1], [1, 1, -1]])
    values = model.elbo(np.tile(rows, (repeats, 1)), seed=0, draws=2).value.reshape(repeats, 3)
    bound, error = values.mean(0), values.std(0) / repeats**0.5
    log_law = np.log(exact.law(model).numpy()[[1, 5, 6]])
    assert (bound - 5 * error < log_law + 0.02).all()  # of what one step loses, 100 steps leave about 1/100
    assert bound == pytest.approx(log_law, abs=0.3)


def test_a_row_that_differs_where_nothing_varies_is_impossible() -> None:
    X = tiny.spins(sites=4)
    X[:, 2] = 1
    model = tiny.model("sedd").fit(X, max_steps=3)
    rows = X[:2].copy()
    rows[1, 2] = -1
    value = model.elbo(rows, seed=0).value
    assert np.isfinite(value[0])
    assert value[1] == -np.inf


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise": "gaussian"}, "noise must be one of 'absorbing', 'uniform', got 'gaussian'"),
        ({"schedule": "cosine"}, "schedule must be one of 'loglinear', 'geometric', got 'cosine'"),
        ({"schedule": ["loglinear"]}, r"schedule must be one of .*, got \['loglinear'\]"),
        ({"sampler": "tweedie"}, "sampler must be one of 'analytic', 'euler', got 'tweedie'"),
        ({"scores": "relu"}, "scores must be one of 'log', 'softplus', 'raw', got 'relu'"),
        ({"inputs": "bits"}, "inputs must be one of 'one_hot', 'spins', 'integers', got 'bits'"),
        ({"sampling_steps": 0}, "sampling_steps must be a positive whole number, got 0"),
        ({"sampling_steps": 2.5}, "sampling_steps must be a positive whole number, got 2.5"),
    ],
)
def test_what_cannot_be_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model("sedd", **params).fit(tiny.spins())
    if not params.keys() & {"sampler", "sampling_steps"}:
        return
    model = tiny.model("sedd").fit(tiny.spins(), max_steps=2)  # how to sample may be changed after training
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).sample(2)


@each_noise
@each_schedule
@pytest.mark.parametrize("sampler", ["analytic", "euler"])
@pytest.mark.parametrize("states", [1, 2, 256])
def test_any_number_of_states(noise: str, schedule: str, sampler: str, states: int) -> None:
    X = np.arange(states * 2).reshape(-1, 2) % states
    X = X.repeat(4, axis=0)
    params = {"noise": noise, "schedule": schedule, "sampler": sampler, "sampling_steps": 3}
    model = tiny.model("sedd", **params).fit(X, max_steps=3)
    drawn = model.sample(200, seed=0)
    assert set(np.unique(drawn)) <= set(range(states))
    assert np.isfinite(model.elbo(X[:2], seed=0).value).all()


@each_noise
@each_schedule
def test_all_samplers_agree_with_their_law(noise: str, schedule: str) -> None:
    n = 4000
    model = tiny.model("sedd", noise=noise, schedule=schedule, sampling_steps=5).fit(tiny.spins(), max_steps=20)
    law = exact.law(model).numpy()
    drawn = torch.tensor((model.sample(n, seed=0) + 1) // 2)
    found = oracles.empirical(Space(3, 2), drawn)
    assert oracles.tv(found, law) < oracles.sampled_tv_tolerance(law, n)


@each_noise
@pytest.mark.parametrize("scores", ["softplus", "raw"])
@pytest.mark.parametrize("inputs", ["spins", "integers"])
def test_other_forms_learn_too_and_agree_with_their_law(noise: str, scores: str, inputs: str) -> None:
    n, pmf = 4000, oracles.empirical(Space(3, 2), torch.tensor((tiny.spins(400) + 1) // 2))
    params = {"noise": noise, "scores": scores, "inputs": inputs, "sampling_steps": 32}
    # So short that raw scores stay positive.
    model = tiny.model("sedd", **params, width=16).fit(tiny.spins(400), max_steps=100)
    law = exact.law(model).numpy()
    assert oracles.tv(law, pmf) < 0.9 * oracles.tv(np.full(8, 1 / 8), pmf)
    drawn = torch.tensor((model.sample(n, seed=0) + 1) // 2)
    assert oracles.tv(oracles.empirical(Space(3, 2), drawn), law) < oracles.sampled_tv_tolerance(law, n)
    assert np.isfinite(model.elbo(tiny.spins()[:3], seed=0).value).all()


@each_noise
def test_raw_scores_diverge_and_the_model_keeps_its_last_good_weights(noise: str) -> None:
    X = np.repeat(np.random.default_rng(0).integers(0, 2, (200, 1)), 3, axis=1)  # many scores are 0: some fall below
    params = {"noise": noise, "training__learning_rate": 0.05, "training__warmup": 0.0}
    model = tiny.model("sedd", scores="raw", **params)
    with pytest.raises(TrainingDiverged, match="the loss became nan in step "):
        model.fit(X, max_steps=2000)
    assert model.stopped_ == "diverged"
    assert model.diverged_at_ is not None
    assert all(record["step"] < model.diverged_at_ for record in model.history_)
    assert np.isfinite(exact.law(model).numpy()).all()
    assert set(np.unique(model.sample(100, seed=0))) <= {0, 1}
    with pytest.warns(UserWarning, match="models 0, 1 of 2 diverged"):
        both = fit_many([tiny.model("sedd", scores="raw", **params) for _ in range(2)], [X, X], max_steps=2000)
    assert [one.stopped_ for one in both] == ["diverged"] * 2
    assert all(0 < one.diverged_at_ <= 2000 for one in both)
    for scores in ("log", "softplus"):
        positive = tiny.model("sedd", scores=scores, **params).fit(X, max_steps=200)
        assert positive.stopped_ != "diverged"
        assert positive.diverged_at_ is None


@each_noise
def test_raw_scores_of_columns_with_alphabets_of_their_own(noise: str) -> None:
    X = np.stack([np.arange(60) % 3, np.arange(60) % 2], axis=1)
    model = tiny.model("sedd", scores="raw", noise=noise, alphabet=[range(3), range(2)]).fit(X, max_steps=3)
    law = exact.law(model).numpy()
    assert law.shape == (6,)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert set(np.unique(model.sample(500, seed=0)[:, 1])) == {0, 1}


@pytest.mark.slow
@each_noise
@each_schedule
def test_ten_thousand_steps_at_a_rash_learning_rate_stay_finite(noise: str, schedule: str) -> None:
    X = np.random.default_rng(0).integers(0, 3, (500, 2))
    X[:, 1] = X[:, 0]  # scores without bound: some states are impossible
    params = {"width": 32, "training__batch_size": 64, "training__learning_rate": 1e-2, "training__patience": 10**6}
    model = SEDD(noise=noise, schedule=schedule).set_params(**params).fit(X, max_steps=10_000)
    assert model.stopped_ == "steps"
    assert all(np.isfinite([record["loss"], record["validation"]]).all() for record in model.history_)
    drawn = model.sample(1000, seed=0)
    assert (drawn[:, 0] == drawn[:, 1]).mean() > 0.95
