import pytest
import torch

from neurise.conditionals import NetworkConditionals
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACE = Space(sites=3, states=4)


def learnt(
    keep_prob: float, *, hide_noised: bool = True, constant: tuple[int, ...] = (-1, 2, -1)
) -> NetworkConditionals:
    noise = RoundRobin(SPACE, keep_prob, cycles=2)
    network = SiteMLP(SPACE, noise.num_steps, width=8, depth=1)
    network.reset(torch.Generator().manual_seed(0))
    torch.nn.init.normal_(network.head)
    return NetworkConditionals(network, noise, torch.tensor(constant), hide_noised=hide_noised, width=8)


@pytest.mark.parametrize("keep_prob", [0.0, 0.3])
def test_a_constant_site_is_answered_exactly(keep_prob: float) -> None:
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    for t, visits in ((1, 0), (4, 1)):
        answer = learnt(keep_prob).log_conditional(torch.tensor([t]), torch.tensor([1]), x).exp()
        kept = keep_prob**visits
        expected = torch.full((4,), (1 - kept) / 4)
        expected[2] += kept
        torch.testing.assert_close(answer, expected.expand(5, 4))


def test_other_sites_are_answered_by_the_network() -> None:
    conditionals = learnt(0.3)
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    t = torch.tensor([2])
    logits = conditionals.network(t, t, x, torch.zeros(1, 3, dtype=torch.bool))
    torch.testing.assert_close(conditionals.log_conditional(t, t, x), logits.log_softmax(-1))


def test_erased_sites_are_hidden_unless_asked_otherwise() -> None:
    x = SPACE.uniform(5, generator=torch.Generator().manual_seed(1))
    changed = x.clone()
    changed[:, 0] = (x[:, 0] + 1) % 4
    t = torch.tensor([2])  # site 0 was noised at step 0
    for hide, same in ((True, True), (False, False)):
        conditionals = learnt(0.0, hide_noised=hide)
        first, second = (conditionals.log_conditional(t, t, rows) for rows in (x, changed))
        assert torch.allclose(first, second) == same
    soft = learnt(0.3)
    assert not torch.allclose(soft.log_conditional(t, t, x), soft.log_conditional(t, t, changed))
