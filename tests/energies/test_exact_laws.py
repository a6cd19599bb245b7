"""Families, their sums by elimination and by enumeration, and draws, against explicit loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from chi_square import assert_drawn_from
from family_cases import FAMILIES, configurations, features, law, parameters

from neurise.energies import written_out
from neurise.energies.elimination_order import find_plan
from neurise.energies.exact_laws import Eliminated, exact_laws
from neurise.energies.family import Family
from neurise.energies.solved import ExactLaws
from neurise.energies.written_out import Enumerated
from neurise.rows import Rows
from neurise.space import Space


def eliminated(family: Family) -> ExactLaws:
    plan = find_plan(family.interactions(torch.zeros(family.size, dtype=torch.float64)))
    assert plan is not None
    return Eliminated(family, plan)


def enumerated(family: Family) -> ExactLaws:
    return Enumerated(family, torch.device("cpu"))


WAYS = {"eliminated": eliminated, "enumerated": enumerated}


@pytest.mark.parametrize("name", FAMILIES)
def test_features_are_those_of_the_definition(name: str) -> None:
    family = FAMILIES[name]
    x = torch.tensor(configurations(family.space), dtype=torch.uint8)
    for kind in range(family.kinds):
        expected = [features(family, tuple(row), kind) for row in x.tolist()]
        np.testing.assert_allclose(family.features(x, kind).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FAMILIES)
def test_sums_and_moments_are_exact(name: str, way: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(written_out, "SECOND", 7)  # A and B of a few sites each
    monkeypatch.setattr(written_out, "BLOCK", 9)  # several blocks
    family, theta = FAMILIES[name], parameters(FAMILIES[name])
    laws = WAYS[way](family)
    for kind in range(family.kinds):
        chances, log_z, matrix = law(family, theta, kind)
        solved = laws.solve(theta, kind)
        tolerance = 1e-10 if way == "eliminated" else 1e-5  # entries of the law written out are in float32
        assert solved.log_z == pytest.approx(log_z, abs=tolerance)
        np.testing.assert_allclose(solved.moments.numpy(), chances @ matrix, atol=tolerance)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_law(name: str, way: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(written_out, "SECOND", 7)
    monkeypatch.setattr(written_out, "DRAWN", 5000)
    family, theta = FAMILIES[name], parameters(FAMILIES[name], size=0.4)
    kind = family.kinds - 1
    rows = WAYS[way](family).solve(theta, kind).draw(20_000, np.random.default_rng(0))
    assert (rows.long() < torch.tensor(family.space.digits)).all(), "an impossible value was drawn"
    assert_drawn_from(family.space.index(rows).numpy(), law(family, theta, kind)[0])


@pytest.mark.parametrize("name", FAMILIES)
def test_interactions_are_the_same_law(name: str) -> None:
    family, theta = FAMILIES[name], parameters(FAMILIES[name])
    x = torch.tensor(configurations(family.space), dtype=torch.uint8)
    for kind in range(family.kinds):
        chances, log_z, _ = law(family, theta, kind)
        found = family.interactions(theta, kind).log_weight(x).numpy() - log_z
        np.testing.assert_allclose(found, np.log(chances), atol=1e-10)


def test_means_use_weights_and_labels() -> None:
    family, generator = FAMILIES["labels"], torch.Generator().manual_seed(0)
    x = family.space.uniform(40, generator=generator)
    y = torch.randint(3, (40,), generator=generator)
    weights = torch.rand(40, generator=generator, dtype=torch.float64)
    expected = sum(
        w * np.array(features(family, tuple(row), kind))
        for w, row, kind in zip(weights.tolist(), x.tolist(), y.tolist(), strict=True)
    ) / float(weights.sum())
    np.testing.assert_allclose(family.mean(Rows(x, y, weights)).numpy(), expected, atol=1e-12)


def test_covariance_is_that_of_the_features() -> None:
    family, generator = FAMILIES["own alphabets and labels"], torch.Generator().manual_seed(0)
    samples = [family.space.uniform(50 + kind, generator=generator) for kind in range(2)]
    shares = torch.tensor([0.3, 0.7], dtype=torch.float64)
    expected = sum(
        share * np.cov(family.features(x, kind).numpy().T, bias=True)
        for kind, (share, x) in enumerate(zip(shares.tolist(), samples, strict=True))
    )
    np.testing.assert_allclose(family.covariance(samples, shares).numpy(), expected, atol=1e-5)


def test_parameters_are_carried_from_one_graph_to_another() -> None:
    family = FAMILIES["own alphabets"]
    theta = parameters(family)
    fewer, places = family.restricted(np.array([True, False, True, True]))
    assert torch.equal(family.carried(theta, fewer), theta[places])
    back = fewer.carried(theta[places], family)
    assert torch.equal(back[places], theta[places])
    assert (back[~places] == 0).all()


def test_the_cheaper_way_is_taken() -> None:
    chain = np.stack([np.arange(29), np.arange(1, 30)], axis=1)
    assert isinstance(exact_laws(Family(Space(30, 2), chain)), Eliminated)
    assert isinstance(exact_laws(Family.dense(Space(12, 2))), Enumerated)
    assert exact_laws(Family.dense(Space(30, 2))) is None
    assert exact_laws(Family(Space(9, 20), np.array([[i, i + 1] for i in range(8)]))) is None  # 8 · 19² couplings
