"""A chain that looks one way, swept by conditionals that look both ways: against kernels written out in full."""

import itertools

import conditionals_cases as cases
import numpy as np
import pytest
import torch
from torch import Tensor

from neurise import conditionals
from neurise.chain_law import chain_law
from neurise.conditionals.base import Frame
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.conditionals.with_clean import WithClean
from neurise.networks.sparse import Sparse
from neurise.sampling import corrector, incremental
from neurise.space import Space

SITES = 4
AFTER = torch.tensor([[1, 3], [2, -1], [3, -1], [-1, -1]])
BOTH = torch.tensor([[1, 3], [0, 2], [1, -1], [0, -1]])


def part(where: Frame, sides: str, seed: int) -> RowConditionals:
    """Conditionals of a small network whose weights are all drawn."""
    space = where.noise.space
    width = 0 if sides == "both" else 3
    network = Sparse(space, space.sites, width=width, classes=where.classes, parents=2, sides=sides).double()
    network.requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        if parameter.is_floating_point():
            parameter.copy_(0.7 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    network.chosen.copy_(AFTER if sides == "after" else BOTH)
    return RowConditionals(network, where)


def swept_by_hand(law: Tensor, asked: RowConditionals, y: Tensor | None) -> np.ndarray:
    """One sweep of a law as a matrix for each site, the last one first, an entry at a time."""
    space = asked.noise.space
    rows = list(itertools.product(range(space.states), repeat=space.sites))
    number = {row: place for place, row in enumerate(rows)}
    current = law.numpy().copy()
    for u in reversed(range(space.sites)):
        answers = asked.log_conditionals(torch.tensor(rows, dtype=torch.uint8), y)[:, u].exp().numpy()
        pushed = np.zeros_like(current)
        for place, row in enumerate(rows):
            for token in range(space.states):
                pushed[number[(*row[:u], token, *row[u + 1 :])]] += current[place] * answers[place, token]
        current = pushed
    return current


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("states", [2, 3])
def test_the_law_after_sweeps_is_that_of_the_kernels(states: int, classes: int) -> None:
    where = cases.frame(Space(SITES, states), classes=classes)
    chain, clean = part(where, "after", 0), part(where, "both", 1)
    both, y = WithClean(chain, clean), torch.tensor([1]) if classes else None
    law = chain_law(both, y)
    torch.testing.assert_close(law, chain_law(chain, y))
    labels = None if y is None else y.expand(states**SITES)
    expected = swept_by_hand(law, clean, labels)
    np.testing.assert_allclose(chain_law(both, y, sweeps={0: 1}).numpy(), expected, atol=1e-12)
    assert np.abs(expected - law.numpy()).sum() > 0.01
    assert both.is_autoregressive
    assert not clean.is_autoregressive


@pytest.mark.parametrize("states", [2, 3])
def test_a_sweep_walks_as_the_reference_does(states: int) -> None:
    where = cases.frame(Space(SITES, states))
    clean, x = part(where, "both", 1), Space(SITES, states).configurations()
    walked = cases.as_log_law(cases.walked(clean, x, None, 0, sweep=True), states)
    torch.testing.assert_close(walked, cases.recomputed(clean, x, None, 0, sweep=True))
    swept = [
        sweep(clean, x, generator=torch.Generator().manual_seed(3)) for sweep in (incremental.sweep, corrector.sweep)
    ]
    assert torch.equal(*swept)


def test_who_can_sweep() -> None:
    where = cases.frame(Space(SITES, 3), constant=[-1, -1, 2, -1])
    chain, clean = part(where, "after", 0), part(where, "both", 1)
    both = KnownSites(WithClean(chain, clean), where.constant, unseen=1e-6)
    assert not chain.clean.can_sweep
    assert both.clean.can_sweep
    with pytest.raises(NotImplementedError, match="cannot sweep"):
        chain.walk(torch.zeros(SITES, 2, dtype=torch.uint8), None, torch.zeros(1, dtype=torch.int64), sweep=True)
    again = conditionals.build(both.description(), where).double()
    again.load_state_dict(both.state_dict())
    x = Space(SITES, 3).configurations()
    torch.testing.assert_close(again.log_conditionals(x), both.log_conditionals(x))
    torch.testing.assert_close(
        again.clean.log_conditional(torch.tensor([0]), torch.tensor([1]), x),
        both.clean.log_conditional(torch.tensor([0]), torch.tensor([1]), x),
    )
    with pytest.raises(ValueError, match="both sides"):
        WithClean.build({"inner": chain.description(), "part": chain.description()}, where)
