"""What a network is shown: not the sites that hard noise erased, and not those that never vary."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neurise import conditionals, exact
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.base import SiteNetwork
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACES = {"p=2": Space(sites=4, states=2), "p=3": Space(sites=4, states=3)}
both = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
CONSTANT = (-1, 1, -1, 0)
VARIES = (-1, -1, -1, -1)


def with_terms(space: Space, steps: int, **size: Any) -> Sum:
    terms = PairwiseTerms(space, steps, clean=True, classes=size["classes"])
    return Sum([terms, SiteMLP(space, steps, heads="site", residual=True, **size)])


KINDS: dict[str, Callable[..., SiteNetwork]] = {"site_mlp": SiteMLP, "a sum": with_terms, "local_mlp": LocalMLP}
every = pytest.mark.parametrize("kind", KINDS)


def make(
    kind: str,
    space: Space,
    *,
    constant: tuple[int, ...] = VARIES,
    keep_prob: float = 0.0,
    cycles: int = 2,
    hide_noised: bool = True,
    seed: int = 1,
    **more: Any,
) -> NetworkConditionals:
    """Conditionals in float64 with weights that leave nothing equal by chance."""
    noise = RoundRobin(space, keep_prob, cycles)
    network = KINDS[kind](space, noise.num_steps, width=5, depth=2, classes=2).double().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return NetworkConditionals(network, Frame(noise, 2, torch.tensor(constant)), hide_noised=hide_noised, **more)


def answers(own: Conditionals, x: Tensor) -> Tensor:
    """Log-conditionals of all steps for all rows, which bear both labels in turn."""
    y, sites = torch.arange(len(x)) % 2, own.noise.space.sites
    steps = range(own.noise.num_steps)
    return torch.stack([own.log_conditional(torch.tensor([t]), torch.tensor([t % sites]), x, y) for t in steps])


@every
@both
def test_they_are_the_softmax_of_the_network(kind: str, space: Space) -> None:
    own, x = make(kind, space, keep_prob=0.3), space.configurations()
    nothing, y = torch.zeros(1, space.sites, dtype=torch.bool), torch.arange(len(x)) % 2
    for t, found in enumerate(answers(own, x)):
        logits = own.network(torch.tensor([t]), torch.tensor([t % space.sites]), x, nothing, y)
        torch.testing.assert_close(found, logits - torch.logsumexp(logits, -1, keepdim=True), rtol=1e-12, atol=1e-12)


@every
@both
def test_erased_sites_are_hidden_unless_asked_otherwise(kind: str, space: Space) -> None:
    x = space.configurations()
    changed = x.clone()
    changed[:, 0] = (x[:, 0] + 1) % space.states
    step = 2  # site 0 was noised at step 0
    for keep_prob, hide, same in ((0.0, True, True), (0.0, False, False), (0.3, True, False)):
        own = make(kind, space, keep_prob=keep_prob, hide_noised=hide)
        assert torch.allclose(answers(own, x)[step], answers(own, changed)[step]) == same
        assert not torch.allclose(answers(own, x)[1 if same else 0], answers(own, changed.roll(1, 1))[1 if same else 0])


def test_which_sites_are_hidden_at_each_step() -> None:
    space, steps = SPACES["p=2"], torch.arange(8)
    visited = torch.arange(4) < steps[:, None]  # or in an earlier cycle
    ignored = torch.tensor(CONSTANT) >= 0
    cases = [(0.0, True, visited), (0.0, False, visited & False), (0.3, True, visited & False)]
    for keep_prob, hide, expected in cases:
        options: dict[str, Any] = {"keep_prob": keep_prob, "hide_noised": hide}
        assert torch.equal(make("site_mlp", space, **options).hidden(steps), expected)
        assert torch.equal(make("site_mlp", space, constant=CONSTANT, **options).hidden(steps), expected | ignored)


@every
@both
@pytest.mark.parametrize("keep_prob", [0.0, 0.3])
def test_what_a_constant_site_holds_is_not_seen_and_nothing_else_is_lost(
    kind: str, space: Space, keep_prob: float
) -> None:
    constant, x = torch.tensor(CONSTANT), space.configurations()
    options: dict[str, Any] = {"constant": CONSTANT, "keep_prob": keep_prob, "hide_noised": False}
    held = torch.where(constant >= 0, constant, x).to(x.dtype)
    seeing = make(kind, space, ignore_constant=False, **options)
    assert not torch.allclose(answers(seeing, x), answers(seeing, held))  # or nothing was tested
    own = make(kind, space, **options)
    torch.testing.assert_close(answers(own, x), answers(own, held), rtol=1e-12, atol=1e-12)
    # Of the sites that vary nothing is lost: their tokens still make a difference.
    others = torch.where(constant >= 0, x, 0).to(x.dtype)
    assert not torch.allclose(answers(own, x), answers(own, others))


def together(members: list[NetworkConditionals]) -> Conditionals:
    return members[0] if len(members) == 1 else Committee(members, [1 / len(members)] * len(members))


@every
@pytest.mark.parametrize(
    ("space", "constant", "keep_prob"),
    [
        (Space(sites=4, states=2), (-1, 0, -1, 1), 0.0),
        (Space(sites=3, states=3), (-1, -1, 1), 0.0),
        (Space(sites=3, states=3), (-1, -1, 1), 0.4),
    ],
    ids=["bits", "trits", "soft trits"],
)
@pytest.mark.parametrize("members", [1, 2])
def test_an_unseen_symbol_changes_nothing_at_the_other_sites(
    kind: str, space: Space, constant: tuple[int, ...], keep_prob: float, members: int
) -> None:
    """The law is that of the constant sites times that of the others."""
    known = [site for site, token in enumerate(constant) if token >= 0]
    others = [site for site in range(space.sites) if site not in known]
    for blind in (False, True):
        one = partial(make, kind, space, constant=constant, keep_prob=keep_prob, ignore_constant=blind)
        own = KnownSites(together([one(seed=seed) for seed in range(members)]), torch.tensor(constant), unseen=0.05)
        law = exact.chain_law(own, torch.tensor([0])).view([space.states] * space.sites).permute(known + others)
        table = law.reshape(space.states ** len(known), -1).numpy()
        product = np.outer(table.sum(1), table.sum(0))
        assert np.allclose(table, product, rtol=1e-12, atol=0) == blind


@every
@pytest.mark.parametrize("ignore", [False, True])
@pytest.mark.parametrize("hide", [False, True])
def test_they_are_made_again_from_their_description(kind: str, ignore: bool, hide: bool) -> None:
    space = SPACES["p=3"]
    own = make(kind, space, constant=CONSTANT, hide_noised=hide, ignore_constant=ignore)
    described = json.loads(json.dumps(own.description()))
    again = conditionals.build(described, Frame(own.noise, 2, torch.tensor(CONSTANT)))
    assert isinstance(again, NetworkConditionals)
    again.double().load_state_dict(own.state_dict())
    assert again.description() == described
    x = space.configurations()
    # The same weights at other places of memory: products may add up in another order.
    torch.testing.assert_close(answers(again, x), answers(own, x), rtol=1e-13, atol=1e-13)


@both
def test_the_product_of_the_conditionals_is_a_law_where_erased_sites_are_hidden(space: Space) -> None:
    cases = {(0.0, True): True, (0.0, False): False, (0.3, True): False}
    for (keep_prob, hide), expected in cases.items():
        assert make("site_mlp", space, keep_prob=keep_prob, hide_noised=hide).is_autoregressive == expected
