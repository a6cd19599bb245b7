"""How much of a calibration is wanted is decided by rows that were held back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from torch import Tensor

import neurise
from neurise import exact, likelihood
from neurise.conditionals._matching import Matched
from neurise.conditionals.class_matched import ClassMatched, ClassTerms
from neurise.conditionals.committee import Committee
from neurise.conditionals.moment_matched import MomentMatched, corrected
from neurise.deadline import Work
from neurise.energies.regressions import Fit, Sample, sample_of
from neurise.modeling import calibration
from neurise.modeling.calibration import MENDED, SPREADS, Held, choose, held_gains, moment_error
from neurise.models import neurise as module
from neurise.rows import Rows
from neurise.space import Space

CPU = torch.device("cpu")
ROWS = 100
SPACES = pytest.mark.parametrize("space", [Space(sites=4, states=2), Space(sites=3, states=4)], ids=["bits", "four"])


def held(n: int = ROWS) -> Sample:
    return sample_of(Rows(torch.zeros(n, 1, dtype=torch.uint8)), 2, CPU)


def gains(*means: float) -> Tensor:
    """Gains of each spread on a hundred rows, whose differences have a standard error of a tenth of the difference."""
    noise = torch.linspace(-1, 1, ROWS).double()
    return torch.stack([mean * (1 + noise / noise.pow(2).mean().sqrt()) for mean in means])


@pytest.mark.parametrize(
    ("means", "errors", "wanted"),
    [
        ((0, 1, 2, 3, 2), (1, 0.8, 0.6, 0.4, 0.3), 3),  # the likeliest
        ((0, 1, 2, 2, 2), (1, 0.8, 0.6, 0.4, 0.3), 4),  # of those as likely, the one that is matched most
        ((0, 1, 2, 2, 2), (1, 0.8, 0.6, 0.4, 0.95), 3),  # if it mends the moments
        ((0, 0, 0, 0, 0), (1, 0.8, 0.6, 0.4, 0.3), 4),  # what costs nothing is taken
        ((0, 0, 0, 0, 0), (1, 1, 0.99, 0.95, 1.1), 0),  # and left where it mends nothing
        ((0, 1, 1, 1, 1), (1, 1, 0.99, 0.95, 1.1), 0),
        ((0, -1, -2, -3, -4), (1, 0.8, 0.6, 0.4, 0.3), 0),  # the likelihood comes first
        ((0, -5e-4, -2, -3, -4), (1, 0.8, 0.6, 0.4, 0.3), 1),  # but for what is allowed
    ],
)
def test_the_likelihood_comes_first_and_then_the_moments(
    means: tuple[float, ...], errors: tuple[float, ...], wanted: int
) -> None:
    assert choose(gains(*means), held(), errors, allowed=1e-3, always=False) == wanted
    # No last bit decides.
    for sign in (-1, 1):
        nearly = gains(*means) + sign * 1e-9 * torch.arange(len(means)).double()[:, None]
        assert (
            choose(nearly, held(), [error * (1 + sign * 1e-9) for error in errors], allowed=1e-3, always=False)
            == wanted
        )


def test_one_that_is_asked_for_is_the_best_of_those_that_change_something() -> None:
    assert choose(gains(0, -1, -2, -3, -4), held(), (1, 1, 1, 1, 1), allowed=0.0, always=True) == 1
    assert choose(gains(0, 1, 2, 3, 1), held(), (1, 1, 1, 1, 1), allowed=0.0, always=True) == 3
    assert 0 < MENDED < 1
    assert SPREADS[0] == 0
    assert list(SPREADS) == sorted(SPREADS)


def fitted(space: Space, **more: Any) -> Any:
    X = np.random.default_rng(0).integers(0, space.states, (80, space.sites))
    X[:, 0] = X[:, -1]
    return X, tiny.model(alphabet=list(range(space.states)), **more).fit(X, max_steps=5, verbose=False, device="cpu")


def random_fit(space: Space) -> Fit:
    outcomes = 1 if space.states == 2 else space.states
    size, generator = space.sites * outcomes, torch.Generator().manual_seed(3)
    weight = torch.randn(size, size, generator=generator)
    seen = torch.arange(space.sites).repeat_interleave(outcomes)
    return Fit(weight * (seen[:, None] < seen), torch.randn(size, generator=generator))


@SPACES
def test_gains_are_differences_of_log_likelihoods(space: Space) -> None:
    X, model = fitted(space)
    x, inner, change = torch.from_numpy(X).to(torch.uint8), model.conditionals, random_fit(space)
    job = SimpleNamespace(rows=Rows(x[:40]), held=Rows(x[40:]), objective=None)
    own, aside = calibration._parted(inner, [job], Work())
    assert torch.equal(own.x, x[:40])
    found = held_gains(aside, [Matched(change, torch.empty(0))])[0]
    whole = corrected(inner, change)
    wanted = likelihood.log_prob(whole, x[40:]) - likelihood.log_prob(inner, x[40:])
    assert float(wanted.abs().max()) > 0.5
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)


def test_rows_are_scored_by_members_that_did_not_learn_from_them() -> None:
    space = Space(sites=4, states=2)
    X, model = fitted(space, members=2, architecture__pairwise=False)
    committee, x = model.conditionals, torch.from_numpy(X).to(torch.uint8)
    assert isinstance(committee, Committee)
    rows = Rows(x, fold=(torch.arange(len(x)) % 4).to(torch.uint8))
    job = SimpleNamespace(
        rows=rows, held=rows.of_folds_below(2), objective=SimpleNamespace(network=SimpleNamespace(size=2))
    )
    own, aside = calibration._parted(committee, [job], Work())
    assert torch.equal(own.x, x[rows.fold >= 2])  # type: ignore[operator]
    for number, member in enumerate(committee):
        here = job.held.fold == number
        wanted = member.log_conditionals(job.held.x[here]).log_softmax(-1)
        torch.testing.assert_close(aside.laws[here], wanted, rtol=0, atol=1e-5)


def drawn_alone(sample: Sample, by_class: ClassTerms | None = None) -> Matched:
    """What was drawn, whatever it was drawn with."""
    return Matched(Fit(torch.empty(0), torch.empty(0)), sample.features, by_class)


def judging(sample: Sample, y: Tensor | None = None) -> Held:
    """Rows held back that are compared with what was drawn."""
    return Held(sample, torch.empty(0), torch.empty(0), y)


@SPACES
def test_the_error_of_moments_is_that_of_means_and_pairs_beyond_chance(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "BLOCK", 2)
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randint(0, space.states, (n, space.sites), generator=generator) for n in (300, 500))
    first[:, 0] = first[:, 1]  # what the other rows do not have
    weights = torch.rand(500, generator=generator).double()
    drawn = sample_of(Rows(first.to(torch.uint8)), space.states, CPU)
    sample = sample_of(Rows(second.to(torch.uint8), None, weights), space.states, CPU)
    share = (weights / weights.sum()).numpy()
    mean = share @ sample.features.numpy()
    one, two = (
        np.concatenate([np.ones((len(part), 1)), part - mean], axis=1)
        for part in (drawn.features.numpy(), sample.features.numpy())
    )
    pairs = torch.zeros(space.sites, space.sites, dtype=torch.bool)
    pairs[0, 1] = pairs[1, 0] = True
    for chosen in (pairs, torch.ones_like(pairs)):
        each = np.kron(chosen.numpy(), np.ones((sample.outcomes, sample.outcomes)))
        counted = np.pad(each, ((1, 0), (1, 0)), constant_values=1)
        products = two[:, :, None] * two[:, None, :]
        held = np.einsum("n,nij->ij", share, products)
        chance = np.einsum("n,nij->ij", share, (products - held) ** 2) * ((share**2).sum() + 1 / 300)
        error = (((one.T @ one / 300 - held) ** 2) * counted).sum()
        wanted = error - (1 + calibration.CHANCE) * (chance * counted).sum()
        assert wanted > 0
        assert moment_error(drawn_alone(drawn), judging(sample), chosen) == pytest.approx(wanted, rel=1e-3)


def test_moments_of_the_same_law_differ_by_chance_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randint(0, 2, (n, 40), generator=generator).to(torch.uint8) for n in (4000, 2000))
    drawn, sample = sample_of(Rows(first), 2, CPU), sample_of(Rows(second), 2, CPU)
    every = torch.ones(40, 40, dtype=torch.bool)
    # 1,640 sums of squares of two means scatter by about 1/√820, three hundredths, of what is expected.
    chance = 1640 / 16 * (1 / 4000 + 1 / 2000)
    assert moment_error(drawn_alone(drawn), judging(sample), every) < 0.1 * chance


# --- models ------------------------------------------------------------------------------------------------------------


def drifting(n: int = 300, sites: int = 6) -> np.ndarray:
    """A hidden spin that all sites follow: a network of a few steps has not found it."""
    generator = np.random.default_rng(0)
    hidden = generator.choice([-1, 1], (n, 1))
    return np.where(generator.random((n, sites)) < 0.1, -hidden, hidden)


@pytest.mark.parametrize("network", ["masked", "causal"])
def test_wide_data_are_calibrated_where_it_helps(monkeypatch: pytest.MonkeyPatch, network: str, tmp_path: Any) -> None:
    X, fresh = drifting(), drifting(4000)
    monkeypatch.setattr(module, "WIDE", 6)
    made = []
    for calibrate in (None, None, False):
        model = tiny.model(network=network, calibrate=calibrate)
        made.append(model.fit(X, max_steps=3, verbose=False, device="cpu"))
    first, again, without = made
    assert without.calibration_ is None
    assert isinstance(first.conditionals, MomentMatched), first.calibration_
    assert first.calibration_.startswith("spread 0.")
    assert first.summary()["calibration"] == first.calibration_
    np.testing.assert_array_equal(first.log_prob(X), again.log_prob(X))  # by seed
    assert first.log_prob(fresh).mean() > without.log_prob(fresh).mean()
    first.save(tmp_path / "model")
    assert neurise.load(tmp_path / "model", device="cpu").calibration_ == first.calibration_


@pytest.mark.parametrize(
    "params",
    [
        {"members": 2, "architecture__pairwise": True},
        {"network": "sparse"},
        {"network": "masked", "training__validation_fraction": 0.0},
    ],
    ids=str,
)
def test_every_kind_can_be_told_to(params: dict[str, Any]) -> None:
    X, y = drifting(), np.arange(300) % 3
    model = tiny.model(calibrate=True, **params).fit(X, y, max_steps=3, verbose=False, device="cpu")
    assert isinstance(model.conditionals, ClassMatched)
    assert isinstance(model.conditionals.inner, MomentMatched)
    assert model.calibration_.startswith("spread 0.")
    assert ("no complete rows were held back" in model.calibration_) == ("training__validation_fraction" in params)
    assert np.isfinite(model.log_prob(X, y)).all()


@pytest.mark.parametrize(
    "params",
    [
        {"keep_prob": 0.5},
        {"architecture__pairwise": False},
        {"cycles": 2, "architecture__pairwise": True},
        {"network": "masked", "architecture__orders": 2},
        {"network": "masked", "training__validation_fraction": 0.0},
    ],
    ids=str,
)
def test_what_is_not_suited_is_left_alone(monkeypatch: pytest.MonkeyPatch, params: dict[str, Any]) -> None:
    monkeypatch.setattr(module, "WIDE", 3)
    model = tiny.model(**params).fit(tiny.spins(), max_steps=2, verbose=False, device="cpu")
    assert "moment_matched" not in str(model.conditionals_.description())
    held_none = "training__validation_fraction" in params
    assert (model.calibration_ or "") == ("none: no complete rows were held back to choose it by" if held_none else "")


@pytest.mark.parametrize(("name", "most"), [("WIDE", 7), ("MANY_ROWS", 299), ("MOST_COLUMNS", 11)])
def test_narrow_data_and_many_rows_are_left_alone(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(module, "WIDE", 6)
    monkeypatch.setattr(module, name, most)
    model = tiny.model(network="masked").fit(drifting(), max_steps=2, verbose=False, device="cpu")
    assert model.calibration_ is None


def test_rows_with_gaps_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WIDE", 6)
    X = drifting().astype(float)
    X[::7, 2] = np.nan
    model = tiny.model(network="masked").fit(X, max_steps=2, verbose=False, device="cpu")
    assert model.calibration_ is None


def test_a_law_without_drift_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WIDE", 6)
    X = np.random.default_rng(0).choice([-1, 1], (400, 40))  # a network that has learnt nothing is right
    model = tiny.model(architecture__pairwise=True).fit(X, max_steps=1, verbose=False, device="cpu")
    assert model.calibration_.startswith("none: ")
    assert "calibration" in model.summary()


def test_without_time_nothing_is_changed() -> None:
    X, model = fitted(Space(sites=4, states=2))
    x = torch.from_numpy(X).to(torch.uint8)
    jobs, constant = [SimpleNamespace(rows=Rows(x[:40]), held=Rows(x[40:]), objective=None)], torch.full((4,), -1)
    for always in (False, True):
        found = calibration.calibrated(
            model.conditionals, jobs, Rows(x), constant, always=always, seed=0, work=Work(seconds=0.0)
        )
        assert isinstance(found.conditionals, MomentMatched) == always
        assert "no time" in found.report
    assert not found.conditionals.terms.pair.any()  # no site was reached


# --- labels ------------------------------------------------------------------------------------------------------------


@SPACES
def test_gains_of_classes_are_differences_of_log_likelihoods(space: Space) -> None:
    X = np.random.default_rng(0).integers(0, space.states, (80, space.sites))
    y = np.arange(80) % 2
    model = tiny.model(alphabet=list(range(space.states))).fit(X, y, max_steps=5, verbose=False, device="cpu")
    x, labels, change = torch.from_numpy(X).to(torch.uint8), torch.from_numpy(y), random_fit(space)
    terms, generator = ClassTerms(space, 2, 2), torch.Generator().manual_seed(0)
    for parameter in terms.requires_grad_(False).parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator))
    job = SimpleNamespace(rows=Rows(x[:40], labels[:40]), held=Rows(x[40:], labels[40:]), objective=None)
    _, aside = calibration._parted(model.conditionals, [job], Work())
    found = held_gains(aside, [Matched(change, torch.empty(0), terms)])[0]
    own = Rows(x[40:], labels[40:])
    whole = corrected(model.conditionals, change, terms)
    wanted = likelihood.log_prob(whole, own.x, own.y) - likelihood.log_prob(model.conditionals, own.x, own.y)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)


@SPACES
def test_the_error_of_moments_of_classes_is_their_mean(space: Space) -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randint(0, space.states, (n, space.sites), generator=generator) for n in (300, 500))
    first[:150, 0] = first[:150, 1]  # of one class
    drawn, sample = (sample_of(Rows(part.to(torch.uint8)), space.states, CPU) for part in (first, second))
    y, every = (torch.arange(500) % 5 == 0).long(), torch.ones(space.sites, space.sites, dtype=torch.bool)
    terms, wanted = ClassTerms(space, 2, 1), 0.0
    for kind, share in ((0, 0.8), (1, 0.2)):
        own = drawn.part((torch.arange(300) // 150 == kind).float())
        error, expected = calibration._squares(own.features, sample.part((y == kind).float()), every)
        wanted += share * (error - (1 + calibration.CHANCE) * expected)
    assert wanted > 0
    assert moment_error(drawn_alone(drawn, terms), judging(sample, y), every) == pytest.approx(wanted, rel=1e-4)


def of_classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sites that follow the label: four in five rows are of class 0."""
    generator = np.random.default_rng(seed)
    y = (generator.random(n) < 0.2).astype(int)
    hidden = np.where(y == 0, 1, -1)[:, None] * np.array([1, 1, 1, -1, -1, -1, 1, -1])
    return np.where(generator.random((n, 8)) < 0.2, -hidden, hidden), y


