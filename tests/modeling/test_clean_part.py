"""The data's own conditionals beside networks of rows: learnt, swept with, saved; and how many sweeps are chosen."""

from pathlib import Path

import numpy as np
import pytest
import torch

import neurise
from neurise.chain_law import conditional
from neurise.modeling.clean_part import fewest
from neurise.space import Space

SPACE = Space(4, 3)
PAIRS = [(0, 2), (2, 1), (1, 3)]


def rows_and_law(n: int = 8000) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of a chain of four sites, out of order, each of which leans to the symbol of its neighbours."""
    x = SPACE.configurations().numpy()
    law = np.exp(sum(1.2 * (x[:, i] == x[:, j]) for i, j in PAIRS) + 0.3 * x[:, 0])
    law /= law.sum()
    return x[np.random.default_rng(0).choice(len(x), n, p=law)], law


@pytest.mark.parametrize("network", ["sparse", "masked", "causal"])
@pytest.mark.parametrize("graph", [None, PAIRS])
def test_they_are_those_of_the_data(network: str, graph: list[tuple[int, int]] | None, tmp_path: Path) -> None:
    """The chain is hardly trained; the conditionals that sweeps draw from are right, and so is the law after many sweeps."""
    x, law = rows_and_law()
    model = neurise.NeurISE(network=network, graph=graph, corrector=neurise.Corrector(clean=0.25), width=8)
    model.fit(x, max_steps=2, verbose=False)
    for site in range(4):
        exact = conditional(law, SPACE, site).numpy()  # (before, states, after)
        wanted = np.moveaxis(exact, 1, 2).reshape(-1, 3)
        every = SPACE.configurations().numpy()
        contexts = every[every[:, site] == 0]
        # Terms of up to two neighbours: five standard errors of 1/sqrt(7200 · 0.1), half of which a probability moves at most.
        np.testing.assert_allclose(model.conditional(contexts, site), wanted, atol=0.09)
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    assert again.sweeps_ == model.sweeps_
    np.testing.assert_array_equal(again.sample(20, seed=1, sweeps=3), model.sample(20, seed=1, sweeps=3))
    before, after = (float(np.abs(neurise.exact.law(model, sweeps=k).numpy() - law).sum()) / 2 for k in (0, 30))
    assert after < 0.05
    if network != "sparse":  # which knows the linear part without training
        assert model.sweeps_ >= 1
        assert float(np.abs(neurise.exact.law(model).numpy() - law).sum()) / 2 < before / 2


def test_labels_weights_and_constant_sites() -> None:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 600)
    x = np.stack([generator.random(600) < np.where(y, 0.8, 0.3), np.ones(600), generator.random(600) < 0.5], axis=1)
    x[:, 2] = np.where(generator.random(600) < 0.9, x[:, 0], x[:, 2])
    model = neurise.NeurISE(network="sparse", corrector=neurise.Corrector(clean=0.5, sweeps=2))
    model.fit(x.astype(int), y, weights=generator.integers(1, 4, 600), max_steps=20, verbose=False)
    drawn = model.sample(500, 1, seed=0)
    assert (drawn[:, 1] == 1).all()
    assert abs(drawn[:, 0].mean() - 0.8) < 5 * np.sqrt(0.16 / 500) + 5 * np.sqrt(0.16 / 300)
    assert float(neurise.exact.law(model, y=0).sum()) == pytest.approx(1, abs=1e-9)


def test_on_the_way_there_are_none() -> None:
    x, _ = rows_and_law(500)
    seen = list[bool]()
    model = neurise.NeurISE(network="sparse", corrector=neurise.Corrector(clean=0.25))
    model.fit(x, max_steps=20, verbose=False, callback=lambda step, seconds, losses, own: seen.append(own.knows_clean))
    assert model.knows_clean
    assert seen
    assert not any(seen)


def test_graph_needs_a_network_that_takes_it() -> None:
    x, _ = rows_and_law(100)
    with pytest.raises(ValueError, match="network='masked'"):
        neurise.NeurISE(network="masked", graph=PAIRS).fit(x, max_steps=1, verbose=False)
    model = neurise.NeurISE(network="sparse", graph=PAIRS, order=[3, 0, 1, 2]).fit(x, max_steps=1, verbose=False)
    # Noised in the order 3, 0, 1, 2: given those after it, each depends on its neighbours and on what earlier ones connect.
    allowed = {(3, 1), (0, 2), (1, 2)}
    order = [3, 0, 1, 2]
    found = {(order[u], order[w]) for u, w in model.conditionals.looked_at().nonzero().tolist()}
    assert found <= allowed


@pytest.mark.parametrize(
    ("energies", "pairs", "best"),
    [
        ([700, 500, 300, 200], [1.5, 1.4, 1.3, 1.2], 3),
        ([700, 500, 300, 200], [1.5, 1.4, 1.8, 2.5], 1),  # what makes correlations worse hurts
        ([1, 2, 3, 3.5], [1.02, 0.99, 0.98, 1.0], 0),  # all within chance: the fewest
        ([700, 30, 3, 2], [1.5, 1.2, 1.0, 0.99], 2),
        ([1, 90, 900], [0.9, 5, 9], 0),
    ],
)
def test_the_fewest_sweeps_that_are_as_good_as_any(energies: list[float], pairs: list[float], best: int) -> None:
    assert fewest(energies, pairs) == best


def test_columns_with_alphabets_of_their_own_are_swept_within_them() -> None:
    generator = np.random.default_rng(0)
    first = generator.integers(0, 4, 200)
    table = {"kind": np.array(list("wxyz"))[first].tolist(), "even": np.where(first % 2, "no", "yes").tolist()}
    pandas = pytest.importorskip("pandas")
    model = neurise.NeurISE(network="sparse", corrector=neurise.Corrector(clean=0.25, sweeps=3))
    drawn = model.fit(pandas.DataFrame(table), max_steps=2, verbose=False).sample(200, seed=0)
    assert set(drawn["even"]) == {"yes", "no"}
    assert float(neurise.exact.law(model, sweeps=2).sum()) == pytest.approx(1, abs=1e-9)


def wide(n: int = 300, sites: int = 200) -> np.ndarray:
    """Draw a chain of spins, each of which is its neighbour nine times in ten."""
    generator = np.random.default_rng(0)
    flips = np.where(generator.random((n, sites)) < 0.1, -1, 1)
    flips[:, 0] = generator.choice([-1, 1], n)
    return flips.cumprod(axis=1)


def test_wide_sparse_networks_learn_them_unasked(tmp_path: Path) -> None:
    x = wide()
    model = neurise.NeurISE(network="sparse").fit(x, max_steps=3, verbose=False)
    assert model.can_sweep
    assert not model.knows_clean  # model.conditional is that of the likelihood
    part = model.conditionals.clean
    near = part.network.pair.view(200, 2, 200, 2).abs().amax((1, 3))
    own = torch.arange(1, 199)
    assert float(near[own, own - 1].min()) > 0.2 * float(near.max())
    assert float(near[own, own + 1].min()) > 0.2 * float(near.max())
    swept = model.sample(4000, seed=0, sweeps=5)
    agree = (swept[:, 1:] == swept[:, :-1]).mean()
    # Five standard errors of the share of agreeing neighbours in the rows.
    assert agree == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / x[:, 1:].size) + 0.01)
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    np.testing.assert_array_equal(again.sample(20, seed=1), model.sample(20, seed=1))
    np.testing.assert_allclose(again.log_prob(x[:5]), model.log_prob(x[:5]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", ["no sweeps", "narrow", "labels", "gaps", "another network"])
def test_elsewhere_they_are_not_learnt(case: str) -> None:
    x, y, network, sweeps = wide().astype(float), None, "sparse", None
    if case == "no sweeps":
        sweeps = 0
    elif case == "narrow":
        x = x[:, :199]
    elif case == "labels":
        y = np.arange(len(x)) % 2
    elif case == "gaps":
        x[0, 0] = np.nan
    else:
        network = "masked"
    model = neurise.NeurISE(network=network, width=8, corrector=neurise.Corrector(sweeps=sweeps))
    model.fit(x, y, max_steps=2, verbose=False)
    assert not model.can_sweep
    assert model.sweeps_ == 0


def test_with_a_graph_wide_ones_look_at_neighbours_alone() -> None:
    pairs = np.stack([np.arange(199), np.arange(1, 200)], axis=1)
    model = neurise.NeurISE(network="sparse", graph=pairs).fit(wide(), max_steps=2, verbose=False)
    looked_at = model.conditionals.clean.looked_at()
    assert int(looked_at.sum()) <= 2 * len(pairs)
    assert bool(looked_at[pairs[:, 0], pairs[:, 1]].all())
