"""A calibrated model generates the means and correlations of the data it has learnt from."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from neurise.models._matching import drawn_evenly, match
from neurise.models._pairwise.terms import adjacency
from neurise.networks._committee import Committee
from torch import Tensor, nn

import neurise
from neurise import exact, likelihood
from neurise.conditionals import NetworkConditionals
from neurise.models.neurise import NeurISE
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Rows
from neurise.space import Space

SPACES = pytest.mark.parametrize("space", [Space(sites=4, states=2), Space(sites=3, states=4)], ids=["bits", "four"])


def untaught(space: Space, *, members: int = 1, classes: int = 0, clean: bool = False, constant: int = -1) -> Any:
    """Conditionals that know nothing of any data: all weights are drawn, and every pair of sites has terms."""
    make = partial(
        SiteMLP,
        space,
        space.sites,
        width=6,
        depth=2,
        heads="site",
        residual=True,
        skip=True,
        clean=clean,
        classes=classes,
    )
    network = make() if members == 1 else Committee(make, members)
    generator = torch.Generator().manual_seed(2)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    fixed = torch.full((space.sites,), -1)
    fixed[1] = constant
    network.requires_grad_(False)
    if clean:  # step 0 is both
        own = network.members if isinstance(network, Committee) else dict(network.named_parameters())
        own["clean_pair"].select(-3, 0).copy_(own["pair"].select(-3, 0))
        own["clean_pair_bias"].select(-2, 0).copy_(own["pair_bias"].select(-2, 0))
    return NetworkConditionals(network, RoundRobin(space, 0.0, 1), fixed, hide_noised=True, width=6, unseen=0.0)


def data(space: Space, n: int = 500, seed: int = 0) -> Tensor:
    return torch.from_numpy(oracles.draw(space, oracles.random_law(space, seed), n, seed)).to(torch.uint8)


def law_of(conditionals: Any, y: Tensor | None = None) -> Tensor:
    """The probability of every configuration, by the likelihood."""
    x = torch.tensor(oracles.configurations(conditionals.noise.space), dtype=torch.uint8)
    labels = None if y is None else y.expand(len(x))
    return likelihood.log_prob(conditionals, x, labels).exp()


def pairs(weight: Tensor, x: Tensor, states: int) -> Tensor:
    """Probabilities of every pair of tokens at every pair of sites, and on the diagonal of single ones."""
    hot = (x[..., None] == torch.arange(states)).double().flatten(1)
    return hot.T @ (weight[:, None] * hot)


def off(conditionals: Any, rows: Rows, weight: Tensor | None = None) -> float:
    """The largest error of a pair's probability."""
    space = conditionals.noise.space
    x = torch.tensor(oracles.configurations(space))
    counts = torch.ones(len(rows)).double() if rows.weights is None else rows.weights
    model = law_of(conditionals) if weight is None else weight
    return float((pairs(model, x, space.states) - pairs(counts / counts.sum(), rows.x, space.states)).abs().max())


def matched(conditionals: Any, rows: Rows, **more: Any) -> None:
    match(conditionals, rows, generator=torch.Generator().manual_seed(1), **{"draws": 2**15, "shrink": 1e-6, **more})


TOLERANCE = 5 * 0.5 / 2**7.5
"""Five standard deviations of a share of 2^15 independent rows at most; those drawn are spread more evenly."""


@SPACES
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("directions", [0, 3])
def test_pairs_have_the_probabilities_of_the_data(space: Space, members: int, directions: int) -> None:
    rows, conditionals = Rows(data(space)), untaught(space, members=members)
    assert off(conditionals, rows) > 5 * TOLERANCE
    matched(conditionals, rows, directions=directions)
    assert off(conditionals, rows) < TOLERANCE
    assert float(law_of(conditionals).sum()) == pytest.approx(1, abs=1e-5)


@SPACES
def test_weights_of_rows_count(space: Space) -> None:
    x = data(space)
    rows, conditionals = Rows(x, None, 1.0 + torch.arange(len(x)).double() % 4), untaught(space)
    matched(conditionals, rows)
    assert off(conditionals, rows) < TOLERANCE


def test_labels_are_drawn_as_the_data_have_them() -> None:
    space = Space(sites=4, states=2)
    x = data(space)
    y = (x[:, 0] + x[:, 2] > 0).long()
    rows, conditionals = Rows(x, y), untaught(space, classes=2)
    matched(conditionals, rows)
    share = y.double().mean()
    both = (1 - share) * law_of(conditionals, torch.tensor(0)) + share * law_of(conditionals, torch.tensor(1))
    assert off(conditionals, rows, both) < TOLERANCE


@pytest.mark.parametrize("members", [1, 2])
def test_the_first_step_stays_the_clean_conditional_of_its_site(members: int) -> None:
    space = Space(sites=4, states=2)
    rows, conditionals = Rows(data(space)), untaught(space, clean=True, members=members)
    network = conditionals.network
    own = network.members if members > 1 else dict(network.named_parameters())
    before = {name: tensor.clone() for name, tensor in own.items() if "clean" in name}
    matched(conditionals, rows)
    assert off(conditionals, rows) < TOLERANCE  # the likelihood asks the clean terms at t = 0, the chain the others
    torch.testing.assert_close(own["clean_pair"].select(-3, 0), own["pair"].select(-3, 0))
    for name, place in (("clean_pair", -3), ("clean_pair_bias", -2)):
        rest = torch.arange(1, space.sites)
        assert torch.equal(own[name].index_select(place, rest), before[name].index_select(place, rest))