def test_many_rows_with_labels_are_calibrated_class_by_class(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(module, "WIDE", 8)
    for where in (module, calibration):
        monkeypatch.setattr(where, "MANY_ROWS", 1000)
    X, y = of_classes(2000, 0)
    model = tiny.model(network="masked")
    assert model.fit(X, max_steps=3, verbose=False, device="cpu").calibration_ is None  # no labels, many rows
    model.fit(X, y, max_steps=3, verbose=False, device="cpu")
    assert isinstance(model.conditionals, ClassMatched), model.calibration_
    without = tiny.model(network="masked", calibrate=False).fit(X, y, max_steps=3, verbose=False, device="cpu")
    fresh = of_classes(4000, 1)
    assert model.log_prob(*fresh).mean() > without.log_prob(*fresh).mean() + 1
    for label in (0, 1):
        wanted, labels = X[y == label].mean(0), np.full(2000, label)
        off, before = (np.abs(one.sample(2000, labels, seed=0).mean(0) - wanted).max() for one in (model, without))
        # Of 400 rows half an error of 1 is left at most, and the noise of 2000 spins is 1/45.
        assert off < 0.5 * before
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.log_prob(X, y), model.log_prob(X, y))
    np.testing.assert_array_equal(again.sample(50, y[:50], seed=0), model.sample(50, y[:50], seed=0))
    assert again.calibration_ == model.calibration_


