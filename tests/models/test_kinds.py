"""Members with pairwise terms and without, put together, and what each kind is worth."""

from __future__ import annotations

from functools import partial
from typing import Any

import chains
import numpy as np
import pytest
import torch
from neurise.models._kinds import SHARES, join, weigh
from neurise.networks._committee import Committee
from neurise.training.validation import noised
from torch import nn

from neurise import losses
from neurise.conditionals import NetworkConditionals
from neurise.models.neurise import ConditionalObjective
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Rows
from neurise.sampling import graphs, incremental, reverse
from neurise.space import Space

SPACES = {"bits": Space(sites=4, states=2), "trits": Space(sites=3, states=3)}
both = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def kind(space: Space, members: int, *, skip: bool, size: float = 0.5, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A network, or a committee, all of whose weights are drawn; a larger size makes its answers more certain."""
    make = partial(SiteMLP, space, space.sites, width=6, depth=2, heads="site", residual=True, skip=skip)
    network = make() if members == 1 else Committee(make, members)
    generator = torch.Generator().manual_seed(1 + skip)
    for name, parameter in network.named_parameters():
        output = any(word in name for word in ("head", "pair"))
        nn.init.normal_(parameter, std=size if output else 0.5, generator=generator)
    return network.to(dtype).requires_grad_(False)


def joined(kinds: list[nn.Module], space: Space, members: int, dtype: torch.dtype = torch.float64) -> Any:
    make = partial(SiteMLP, space, space.sites, width=6, depth=2, heads="site", residual=True, skip=True)
    network = Committee(make, 2 * members).to(dtype).requires_grad_(False)
    join(network, kinds)
    conditionals = NetworkConditionals(
        network, RoundRobin(space, 0.0, 1), torch.full((space.sites,), -1), hide_noised=True, width=6
    )
    return ConditionalObjective(conditionals, losses.cross_entropy)


def rows(space: Space, n: int = 300, folds: int = 0) -> Rows:
    """Rows whose neighbours are alike three times in four."""
    rng = np.random.default_rng(3)
    x = rng.integers(space.states, size=(n, space.sites))
    for site in range(1, space.sites):
        x[:, site] = np.where(rng.random(n) < 0.75, x[:, site - 1], x[:, site])
    fold = np.arange(n)[:, None] % folds if folds else np.zeros((n, 0))
    return Rows(torch.from_numpy(np.concatenate([x, fold], axis=1).astype(np.uint8)))


def log_laws(network: nn.Module, example: Any) -> np.ndarray:
    """What every network of a kind says, (n, members, states)."""
    said = torch.log_softmax(network(*example[:5]), -1).numpy()
    return said if said.ndim == 3 else said[:, None]


def normalised(logits: np.ndarray) -> np.ndarray:
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)


@both
@pytest.mark.parametrize("members", [1, 3])
def test_the_members_of_both_kinds_take_turns(space: Space, members: int) -> None:
    kinds = [kind(space, members, skip=skip) for skip in (True, False)]
    one = joined(kinds, space, members)
    example = noised(one, rows(space), torch.Generator().manual_seed(0))
    found = log_laws(one.network, example)
    for which in (0, 1):
        np.testing.assert_allclose(found[:, which::2], log_laws(kinds[which], example), rtol=1e-12, atol=1e-12)
    assert not np.allclose(found[:, 0], found[:, 1])


@both
@pytest.mark.parametrize("folds", [False, True], ids=["all members", "the members of a fold"])
@pytest.mark.parametrize(
    "sizes", [(0.05, 1.5), (1.5, 0.05), (0.4, 0.4), (0.6, 0.15)], ids=["without", "with", "alike", "between"]
)
def test_the_share_says_most_about_the_rows_held_back(space: Space, sizes: tuple[float, float], folds: bool) -> None:
    members = 3
    kinds = [kind(space, members, skip=skip, size=size) for skip, size in zip((True, False), sizes, strict=True)]
    one = joined(kinds, space, members)
    held = rows(space, folds=members if folds else 0)
    share = weigh(one, held, generator=torch.Generator().manual_seed(5))
    example = noised(one, held, torch.Generator().manual_seed(5))
    truth, n = example.x_u.long().numpy(), len(example.x_u)
    said = [log_laws(network, example) for network in kinds]
    with_terms, without = [s[np.arange(n), example.fold] if folds else s.mean(1) for s in said]
    costs = {w: -normalised(w * with_terms + (1 - w) * without)[np.arange(n), truth] for w in np.linspace(0, 1, SHARES)}
    best = min(costs, key=lambda w: costs[w].mean())
    excess = {w: costs[w] - costs[best] for w in costs}
    equal = [w for w in costs if excess[w].mean() <= excess[w].std(ddof=1) / np.sqrt(n)]
    assert share == pytest.approx(min(equal, key=lambda w: abs(w - 0.5)), abs=1e-12)
    assert best in equal


@both
def test_shares_go_where_the_better_kind_is(space: Space) -> None:
    shares = []
    for sizes in ((1e-3, 1.5), (1.5, 1e-3)):
        kinds = [kind(space, 2, skip=skip, size=size) for skip, size in zip((True, False), sizes, strict=True)]
        # Weights that were not learnt make certain and wrong answers: the kind that says little is the better one.
        shares.append(weigh(joined(kinds, space, 2), rows(space), generator=torch.Generator().manual_seed(0)))
    assert shares[0] > 0.5 > shares[1]


@both
def test_kinds_that_say_the_same_share_alike(space: Space) -> None:
    without = kind(space, 2, skip=False)
    share = weigh(joined([without, without], space, 2), rows(space), generator=torch.Generator().manual_seed(0))
    assert share == pytest.approx(0.5, abs=1e-12)


@both
@pytest.mark.parametrize("members", [1, 2])
def test_the_committee_then_answers_as_the_mixture(space: Space, members: int) -> None:
    kinds = [kind(space, members, skip=skip, size=size) for skip, size in ((True, 0.6), (False, 0.15))]
    one = joined(kinds, space, members)
    share = weigh(one, rows(space), generator=torch.Generator().manual_seed(5))
    assert share != 0.5
    x = space.configurations()
    for site in range(space.sites):
        t = torch.tensor([site])
        shown = (t, t, x, one.conditionals.hidden(t), None)
        with_terms, without = (log_laws(network, shown).mean(1) for network in kinds)
        found = one.conditionals.log_conditional(t, t, x).numpy()
        # The share is written as a float32: 2w is off by at most 2^-24 of itself, logits are below 20.
        np.testing.assert_allclose(found, normalised(share * with_terms + (1 - share) * without), atol=1e-5)


@pytest.mark.parametrize("space", [Space(6, 2), Space(5, 3), Space(40, 2)], ids=["bits", "trits", "many sites"])
def test_every_form_of_the_sampler_draws_the_same_rows(space: Space) -> None:
    single = torch.float32
    kinds = [
        kind(space, 2, skip=skip, size=size, dtype=single) for skip, size in ((True, 0.5 / space.sites), (False, 0.3))
    ]
    one = joined(kinds, space, 2, single)
    share = weigh(one, rows(space), generator=torch.Generator().manual_seed(5))
    assert share != 0.5
    start = one.conditionals.noise.start(300, generator=torch.Generator().manual_seed(0))
    for form in (reverse.reverse, incremental.reverse, partial(graphs.reverse, record=lambda work: work)):
        drawn = form(one.conditionals, start, generator=torch.Generator().manual_seed(1))
        chains.assert_same_rows(one.conditionals, drawn, start, seed=1)
