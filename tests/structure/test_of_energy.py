"""Couplings, fields and errors of an energy against the truth that the rows were drawn from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import oracles
import pytest
import torch

from neurise import NeurISE, datasets
from neurise.interactions import Interactions
from neurise.modeling.groups import Architecture
from neurise.space import Space
from neurise.structure.gauge import zero_sum

SMALL: dict[str, Any] = {"width": 2, "depth": 1, "members": 1, "steps": 2, "architecture": Architecture(energy=True)}
EDGES = np.array([[0, 3], [1, 3], [1, 2], [0, 2]])
REPEATS, ROWS = 8, 1500


def potts(states: int) -> Interactions:
    """A ring of four sites that stand in no order."""
    rng = np.random.default_rng(5)
    tables = zero_sum(rng.normal(size=(len(EDGES), states, states)))
    fields = rng.normal(scale=0.5, size=(4, states))
    return Interactions(EDGES, tables, fields - fields.mean(1, keepdims=True))


def rows_of(law: Interactions, seed: int) -> np.ndarray:
    weight = np.exp(law.log_weight(law.space.configurations()).numpy())
    return oracles.draw(law.space, weight / weight.sum(), ROWS, seed)


@pytest.mark.slow
@pytest.mark.parametrize("states", [2, 3])
def test_errors_are_those_of_repeated_samples(states: int) -> None:
    law = potts(states)
    truth = {tuple(pair): table for pair, table in zip(law.edges.tolist(), law.tables, strict=True)}
    away, fields_away = [], []
    for seed in range(REPEATS):
        model = NeurISE(order=[2, 0, 3, 1], **SMALL).fit(rows_of(law, seed), seed=seed, verbose=False)
        found = model.structure_
        assert set(map(tuple, found.edges.tolist())) == set(truth)
        assert found.errors_by == "Fisher information"
        for (i, j), table in truth.items():
            scale = 2.0 if states == 2 else 1.0
            away.append((found.scores[i, j] - np.linalg.norm(table) / scale) / found.errors[i, j])
            np.testing.assert_allclose(found.tables[i, j], found.tables[j, i].T)
            assert np.abs(found.tables[i, j] - table).max() < 6 * scale * found.errors[i, j]
        own = law.fields[:, 1] if states == 2 else law.fields
        fields_away.append((found.fields - own) / found.field_errors)
    # Means of squares of n standard normal numbers that depend on each other a little: 1, give or take 4 √(2/n) and a share
    # for what is not independent, twice as many numbers as there are free ones.
    for numbers in (np.array(away), np.array(fields_away).ravel()):
        assert abs((numbers**2).mean() - 1) < 4 * np.sqrt(2 / (len(numbers) / 2))


def test_a_model_without_energy_says_how_to_ask_it() -> None:
    x = torch.randint(2, (40, 3), generator=torch.Generator().manual_seed(0)).numpy()
    model = NeurISE(**{**SMALL, "architecture": Architecture()})
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = model.structure_
    with pytest.raises(AttributeError, match=r"structure\.recover"):
        _ = model.fit(x, verbose=False).structure_


def test_labels_have_fields_of_their_own_whose_mean_is_given() -> None:
    law = potts(2)
    y = np.arange(ROWS) % 3 == 0
    x = np.where(y[:, None], rows_of(law, 0), 1 - rows_of(law, 1))
    found = NeurISE(**SMALL).fit(x, y, verbose=False).structure_
    assert np.isfinite(found.fields).all()
    assert found.fields.shape == (4,)
    assert Space(4, 2) == law.space


def test_an_energy_without_a_share_is_not_the_structure_of_the_model() -> None:
    """Counts alone answer for three measured qubits: couplings of the energy beside them would be those of another law."""
    data = datasets.ghz(3)
    model = NeurISE().fit(data.sample(2000, seed=0), seed=0, verbose=False)
    assert model.shares_ == {"counts": 1.0}
    with pytest.raises(AttributeError, match="gave the energy of this NeurISE no share"):
        _ = model.structure_
    assert not hasattr(NeurISE(), "structure_")
    with pytest.warns(UserWarning, match=r"sweeps=2 draw from the energy, to which held-back rows gave no share"):
        model.sample(5, seed=0, sweeps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.sample(5, seed=0)
        model.sample(5, seed=0, sweeps=0)