@pytest.mark.parametrize("classes", [4, 20])
def test_classes_are_matched_in_the_end_if_they_were_judged(monkeypatch: pytest.MonkeyPatch, classes: int) -> None:
    """Of 300 rows 512 are drawn for the comparison, which is enough for 8 classes, and 2048 in the end."""
    genuine, by_class = calibration.match_each, list[bool]()

    def noting(*given: Any, **more: Any) -> Any:
        found = genuine(*given, **more)
        by_class.append(found[0].by_class is not None)
        return found

    monkeypatch.setattr(calibration, "match_each", noting)
    X, y = of_classes(300, 0)[0], np.arange(300) % classes
    model = tiny.model(network="masked", calibrate=True).fit(X, y, max_steps=3, verbose=False, device="cpu")
    assert by_class == [classes == 4] * 2
    assert isinstance(model.conditionals, ClassMatched) == (classes == 4)


def test_models_that_are_fitted_together_are_calibrated_class_by_class() -> None:
    X, y = of_classes(300, 0)
    made = [tiny.model(network="masked", calibrate=True) for _ in range(2)]
    neurise.fit_many(made, [X, X], [y, y], max_steps=3, verbose=False, device="cpu")
    alone = tiny.model(network="masked", calibrate=True).fit(X, y, max_steps=3, verbose=False, device="cpu")
    for model in (*made, alone):
        assert isinstance(model.conditionals, ClassMatched)
        assert np.isfinite(model.log_prob(X, y)).all()


