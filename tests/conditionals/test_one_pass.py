"""Conditionals of whole rows that are wrapped and mixed say the same in one pass as site by site."""

from __future__ import annotations

import pytest
import torch

from neurise.conditionals import base
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.moment_matched import MomentMatched
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.networks.causal import Causal
from neurise.networks.masked import Masked
from neurise.networks.pairwise_terms import PairwiseTerms
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACES = [Space(sites=5, states=2), Space(sites=4, states=3)]


def mixed(space: Space) -> Conditionals:
    """Return a corrected committee of three kinds; the last site is ignored by all."""
    generator = torch.Generator().manual_seed(0)
    constant = torch.full((space.sites,), -1)
    constant[-1] = 1
    frame, members = Frame(RoundRobin(space, 0.0), 0, constant), list[Conditionals]()
    for make, wrap in ((Causal, RowConditionals), (Masked, RowConditionals), (SiteMLP, NetworkConditionals)):
        network = make(space, space.sites, width=8, depth=2)
        network.reset(generator)
        for parameter in network.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
        options = {} if wrap is RowConditionals else {"hide_noised": True}
        members.append(wrap(network.requires_grad_(False).double(), frame, **options))
    terms = PairwiseTerms(space, space.sites)
    for parameter in terms.parameters():  # terms with sites that a step does not see must not count
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
    return MomentMatched(Committee(members, [0.5, 0.2, 0.3]), terms.requires_grad_(False).double())


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_all_sites_at_once_are_each_by_itself(space: Space) -> None:
    conditionals = mixed(space)
    x = space.configurations()
    at_once = conditionals.log_conditionals(x)
    for u in range(space.sites - 1):
        t = torch.tensor(u)
        torch.testing.assert_close(at_once[:, u], conditionals.log_conditional(t, t, x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_their_product_is_a_law_of_the_sites_that_vary(space: Space) -> None:
    x = space.configurations()
    x = x[x[:, -1] == 1].long()
    terms = mixed(space).log_conditionals(x)[:, :-1].gather(-1, x[:, :-1, None])
    torch.testing.assert_close(terms.sum((1, 2)).exp().sum(), torch.tensor(1.0, dtype=torch.float64))


def test_a_pass_over_rows_takes_as_many_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass reads all weights: cut to fit the cache, 2,084 sites would come five rows at a time."""
    asked = mixed(SPACES[0])
    monkeypatch.setattr(base, "CACHE", 2 * asked.bytes_per_row)
    assert [rows.stop - rows.start for rows in asked.blocks(100, cached=True)] == [100]
    one_by_one = asked.inner.members[2]  # a network that is asked site by site
    assert next(one_by_one.blocks(10**6, cached=True)).stop == base.CACHE // one_by_one.bytes_per_row
