"""Rows that are generated with what a network keeps of their places: the same rows by every form of the loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from neurise import devices
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.likelihood import log_prob
from neurise.networks.causal import Causal
from neurise.noise.round_robin import RoundRobin
from neurise.sampling import graphs, incremental
from neurise.sampling import reverse as forms
from neurise.sampling.reverse import FOR_LONG_STEPS, WORTHWHILE, reverse, sample
from neurise.space import Space

SPACES = {"bits": Space(sites=5, states=2), "three": Space(sites=4, states=3)}
everywhere = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def make(space: Space, *, group: int = 2, classes: int = 2, constant: tuple[int, ...] = ()) -> Conditionals:
    """Conditionals of a transformer in float64, all of whose weights are drawn; ``constant`` sites hold token 1."""
    network = Causal(space, space.sites, width=8, depth=2, classes=classes, group=group)
    generator = torch.Generator().manual_seed(0)
    network.reset(generator)
    for parameter in network.parameters():
        parameter.data += 0.4 * torch.randn(parameter.shape, generator=generator)
    only = torch.full((space.sites,), -1)
    only[list(constant)] = 1
    made = RowConditionals(network.double().requires_grad_(False), Frame(RoundRobin(space, 0.0), classes, only))
    return KnownSites(made, only, unseen=1e-3) if constant else made


def repeat(work: Callable[[], None]) -> Callable[[], None]:
    work()
    return work


def begin(space: Space, n: int) -> tuple[Tensor, Tensor]:
    return space.uniform(n, generator=torch.Generator().manual_seed(3)), torch.arange(n) % 2


@pytest.mark.parametrize("constant", [(), (1,), (3, 2)])  # the last two: no site of a group is asked for
@pytest.mark.parametrize("group", [1, 2, 3])
@everywhere
def test_the_same_uniforms_give_the_same_rows(space: Space, group: int, constant: tuple[int, ...]) -> None:
    conditionals = make(space, group=group, constant=constant)
    x, y = begin(space, 300)
    plain = reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1))
    kept = incremental.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1))
    taped = graphs.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1), record=repeat)
    assert torch.equal(kept, plain)
    assert torch.equal(taped, plain)


def test_rows_do_not_depend_on_how_much_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals = make(SPACES["bits"])
    x, y = begin(SPACES["bits"], 700)

    def draw() -> Tensor:
        return graphs.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1), record=repeat)

    before = draw()
    sizes = {size for size, *_ in graphs._tapes[conditionals]}
    assert sizes == {1024}
    monkeypatch.setattr(devices, "total_bytes", lambda device: 4 * 300 * conditionals.bytes_per_walk)
    assert incremental.most_at_once(conditionals) == 300
    assert torch.equal(draw(), before)
    # Recordings make room for each other: 1024 rows and 256 are more than 600.
    assert [size for size, *_ in graphs._tapes[conditionals]] == [256]
    monkeypatch.setattr(devices, "total_bytes", lambda device: 4 * 10 * conditionals.bytes_per_walk)
    assert graphs.sizes_for(conditionals) == (10,)
    assert torch.equal(draw(), before)


def test_blocks_to_draw_hold_tokens_and_random_numbers_alone() -> None:
    with torch.device("meta"):
        network = Causal(Space(784, 2), 784, width=256, depth=6)
    conditionals = RowConditionals(network, Frame(RoundRobin(Space(784, 2), 0.0), 0, torch.full((784,), -1)))
    assert len(list(conditionals.blocks(10_000))) > 10
    assert len(list(conditionals.blocks_to_draw(10_000))) == 1
    assert conditionals.bytes_per_walk == 4 * 196 * 6 * 2 * 256


@everywhere
def test_a_constant_site_is_known_in_one_pass_too(space: Space) -> None:
    conditionals = make(space, constant=(1,))
    x, y = begin(space, 40)
    found = conditionals.log_conditionals(x, y)
    for u in range(space.sites):
        at = torch.tensor([u])
        torch.testing.assert_close(found[:, u], conditionals.log_conditional(at, at, x, y))
    torch.testing.assert_close(found, Conditionals.log_conditionals(conditionals, x, y))
    law = log_prob(conditionals, space.configurations(), torch.zeros(space.size, dtype=torch.int64)).exp()
    torch.testing.assert_close(law.sum().item(), 1.0)


def test_many_questions_are_answered_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals, space = make(SPACES["three"]), SPACES["three"]
    x, y = begin(space, 30)
    u = torch.arange(30) % space.sites
    whole = conditionals.log_conditional(u, u, x, y)
    monkeypatch.setattr("neurise.conditionals.base.MEMORY_BUDGET", 7 * conditionals.bytes_per_row)
    torch.testing.assert_close(conditionals.log_conditional(u, u, x, y), whole)


def test_samples_follow_the_likelihood() -> None:
    space, n = Space(4, 2), 20_000
    conditionals = make(space, classes=0)
    drawn = sample(conditionals, n, generator=torch.Generator().manual_seed(0))
    law = log_prob(conditionals, space.configurations()).exp()
    counts = torch.bincount(space.index(drawn), minlength=space.size).double()
    chi_square = ((counts - n * law) ** 2 / (n * law)).sum().item()
    assert chi_square < 15 + 5 * 30**0.5  # 15 degrees of freedom, five standard deviations


def test_long_steps_are_recorded_for_many_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals, asked = make(SPACES["bits"]), list[str]()
    monkeypatch.setattr(forms, "serves", lambda name, *_: asked.append(name) or True)
    for draws in (WORTHWHILE, FOR_LONG_STEPS * WORTHWHILE):
        forms.choose(conditionals, draws=draws)
    assert asked == ["incremental", "fused"]
