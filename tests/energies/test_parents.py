"""The few sites that tell most about each site: found among many, and the regressions on them solved to the end."""

import pytest
import torch
from torch import Tensor

from neurise.energies.forward_selection import gain
from neurise.energies.parents import Parents, of_rows
from neurise.energies.regressions import sample_of
from neurise.energies.small_regressions import FOR_BASE, Design, Prior, factored, solve
from neurise.rows import Rows

TRUE = {0: {1, 3}, 1: {2}, 2: {4}, 3: {4}, 4: set()}
"""Parents of each of five sites, all of them after it."""


def rows_of(states: int, n: int, *, seed: int = 0, strength: float = 1.5) -> Rows:
    """Draw rows whose site u leans to the symbol of each of its true parents."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.zeros(n, 5, dtype=torch.int64)
    for u in reversed(range(5)):
        logits = torch.zeros(n, states, dtype=torch.float64)
        for parent in TRUE[u]:
            logits += strength * torch.nn.functional.one_hot(x[:, parent], states)
        x[:, u] = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
    return Rows(x.to(torch.uint8))


def after(sites: int) -> Tensor:
    place = torch.arange(sites)
    return place[:, None] < place


def sets(found: Parents) -> dict[int, set[int]]:
    return {u: set(own[own >= 0].tolist()) for u, own in enumerate(found.sites)}


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("states", [2, 3])
def test_true_parents_are_found(states: int, held: bool) -> None:
    aside = rows_of(states, 4000, seed=1) if held else None
    found = of_rows(rows_of(states, 8000), aside, states, after(5), most=4)
    # Rows held back may let a site in that adds next to nothing; the criterion alone does not.
    for u, parents in sets(found).items():
        assert TRUE[u] <= parents
        size = {int(i): float(found.weight[u, k].norm()) for k, i in enumerate(found.sites[u]) if i >= 0}
        assert held or parents == TRUE[u]
        # What adds nothing is noise: three standard errors of 1/sqrt(8000 · 0.2), for every one of its symbols.
        assert all(size[other] < 0.075 * states for other in parents - TRUE[u])
        assert all(size[other] > 1.0 for other in TRUE[u])


def test_only_sites_that_are_allowed_become_parents() -> None:
    allowed = after(5)
    allowed[0, 1] = False
    found = sets(of_rows(rows_of(2, 4000), None, 2, allowed, most=4))
    assert 1 not in found[0]
    assert 3 in found[0]
    assert len(sets(of_rows(rows_of(2, 4000), None, 2, after(5), most=1))[0]) == 1


def test_a_site_that_repeats_another_is_not_needed_twice() -> None:
    rows = rows_of(2, 4000)
    x = torch.cat([rows.x, rows.x[:, 1:2]], dim=1)  # site 5 repeats site 1
    found = sets(of_rows(Rows(x), None, 2, after(6), most=4))
    assert len(found[0] & {1, 5}) == 1


def test_weights_count_as_repeated_rows() -> None:
    rows, weights = rows_of(2, 500), torch.arange(500) % 3
    repeated = Rows(rows.x.repeat_interleave(weights, 0))
    weighted = Rows(rows.x, weights=weights.double())
    once, often = (of_rows(own, None, 2, after(5), most=4) for own in (weighted, repeated))
    assert sets(once) == sets(often)
    torch.testing.assert_close(once.weight, often.weight, atol=2e-4, rtol=1e-3)


def test_classes_have_biases_of_their_own() -> None:
    generator = torch.Generator().manual_seed(3)
    y = torch.arange(3000) % 2
    rate = torch.where(y == 0, 0.2, 0.7)[:, None].expand(-1, 4)
    rows = Rows(torch.bernoulli(rate, generator=generator).to(torch.uint8), y)
    found = of_rows(rows, None, 2, after(4), classes=2, most=3)
    share = torch.stack([rows.x[y == k].double().mean(0) for k in range(2)], dim=1)
    assert not any(sets(found).values())
    torch.testing.assert_close(found.bias.squeeze(-1).double().sigmoid(), share, atol=1e-3, rtol=0)


@pytest.mark.parametrize("states", [2, 3])
def test_regressions_are_solved_to_the_end(states: int) -> None:
    """At the least of the penalised likelihood its gradient, taken by autograd of the plain formula, is zero."""
    sample = sample_of(rows_of(states, 600), states, torch.device("cpu"))
    design = Design(sample, torch.ones(600, 1), Prior(0.5, 0.2))
    chosen = torch.tensor([[1, 3], [2, -1], [4, 3], [4, -1], [-1, -1]])
    theta = solve(design, chosen, None, rounds=30).double().requires_grad_()
    total, costs = torch.zeros((), dtype=torch.float64), FOR_BASE * theta[:, :, 0].square().sum()
    for u, own in enumerate(chosen.tolist()):
        outcomes = sample.outcomes
        logits = theta[u, :, 0].expand(600, -1)
        for place, parent in enumerate(own):
            if parent >= 0:
                features = sample.features[:, parent * outcomes : (parent + 1) * outcomes].double()
                first = 1 + place * outcomes
                block = theta[u, :, first : first + outcomes]
                logits = logits + features @ block.T
                squared = block.square().sum()
                costs = costs + (1 + outcomes**2) * torch.log(1 + squared / 0.5**2) + 0.2 * squared
        if outcomes == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        token = sample.target[:, u].argmax(-1) if outcomes > 1 else sample.target[:, u, 0].long()
        total = total + torch.nn.functional.cross_entropy(logits, token)
    (total + costs / 1200).backward()
    assert theta.grad is not None
    assert bool((theta[0].abs() > 0.01).any())
    assert float(theta.grad.abs().max()) < 2e-5  # float32 sums of 600 rows


def test_offers_and_costs_are_those_of_the_likelihood_to_second_order() -> None:
    """A weak parent adds, and its loss costs, what solving with and without it says; the next order is a few percent here."""
    rows = rows_of(2, 20000, strength=0.25)
    sample = sample_of(rows, 2, torch.device("cpu"))
    design = Design(sample, torch.ones(len(rows), 1), Prior(10.0, 0.01))
    without, with_it = torch.full((5, 1), -1), torch.tensor([[-1], [2], [-1], [-1], [-1]])
    before = design.scores(without, solve(design, without, None, rounds=8))[1]
    theta = solve(design, with_it, None, rounds=8)
    gained = float(before - design.scores(with_it, theta)[1])
    bare = solve(design, without[:, :0], None, rounds=8)
    part = torch.tensor([1])
    offered = float(gain(design, part, design.logits(without[:, :0], bare, part))[0, 2]) / len(rows)
    assert offered == pytest.approx(gained, rel=0.05)
    assert float(design.costs(with_it, theta)[1, 0]) == pytest.approx(gained, rel=0.05)


def test_a_curvature_that_rounding_has_spoilt_is_mended() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(3, 5, 5, generator=generator)
    curvature = root @ root.mT + torch.eye(5)
    spoilt = curvature.clone()
    spoilt[1] = torch.ones(5, 5) - 1e-4 * torch.eye(5)  # a direction of negative curvature
    found = factored(spoilt)
    torch.testing.assert_close(found[[0, 2]], torch.linalg.cholesky(curvature[[0, 2]]))
    torch.testing.assert_close(found[1] @ found[1].T, spoilt[1] + 0.01 * float(spoilt[1, 0, 0]) * torch.eye(5))
