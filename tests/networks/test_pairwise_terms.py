"""Pairwise terms as logits, sums of networks, and what a walk makes of a network's plan."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from neurise.conditionals.base import Frame
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.base import SiteNetwork
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space
from neurise.walks import BLOCK, Planned, Recomputed

SPACES = {"p=2": Space(sites=5, states=2), "p=4": Space(sites=3, states=4)}
spaces = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def stirred(network: Any, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.double().parameters():
        nn.init.normal_(parameter, generator=generator)
    return network


def examples(space: Space, steps: int, n: int = 40) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Every site at all times, also at time 0, with some sites hidden."""
    generator = torch.Generator().manual_seed(1)
    u = torch.arange(n) % space.sites
    t = torch.where(torch.arange(n) % 3 == 0, 0, torch.randint(steps, (n,), generator=generator))
    return t, u, space.uniform(n, generator=generator), torch.rand(n, space.sites, generator=generator) < 0.3


@spaces
@pytest.mark.parametrize("clean", [False, True])
@torch.no_grad()
def test_the_logits_are_sums_over_the_visible_tokens(space: Space, clean: bool) -> None:
    terms = stirred(PairwiseTerms(space, 2 * space.sites, clean=clean))
    t, u, x, hidden = examples(space, 2 * space.sites)
    found = terms(t, u, x, hidden)
    some = t == 0
    assert some.any()
    assert not some.all()
    for row in range(len(x)):
        at_zero = clean and int(t[row]) == 0
        pair, bias = (terms.clean_pair, terms.clean_bias) if at_zero else (terms.pair, terms.bias)
        for a in range(space.states):
            expected = float(bias[u[row], a])
            for i in range(space.sites):
                if i != int(u[row]) and not bool(hidden[row, i]):
                    expected += float(pair[u[row], a, space.states * i + int(x[row, i])])
            assert float(found[row, a]) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        # One step for a whole batch takes another way through the tables.
        one = terms(t[row : row + 1], u[row : row + 1], x, hidden[row : row + 1])
        torch.testing.assert_close(one[row], found[row], **CLOSE)


@spaces
def test_terms_without_clean_ones_have_none(space: Space) -> None:
    assert [name for name, _ in PairwiseTerms(space, 4).named_parameters()] == ["pair", "bias"]
    names = [name for name, _ in PairwiseTerms(space, 4, clean=True).named_parameters()]
    assert names == ["pair", "bias", "clean_pair", "clean_bias"]


@spaces
def test_a_sum_adds_the_logits_of_its_parts(space: Space) -> None:
    steps = 2 * space.sites
    parts = [
        stirred(PairwiseTerms(space, steps, classes=2, clean=True)),
        stirred(SiteMLP(space, steps, width=4, depth=1, classes=2), 1),
        stirred(SiteMLP(space, steps, width=3, depth=2, classes=2, heads="site"), 2),
    ]
    whole, shown = Sum(parts), (*examples(space, steps), torch.arange(40) % 2)
    torch.testing.assert_close(whole(*shown), parts[0](*shown) + parts[1](*shown) + parts[2](*shown), **CLOSE)
    assert (whole.width, whole.depth, whole.classes, whole.num_steps) == (7, 2, 2, steps)


# --- plans -----------------------------------------------------------------------------------------------------------

CHAINS: dict[str, dict[str, Any]] = {
    "hard, hidden": {"keep_prob": 0.0, "hide_noised": True},
    "hard, hidden, two cycles": {"keep_prob": 0.0, "hide_noised": True, "cycles": 2},
    "hard, unhidden": {"keep_prob": 0.0, "hide_noised": False, "cycles": 2},
    "soft": {"keep_prob": 0.4, "hide_noised": True, "cycles": 3},
    "soft, unhidden": {"keep_prob": 0.4, "hide_noised": False},
}
chains = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
NETWORKS: dict[str, Callable[..., SiteNetwork]] = {
    "site_mlp": lambda space, steps, **more: SiteMLP(space, steps, width=6, depth=1, **more),
    "site_mlp, heads and residual": lambda space, steps, **more: SiteMLP(
        space, steps, width=6, depth=3, heads="site", residual=True, **more
    ),
    "pairwise_terms": lambda space, steps, **more: PairwiseTerms(space, steps, **more),
    "pairwise_terms, clean": lambda space, steps, **more: PairwiseTerms(space, steps, clean=True, **more),
    "sum": lambda space, steps, **more: Sum(
        [
            PairwiseTerms(space, steps, clean=True, **more),
            SiteMLP(space, steps, width=4, depth=2, heads="site", **more),
            SiteMLP(space, steps, width=3, depth=1, **more),
        ]
    ),
}
ROWS = 9


def answers(
    space: Space,
    make: Callable[..., SiteNetwork],
    *,
    keep_prob: float,
    hide_noised: bool,
    cycles: int = 1,
    classes: int = 0,
    ignored: tuple[int, ...] = (),
) -> NetworkConditionals:
    noise = RoundRobin(space, keep_prob, cycles)
    constant = torch.full((space.sites,), -1)
    constant[list(ignored)] = 1
    network = stirred(make(space, noise.num_steps, classes=classes))
    return NetworkConditionals(network, Frame(noise, classes, constant), hide_noised=hide_noised)