def test_a_run_that_goes_on_is_calibrated_class_by_class(tmp_path: Any) -> None:
    X, y = of_classes(300, 0)
    options: dict[str, Any] = {"max_steps": 20, "verbose": False, "device": "cpu", "checkpoint": tmp_path / "run"}
    model, again = (tiny.model(network="masked", calibrate=True) for _ in range(2))
    model.fit(X, y, **options)
    again.fit(X, y, resume=True, **options)
    assert isinstance(again.conditionals, ClassMatched)
    np.testing.assert_array_equal(again.log_prob(X, y), model.log_prob(X, y))


def test_three_symbols_on_few_sites_have_the_law_of_the_likelihood() -> None:
    """Their features vary in eight directions of twelve. What rounding makes of the others has another value in every form."""
    source = np.random.default_rng(7)
    y = source.choice(2, 800)
    x = source.integers(0, 3, (800, 4))
    for site in (2, 1, 0):
        x[:, site] = np.where(source.random(800) < 0.8 - 0.5 * y, x[:, site + 1], x[:, site])
    model = neurise.NeurISE(calibrate=True, members=2, width=8, steps=20)
    model.fit(x, y, weights=source.integers(0, 4, 800), verbose=False, device="cpu")
    every = oracles.configurations(Space(sites=4, states=3))
    for label in (0, 1):
        found = np.exp(model.log_prob(np.array(every), label))
        np.testing.assert_allclose(found, exact.law(model, y=label).numpy(), rtol=0, atol=1e-6)
