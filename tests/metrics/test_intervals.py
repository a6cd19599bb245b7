"""Whether errors are as wide as the spread of new draws, and intervals hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from neurise.metrics import chi2, kde, kl, mmd, total_variation

SITES = 6
TWO = 0.954
"""How often a normal number lies within two standard deviations."""


def random_law(scale: float, seed: int) -> np.ndarray:
    weights = np.exp(scale * np.random.default_rng(seed).normal(size=2**SITES))
    return weights / weights.sum()


def drawn(source: np.random.Generator, law: np.ndarray, n: int) -> np.ndarray:
    places = source.choice(len(law), n, p=law)
    return (places[:, None] >> np.arange(SITES - 1, -1, -1)) & 1


def test_mmd_has_an_error_where_the_laws_are_equal() -> None:
    source = np.random.default_rng(0)
    runs, held, errors = 200, 0, []
    for _ in range(runs):
        x, y = (source.integers(0, 2, (n, 30)) for n in (50, 40))
        found = mmd(x, y, alphabet=[0, 1])
        assert found.error is not None
        errors.append(found.error)
        held += abs(float(found)) <= 2 * found.error
    # The unbiased variance alone is below zero, and the error 0, in a part of the draws.
    assert min(errors) > 0.5 * np.median(errors)
    # Three standard deviations of a share of 200 draws; the law of the statistic is skewed, and holds a little less.
    assert held / runs > TWO - 0.02 - 3 * np.sqrt(TWO * (1 - TWO) / runs)


def test_the_error_of_a_fitted_bandwidth_holds_what_the_fit_adds() -> None:
    source, runs, sites = np.random.default_rng(1), 100, 10
    values, errors = [], []
    for _ in range(runs):
        x, y = ((source.random((n, sites)) < share).astype(int) for n, share in ((100, 0.03), (400, 0.2)))
        found = kde(x, y, alphabet=[0, 1]).log_density
        values.append(float(found))
        errors.append(found.error)
    ratio = np.sqrt(np.mean(np.square(errors))) / np.std(values, ddof=1)
    # A standard deviation from 100 draws is good to 7 %; as if the bandwidth were known, the ratio is 0.55.
    assert 1 - 3 * 0.07 < ratio < 1 + 3 * 0.07


@pytest.mark.parametrize("metric", [kl, chi2])
def test_what_is_corrected_holds_the_truth_and_what_is_not_does_not(metric) -> None:  # type: ignore[no-untyped-def]
    source, runs, n = np.random.default_rng(2), 200, 300
    law, truth = random_law(0.7, 1), random_law(0.7, 1) * random_law(0.25, 2)
    truth /= truth.sum()
    distance = float(metric(truth, law))
    held, plain, values = 0, 0, []
    for _ in range(runs):
        found = metric(drawn(source, truth, n), law, alphabet=[0, 1])
        values.append(found.corrected)
        held += abs(found.corrected - distance) <= 2 * found.error
        plain += abs(float(found) - distance) <= 2 * found.error
    assert held / runs > TWO - 3 * np.sqrt(TWO * (1 - TWO) / runs)
    assert plain / runs < 0.5
    spread = np.std(values, ddof=1)
    # The correction of χ² has no bias; that of the divergence leaves an order of 1/n less, below a third of the spread here.
    allowed = 3 * spread / np.sqrt(runs) + (0 if metric is chi2 else spread / 3)
    assert abs(np.mean(values) - distance) < allowed


def test_a_law_has_no_bias_and_samples_that_are_ruled_out_have_none_to_tell() -> None:
    law = random_law(0.5, 0)
    assert kl(law, law).bias is None
    assert kl(law, law).corrected is None
    sure = np.zeros(2**SITES)
    sure[0] = 1.0
    assert chi2(np.eye(SITES, dtype=int), sure, alphabet=[0, 1]).bias is None


@pytest.mark.parametrize("against", ["law", "rows"])
def test_importances_that_depend_on_the_rows_widen_the_error(against: str) -> None:
    """Rows that are drawn seldom and weigh much lie in two cells of eight, where the reference is above the samples."""
    source, runs, n, sites = np.random.default_rng(3), 300, 400, 3
    rare = np.arange(2**sites) < 2
    target, proposal, other = (np.where(rare, share / 2, (1 - share) / 6) for share in (0.25, 0.02, 0.05))
    digits = np.arange(sites - 1, -1, -1)
    places = source.choice(2**sites, 3000, p=other)
    fixed = other if against == "law" else (places[:, None] >> digits) & 1
    values, errors = [], []
    for _ in range(runs):
        places = source.choice(2**sites, n, p=proposal)
        weights = target[places] / proposal[places]
        found = total_variation(fixed, (places[:, None] >> digits) & 1, reference_weights=weights, alphabet=[0, 1])
        values.append(float(found))
        errors.append(found.error)
    ratio = np.sqrt(np.mean(np.square(errors))) / np.std(values, ddof=1)
    # A standard deviation from 300 draws is good to 4 %. By the effective number of rows the ratio is below 0.8.
    assert 1 - 3 * 0.04 < ratio < 1.3