@torch.no_grad()
def assert_same_walks(
    own: NetworkConditionals, cycle: int, *, sweep: bool, top: int | None = None, labels: int = 0
) -> None:
    """Walk from the last site, or from ``top`` − 1, to the first with both forms, and change every site on the way."""
    space, generator = own.noise.space, torch.Generator().manual_seed(3)
    x = space.uniform(ROWS, generator=generator).T.contiguous()
    y = torch.arange(ROWS) % labels if labels else None
    number = torch.tensor([cycle])
    view = own.view(sweep=sweep)
    assert view is not None
    planned = own.walk(x, y, number if view.cycles > 1 else 0 * number, top=top, sweep=sweep)
    sites = torch.arange(space.sites)
    plain = Recomputed(own, 0 * sites if sweep else cycle * space.sites + sites, x, y)
    assert isinstance(planned, Planned if own.plan(view) is not None else Recomputed)
    outputs = 1 if space.states == 2 else space.states
    seen = []
    for u in reversed(range(space.sites if top is None else top)):
        fast, slow = planned.logits(u), plain.logits(u)
        assert fast.shape == (ROWS, outputs)
        if outputs > 1:  # logits have a constant of their own
            fast, slow = fast.log_softmax(-1), slow.log_softmax(-1)
        torch.testing.assert_close(fast, slow, rtol=0, atol=1e-10)
        seen.append(slow)
        token = torch.randint(space.states, (ROWS,), generator=generator, dtype=torch.uint8)
        planned.put(u, token)
        plain.put(u, token)
    assert len(seen) == 1 or any(
        not torch.allclose(*pair) for pair in itertools.pairwise(seen)
    )  # or nothing was tested


@spaces
@chains
@pytest.mark.parametrize("name", NETWORKS)
def test_a_plan_gives_the_logits_of_the_network_in_every_cycle_and_in_a_sweep(
    space: Space, chain: dict[str, Any], name: str
) -> None:
    own = answers(space, NETWORKS[name], **chain)
    for cycle in range(own.noise.cycles):
        if own.view(sweep=False).cycles > cycle:  # type: ignore[union-attr]
            assert_same_walks(own, cycle, sweep=False)
    assert_same_walks(own, 0, sweep=True)


@spaces
@chains
@pytest.mark.parametrize("name", NETWORKS)
def test_a_plan_knows_labels_and_ignored_sites(space: Space, chain: dict[str, Any], name: str) -> None:
    own = answers(space, NETWORKS[name], **chain, classes=3, ignored=(1,))
    for sweep in (False, True):
        assert_same_walks(own, 0, sweep=sweep, labels=3)


@spaces
@chains
@pytest.mark.parametrize("name", NETWORKS)
def test_a_walk_may_begin_below_the_last_site(space: Space, chain: dict[str, Any], name: str) -> None:
    """What lies at or above the top holds data; where noise is hard, such a cycle is the last, and it is seen."""
    own = answers(space, NETWORKS[name], **chain)
    for top in range(1, space.sites):
        assert_same_walks(own, 0, sweep=False, top=top)


@pytest.mark.parametrize("states", [2, 4])
@pytest.mark.parametrize("keep_prob", [0.0, 0.4])
def test_pairwise_terms_of_more_sites_than_a_block(states: int, keep_prob: float) -> None:
    space = Space(sites=BLOCK + 7, states=states)
    own = answers(space, NETWORKS["sum"], keep_prob=keep_prob, hide_noised=True)
    for top in (None, BLOCK + 3, BLOCK, 5):
        assert_same_walks(own, 0, sweep=False, top=top)
    assert_same_walks(own, 0, sweep=True)


@spaces
@chains
@pytest.mark.parametrize("name", NETWORKS)
def test_there_is_a_plan_unless_the_step_at_time_0_has_terms_of_its_own_beside_those_of_other_cycles(
    space: Space, chain: dict[str, Any], name: str
) -> None:
    own = answers(space, NETWORKS[name], **chain)
    clean = "clean" in name or name == "sum"
    for sweep in (False, True):
        view = own.view(sweep=sweep)
        assert view is not None
        assert (own.plan(view) is None) == (clean and view.cycles > 1)


def test_a_sum_with_a_part_that_has_no_plan_has_none() -> None:
    space = SPACES["p=2"]
    own = answers(
        space,
        lambda space, steps, **more: Sum(
            [PairwiseTerms(space, steps, **more), LocalMLP(space, steps, width=3, depth=1, **more)]
        ),
        keep_prob=0.0,
        hide_noised=True,
    )
    view = own.view(sweep=False)
    assert view is not None
    assert own.plan(view) is None
    x = space.uniform(ROWS, generator=torch.Generator().manual_seed(0)).T
    assert isinstance(own.walk(x, None, torch.zeros(1, dtype=torch.int64)), Recomputed)