def test_a_constant_site_is_left_as_it_is() -> None:
    space = Space(sites=4, states=2)
    x = data(space)
    x[:, 1] = 1
    rows, conditionals = Rows(x), untaught(space, constant=1)
    matched(conditionals, rows)
    assert off(conditionals, rows) < TOLERANCE
    assert float(conditionals.network.pair.abs().max()) < 1e3


def test_what_is_kept_back_is_the_penalty_times_the_change() -> None:
    space = Space(sites=4, states=2)
    rows = Rows(data(space))
    errors = []
    for shrink in (1e-6, 1e-1, 10.0):
        conditionals = untaught(space)
        matched(conditionals, rows, shrink=shrink)
        errors.append(off(conditionals, rows))
    assert errors == sorted(errors)
    assert errors[2] > 5 * TOLERANCE


def test_even_draws_follow_the_law_and_are_even() -> None:
    n = 4096
    logits = torch.linspace(-3, 3, n)[torch.randperm(n, generator=torch.Generator().manual_seed(0)), None].double()
    token = drawn_evenly(logits, torch.Generator().manual_seed(0)).double()
    wanted = torch.sigmoid(logits[:, 0])
    for low, high in ((-3, 3), (-3, -1), (0, 2)):
        here = (logits[:, 0] >= low) & (logits[:, 0] < high)
        # Independent draws would be off by about √n/2 of 4096: 32. Golden levels are off by a few.
        assert abs(float((token - wanted)[here].sum())) < 6
    rates = torch.stack(
        [drawn_evenly(logits[:64], torch.Generator().manual_seed(s)).double() for s in range(4000)]
    ).mean(0)
    assert float((rates - wanted[:64]).abs().max()) < 5 * 0.5 / 4000**0.5  # each row by itself


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("members", [1, 2])
def test_a_model_is_calibrated_when_it_was_trained(members: int, many: bool) -> None:
    x = tiny.spins(n=200, sites=4)
    made = [NeurISE(calibrate=calibrate, members=members, skip=True, steps=30, width=8) for calibrate in (False, True)]
    for model in made:
        if many:
            neurise.fit_many([model, NeurISE(**model.get_params())], [x, x], verbose=False, device="cpu")
        else:
            model.fit(x, verbose=False, device="cpu")
    spins = 2.0 * np.array(oracles.configurations(Space(sites=4, states=2))) - 1
    errors = []
    for model in made:
        law = exact.law(model).double().numpy().ravel()
        errors.append(np.abs((spins.T * law) @ spins - x.T.astype(float) @ x / len(x)).max())
    assert errors[1] < 0.02 < errors[0]


def test_it_is_saved_with_the_model(tmp_path: Any) -> None:
    x = tiny.spins(n=100, sites=4)
    graph = np.array([[0, 1], [2, 3]])
    model = NeurISE(calibrate=True, graph=graph, clean=0.25, steps=5, width=8).fit(x, verbose=False, device="cpu")
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.log_prob(x), model.log_prob(x))
    assert again.get_params()["graph"] == graph.tolist()


@pytest.mark.parametrize(
    "wrong", [{"keep_prob": 0.5}, {"hide_noised": False}, {"skip": False}, {"network": "local_mlp"}]
)
def test_what_cannot_be_calibrated_says_why(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="calibrate needs the pairwise terms"):
        NeurISE(calibrate=True, heads="shared", residual=False, **wrong).fit(tiny.spins(), verbose=False, device="cpu")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([[0, 3]], "pair \\[0, 3\\], but the sites are 0 … 2"),
        ([0, 1], "pairs of sites"),
        ([[0.5, 1.0]], "whole numbers"),
    ],
)
def test_a_wrong_graph_says_why(graph: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeurISE(graph=graph).fit(tiny.spins(), verbose=False, device="cpu")


@pytest.mark.parametrize("wrong", [{"skip": False, "clean": 0.25}, {"clean": 0.0}, {"keep_prob": 0.5, "clean": 0.25}])
def test_a_graph_that_would_do_nothing_says_so(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"graph (needs the pairwise terms|is for the conditionals)"):
        NeurISE(graph=[[0, 1]], **wrong).fit(tiny.spins(), verbose=False, device="cpu")


def test_of_two_kinds_the_one_with_pairwise_terms_looks_at_the_graph() -> None:
    model = NeurISE(graph=[[0, 2]], clean=0.25, members=2, steps=5, width=8).fit(
        tiny.spins(), verbose=False, device="cpu"
    )
    pair = model.objective_.network.members["clean_pair"].view(2, 3, 2, 3, 2).abs().amax((2, 4))
    assert torch.nonzero(pair).tolist() == [[0, 0, 2], [0, 2, 0]]


def test_a_graph_follows_the_order_of_the_sites() -> None:
    near = adjacency([[0, 1]], order=(2, 0, 1))  # site 0 is at place 1, site 1 at place 2
    assert torch.nonzero(near).tolist() == [[1, 2], [2, 1]]


def test_sweeps_look_at_the_graph_alone() -> None:
    model = NeurISE(graph=[[0, 2]], order=[1, 2, 0], clean=0.25, skip=True, members=1, steps=5, width=8)
    model.fit(tiny.spins(n=100), verbose=False, device="cpu")
    pair = model.objective_.network.clean_pair.view(3, 2, 3, 2).abs().amax((1, 3))
    assert torch.nonzero(pair).tolist() == [[1, 2], [2, 1]]
