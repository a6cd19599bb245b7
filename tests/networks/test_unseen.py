"""What a constant site holds is not seen, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import chains
import numpy as np
import pytest
import torch

from neurise import exact
from neurise.networks._committee import Committee
from neurise.networks._unseen import ignore_unseen
from neurise.networks.joint_mlp import JointMLP
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.site_mlp import SiteMLP
from neurise.space import Space

CONSTANT = torch.tensor([-1, 1, -1, 0])
KINDS: dict[str, Callable[..., torch.nn.Module]] = {
    "site_mlp": partial(SiteMLP, classes=2),
    "site_mlp, heads and pairwise terms": partial(
        SiteMLP, classes=2, heads="site", residual=True, skip=True, clean=True
    ),
    "local_mlp": partial(LocalMLP, classes=2),
}
SPACES = {"bits": Space(sites=4, states=2), "trits": Space(sites=4, states=3)}
both = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
every = pytest.mark.parametrize("kind", KINDS)
alone_or_not = pytest.mark.parametrize("members", [1, 3])


def made(kind: str, space: Space, members: int) -> torch.nn.Module:
    """A network in float64 with weights that leave nothing equal by chance."""
    make = partial(KINDS[kind], space, 8, width=5, depth=2)
    network = make() if members == 1 else Committee(make, members)
    generator = torch.Generator().manual_seed(1)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return network.double()


@torch.no_grad()
def answers(network: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Logits of all steps for all rows, with the first site hidden too; the rows bear both labels in turn."""
    hidden = torch.zeros(1, 4, dtype=torch.bool)
    hidden[0, 0] = True
    y = torch.arange(len(x)) % 2
    return torch.stack([network(torch.tensor([t]), torch.tensor([t % 4]), x, hidden, y) for t in range(8)])


@every
@both
@alone_or_not
def test_all_that_a_constant_site_may_hold_is_answered_as_what_it_held(kind: str, space: Space, members: int) -> None:
    network, x = made(kind, space, members), space.configurations()
    seen = torch.where(CONSTANT >= 0, CONSTANT, x).to(x.dtype)
    before, otherwise = answers(network, seen), answers(network, x)
    assert not torch.allclose(before, otherwise)  # or nothing was tested
    ignore_unseen(network, CONSTANT)
    torch.testing.assert_close(answers(network, x), before, rtol=1e-12, atol=1e-12)
    # Of the sites that vary nothing is lost: their tokens still make a difference.
    assert not torch.allclose(answers(network, x), answers(network, torch.where(CONSTANT >= 0, x, 0).to(x.dtype)))


@every
@alone_or_not
def test_the_weights_stay_where_they_are(kind: str, members: int) -> None:
    network = made(kind, SPACES["trits"], members)
    places = [parameter.data_ptr() for parameter in network.parameters()]
    kept = [parameter.clone() for parameter in network.parameters()]
    ignore_unseen(network, torch.full((4,), -1))
    assert all(torch.equal(one, other) for one, other in zip(network.parameters(), kept, strict=True))
    ignore_unseen(network, CONSTANT)
    assert places == [parameter.data_ptr() for parameter in network.parameters()]
    assert all(parameter.requires_grad for parameter in network.parameters())


@pytest.mark.parametrize(
    "kind",
    [
        {"sites": 4, "constant": {1: 0, 3: 1}},
        {"sites": 4, "constant": {1: 0, 3: 1}, "skip": True},
        {"sites": 3, "states": 3, "constant": {2: 1}},
        {"sites": 3, "states": 3, "constant": {2: 1}, "keep_prob": 0.4, "cycles": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("members", [1, 2])
def test_an_unseen_symbol_changes_nothing_at_the_other_sites(kind: dict, members: int) -> None:
    """The law is that of the constant sites times that of the others."""
    conditionals = chains.make(**kind, unseen=0.05) if members == 1 else chains.committee(members, **kind, unseen=0.05)
    conditionals.network.double()
    space = conditionals.noise.space
    constant = list(kind["constant"])
    others = [site for site in range(space.sites) if site not in constant]
    for blind in (False, True):
        if blind:
            ignore_unseen(conditionals.network, conditionals.constant)
        law = exact.chain_law(conditionals).view([space.states] * space.sites).permute(constant + others)
        table = law.reshape(space.states ** len(constant), -1).numpy()
        product = np.outer(table.sum(1), table.sum(0))
        assert np.allclose(table, product, rtol=1e-12, atol=0) == blind


def test_what_is_not_known_is_refused() -> None:
    joint = JointMLP(SPACES["bits"], width=4, depth=1)
    with pytest.raises(TypeError, match="JointMLP is neither a SiteMLP, nor a LocalMLP, nor a committee of them"):
        ignore_unseen(joint, CONSTANT)
