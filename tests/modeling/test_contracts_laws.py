"""What every model promises about its law: samples, likelihoods, clamps and the exact law speak of the same thing."""

import itertools
from pathlib import Path
from typing import Any

import chi_square
import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps

from neurise import discovery, exact
from neurise.modeling.model import Model, Run
from neurise.rows import Rows
from neurise.training import loop

NAMES = discovery.names("neurise.models")
TRAINED = [name for name in NAMES if tiny.is_trained(name)]
ROWS = {
    "two states": tiny.spins(300),
    "three states": np.array(list("xyz"))[np.random.default_rng(1).integers(0, 3, (300, 2)) // [1, 2]],
}
"""Sites and states differ in both; in the second, the third letter never stands at the second site."""


@pytest.fixture(params=NAMES, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=ROWS, scope="module")
def fitted(request: pytest.FixtureRequest, name: str) -> Model:
    params: dict[str, Any] = {"training__learning_rate": 0.05} if tiny.is_trained(name) else {}
    rows = ROWS[request.param]
    return tiny.model(name, order=[*range(1, rows.shape[1]), 0], **params).fit(rows, max_steps=60)


def law_of(model: Model) -> np.ndarray:
    try:
        return exact.law(model).numpy()  # type: ignore[no-any-return]
    except NotImplementedError as reason:
        pytest.skip(str(reason))


def configurations(model: Model) -> np.ndarray:
    return np.array(list(itertools.product(model.schema_.alphabet.symbols, repeat=model.space_.sites)))


def places(model: Model, rows: np.ndarray) -> np.ndarray:
    return np.asarray(model.space_.index(model.schema_.alphabet.encode(rows)))


def test_the_exact_law_is_a_law_and_samples_follow_it(fitted: Model) -> None:
    law = law_of(fitted)
    assert law.shape == (fitted.space_.size,)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-9)
    chi_square.assert_drawn_from(places(fitted, fitted.sample(20_000, seed=0)), law)


def test_the_likelihood_is_that_law(fitted: Model) -> None:
    law = law_of(fitted)
    try:
        log_prob = fitted.log_prob(configurations(fitted))
    except NotImplementedError:
        pytest.skip("no exact likelihood")
    # Networks compute in single precision: seven digits, over a handful of factors.
    np.testing.assert_allclose(np.exp(log_prob), law, rtol=1e-5, atol=1e-12)


def test_a_bound_on_the_likelihood_is_below_it(fitted: Model) -> None:
    law = law_of(fitted)
    try:
        bound = fitted.elbo(configurations(fitted), seed=0, draws=64)
    except NotImplementedError:
        pytest.skip("no bound")
    with np.errstate(divide="ignore"):
        possible = law > 1e-12
        assert (bound.value - 6 * bound.standard_error <= np.log(law) + 1e-4)[possible].all()
    assert np.isfinite(bound.value[possible]).all()


def test_clamped_sites_hold_and_the_others_follow_their_conditional_law(fitted: Model) -> None:
    law, rows = law_of(fitted), configurations(fitted)
    first = rows[law.argmax(), 0]
    clamp = np.ma.masked_all(fitted.space_.sites, dtype=rows.dtype)
    clamp[0] = first
    try:
        drawn = fitted.sample(20_000, clamp=clamp, seed=0)
    except NotImplementedError as reason:
        assert "clamp" in str(reason)  # noqa: PT017 - a model may refuse, if it says what would not
        return
    assert (drawn[:, 0] == first).all()
    given = np.where(rows[:, 0] == first, law, 0)
    # Draws from weighted particles are not quite independent; every second one is enough for a rough check of the means.
    seen = np.bincount(places(fitted, drawn), minlength=len(law)) / len(drawn)
    assert np.abs(seen - given / given.sum()).max() < 6 * np.sqrt(0.25 / 2000)


def test_what_was_learnt_is_counted(fitted: Model) -> None:
    assert fitted.num_parameters_ == sum(weight.size for weight in tiny.weights(fitted).values()) > 0


class Stopped(Exception):
    pass


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("labelled", [False, True])
def test_a_stopped_run_goes_on_bit_for_bit(
    name: str, labelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = tiny.spins()
    data = {"X": X, "y": X[:, 0] if labelled else None, "weights": np.arange(60) % 4, "max_steps": 30}
    whole = tiny.model(name).fit(**data)

    def stopping(state: Any, genuine: Any) -> Any:
        if state.step == 17:
            raise Stopped
        return genuine()

    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e9)  # a checkpoint at every evaluation
        replace_steps(patch, stopping)
        with pytest.raises(Stopped):
            tiny.model(name).fit(**data, checkpoint=tmp_path)
    resumed = tiny.model(name).fit(**data, checkpoint=tmp_path, resume=True)
    assert tiny.same_weights(resumed, whole)
    assert [record["loss"] for record in resumed.history_] == [record["loss"] for record in whole.history_]


@pytest.mark.parametrize("name", TRAINED)
def test_progress_is_shown_and_kept(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny.model(name).fit(tiny.spins(), max_steps=30, verbose=True)
    assert "training" in capsys.readouterr().err
    assert [record["step"] for record in model.history_] == [10, 20, 30]
    assert all(np.isfinite([record["loss"], record["validation"]]).all() for record in model.history_)
    assert model.stopped_ == "steps"


@pytest.mark.parametrize("name", TRAINED)
def test_the_losses_of_a_batch_are_those_of_its_examples(name: str) -> None:
    """Everything random is drawn beforehand, so that a batch can be cut in two (several processes, slices)."""
    model = tiny.model(name).fit(tiny.spins(), max_steps=3)
    run, rows = Run(0, None, False, 3, None, False, 0.0), Rows(model.schema_.encode(tiny.spins(20)))
    (job,) = model.jobs(rows, rows, run)  # type: ignore[attr-defined]
    job.begin()
    objective, generator = job.objective, torch.Generator().manual_seed(0)
    drawn = objective.draw(rows.at(torch.arange(20) / 20), generator=generator)
    whole = objective.losses(objective.network, drawn)
    assert whole.shape == (20,)
    halves = [tuple(None if part is None else part[rows] for part in drawn) for rows in (slice(0, 9), slice(9, 20))]
    parts = [objective.losses(objective.network, half) for half in halves]
    torch.testing.assert_close(torch.cat(parts), whole)
