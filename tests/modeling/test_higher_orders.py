"""Products of three and four spins from rows to a model: what is chosen, told, saved and drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neurise
from neurise import NeurISE
from neurise.modeling.groups import Architecture

TRUTH = neurise.datasets.hypergraph(7, seed=1, threes=3, fours=2, J=0.8)
ORDER = [3, 0, 6, 2, 5, 1, 4]


@pytest.fixture(scope="module")
def model() -> NeurISE:
    small = NeurISE(order=ORDER, width=2, depth=1, members=1, steps=2, architecture=Architecture(energy=True))
    return small.fit(TRUTH.sample(1500, seed=0), seed=0, verbose=False)


def test_three_body_terms_are_found_where_the_user_has_them(model: NeurISE) -> None:
    truth = {
        tuple(sorted(sites)): strength
        for sites, strength in zip(TRUTH.info["terms"], TRUTH.info["strengths"], strict=True)
    }
    products = model.structure_.products
    assert {product.sites for product in products} == set(truth)
    for product in products:
        assert abs(product.strength - truth[product.sites]) < 5 * product.error
    assert model.structure_.to_dict()["products"][0]["sites"] == products[0].sites
    law = neurise.exact.law(model).numpy().ravel()
    assert 0.5 * np.abs(law - TRUTH.pmf).sum() < 1.5 * 0.4 * np.sqrt((7 + len(truth)) / 1500)


def test_the_summary_says_what_was_chosen(model: NeurISE) -> None:
    facts = model.summary()
    assert "3 products of three sites and 2 of four" in facts["energy"]
    assert facts["products"].count("±") == 5


def test_saved_and_loaded_it_is_the_same(model: NeurISE, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    x = TRUTH.sample(20, seed=3)
    np.testing.assert_array_equal(again.log_prob(x), model.log_prob(x))
    np.testing.assert_array_equal(again.sample(20, seed=1, sweeps=1), model.sample(20, seed=1, sweeps=1))
    assert again.structure_.products == model.structure_.products
