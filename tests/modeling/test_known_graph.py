"""What `NeurISE(graph=pairs)` does where nothing else is asked for: the energy and the networks look at these pairs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

import neurise
from neurise.interactions import Interactions
from neurise.modeling.kinds import WIDE, candidates
from neurise.space import Space

SPACE = Space(sites=4, states=3)  # sites != states
RING = [(0, 1), (1, 2), (2, 3), (0, 3)]


@pytest.fixture(scope="module")
def potts() -> tuple[np.ndarray, torch.Tensor]:
    """Draw 600 rows of a ring of four sites with three states; return them and the law, by enumeration."""
    generator = torch.Generator().manual_seed(0)
    tables = 1.2 * torch.randn(len(RING), 3, 3, generator=generator, dtype=torch.float64).numpy()
    law = Interactions(np.array(RING), tables, np.zeros((4, 3)))
    pmf = law.log_weight(SPACE.configurations()).softmax(0)
    drawn = torch.multinomial(pmf, 600, replacement=True, generator=generator)
    return SPACE.configurations()[drawn].numpy(), pmf


def pairs_of(model: neurise.NeurISE) -> set[tuple[int, int]]:
    """Return the pairs of sites that the energy couples, whether or not held-back rows gave it a share."""
    energy = model._energy
    assert energy is not None
    sites = np.asarray(model.schema_.order)[energy.edges.numpy()]
    return {(min(pair), max(pair)) for pair in sites.tolist()}


def test_the_energy_has_the_pairs_that_are_given_and_no_other(potts: tuple[np.ndarray, torch.Tensor]) -> None:
    rows, pmf = potts
    model = neurise.NeurISE(graph=RING).fit(rows, seed=0, verbose=False)
    assert pairs_of(model) == set(RING)
    # The energy on the graph has 4·2 fields and 4·4 couplings. To leading order the mean error of the law is that of so
    # many parameters, ½ Σ_x μ(x) √(2/π) √(s(x)ᵀ F⁻¹ s(x) / N) ≤ 0.4 √(24/600) = 0.08; twice as much is far off.
    law = neurise.exact.law(model)
    assert float((law - pmf).abs().sum()) / 2 < 0.16
    assert "energy" in model.shares_


def test_a_pair_that_is_not_given_is_left_out_however_strong_it_is(potts: tuple[np.ndarray, torch.Tensor]) -> None:
    model = neurise.NeurISE(graph=RING[:2], order=[2, 0, 3, 1]).fit(potts[0], seed=0, verbose=False)
    assert pairs_of(model) == set(RING[:2])


def test_wide_data_with_a_graph_get_sparse_networks_and_no_race() -> None:
    found = candidates(1000, WIDE, (), ("graph",), gpu=True)
    assert found.kinds == ("sparse",)
    assert "graph" in found.why
    assert candidates(1000, WIDE, ("width=8",), ("graph",), gpu=True).kinds == ("site_mlp",)
    spins = np.where(np.random.default_rng(0).random((300, WIDE)) < 0.1, -1, 1).cumprod(axis=1)
    chain = list(pairwise(range(WIDE)))
    model = neurise.NeurISE(graph=chain).fit(spins, max_steps=2, verbose=False)
    assert list(model.shares_) == ["sparse"]
    assert "graph says which sites it may look at" in str(model.summary())
    looked_at = model.conditionals.clean.looked_at()
    assert int(looked_at.sum()) <= 2 * len(chain)


def test_a_size_of_the_first_network_with_a_graph_says_what_to_name(potts: tuple[np.ndarray, torch.Tensor]) -> None:
    with pytest.raises(ValueError, match=r"network='sparse'.*corrector__clean"):
        neurise.NeurISE(graph=RING, width=8).fit(potts[0], verbose=False)
