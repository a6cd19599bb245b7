"""The incremental loop is the plain one: the same probabilities, the same rows from the same uniforms, the same law."""

from functools import partial

import chains
import pytest
import torch
from chi_square import assert_drawn_from

from neurise import exact
from neurise.conditionals.base import Conditionals
from neurise.sampling import graphs, incremental
from neurise.walks import Planned

KINDS = chains.KINDS | chains.PAIRWISE | chains.PARTIAL


def walk_through(conditionals: Conditionals, *, precision: str = "float32", n: int = 200) -> float:
    """Largest difference of a conditional probability from the plain one, over all steps of a chain."""
    noise, generator = conditionals.noise, torch.Generator().manual_seed(0)
    x = noise.start(n, generator=generator).T.contiguous()
    y, worst = chains.labels(conditionals, n), 0.0
    for cycle in reversed(range(noise.cycles)):
        if incremental.forgotten(conditionals, cycle):
            continue
        walk = conditionals.walk(x, y, torch.tensor([cycle]), top=noise.top(cycle), precision=precision)
        for u in reversed(range(noise.top(cycle))):
            found = walk.logits(u)
            if noise.space.states == 2:
                found = torch.cat([torch.zeros_like(found), found], dim=-1)
            t = torch.tensor([cycle * noise.space.sites + u])
            plain = conditionals.log_conditional(t, noise.site(t), x.T, y).exp()
            worst = max(worst, float((found.softmax(-1) - plain).abs().max()))
            x[u] = noise.space.uniform(n, generator=generator)[:, u]
            walk.put(u, x[u])
    return worst


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@torch.no_grad()
def test_probabilities_are_those_of_the_plain_loop(kind: dict) -> None:
    assert walk_through(chains.make(**kind)) <= 1e-5


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_uniforms_give_the_same_rows(kind: dict) -> None:
    conditionals, n = chains.make(**kind), 500
    x = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))
    kept = x.clone()
    drawn = incremental.reverse(
        conditionals, x, chains.labels(conditionals, n), generator=torch.Generator().manual_seed(1)
    )
    chains.assert_same_rows(conditionals, drawn, x, seed=1)
    assert torch.equal(x, kept)


@pytest.mark.parametrize(
    "kind",
    [
        {"states": 3, "sites": 4},
        {"keep_prob": 0.6, "cycles": 2, "sites": 5},
        {"pairwise": True},
        {"states": 3, "sites": 4, "constant": {1: 2}, "unseen": 0.05},
        {"keep_prob": 0.6, "cycles": 2, "sites": 5, "constant": {0: 1, 3: 0}, "unseen": 0.05},
    ],
    ids=str,
)
def test_rows_follow_the_exact_law(kind: dict) -> None:
    conditionals, n = chains.make(**kind), 40_000
    space = conditionals.noise.space
    generator = torch.Generator().manual_seed(2)
    drawn = incremental.reverse(conditionals, space.uniform(n, generator=generator), generator=generator)
    assert_drawn_from(space.index(drawn).numpy(), exact.chain_law(conditionals).numpy())


def test_blocks_of_rows_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals = chains.make(keep_prob=0.4, cycles=2, states=3, classes=3)
    x, y = conditionals.noise.start(300, generator=torch.Generator().manual_seed(0)), torch.arange(300) % 3
    whole = incremental.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(incremental, "CACHE", 1)  # blocks of the least size
    cut = incremental.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1))
    # Products of other shapes may round otherwise; a step parts ways with a chance of about 1e-6.
    assert (whole == cut).all(-1).double().mean() >= 0.99


@pytest.mark.parametrize(
    "kind",
    [{"states": 3}, {"keep_prob": 0.4, "cycles": 2, "constant": {1: 0}, "unseen": 0.05, "pairwise": True}],
    ids=str,
)
def test_a_committee_of_networks(kind: dict) -> None:
    conditionals, n = chains.committee(3, **kind), 300
    x = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))
    for form in (incremental.reverse, partial(graphs.reverse, record=lambda work: work)):
        drawn = form(conditionals, x, generator=torch.Generator().manual_seed(1))
        chains.assert_same_rows(conditionals, drawn, x, seed=1)


@torch.no_grad()
def test_the_running_sum_does_not_drift() -> None:
    """400 sites, four cycles: at the end of a cycle the sum is what it would be if it were made afresh."""
    conditionals = chains.make(sites=400, keep_prob=0.4, width=8, depth=1)
    x = conditionals.noise.start(50, generator=torch.Generator().manual_seed(0)).T.contiguous()
    generator, first = torch.Generator().manual_seed(1), torch.zeros(1, dtype=torch.int64)
    walk = conditionals.walk(x, None, first)
    assert isinstance(walk, Planned)
    for u in reversed(range(400)):
        x[u] = torch.randint(2, (50,), generator=generator)
        walk.put(u, x[u])
    afresh = conditionals.walk(x, None, first)
    assert isinstance(afresh, Planned)
    # 800 additions to sums of size 1: a random walk of roundings of 2^-24 comes to 2e-6; five times that is allowed.
    assert (walk.sums[0] - afresh.sums[0]).abs().max() <= 1e-5


@pytest.mark.parametrize("depth", [2, 3, 5])
@torch.no_grad()
def test_short_numbers_move_probabilities_a_little(depth: int) -> None:
    """A bfloat16 has 8 bits: each of the depth − 1 products moves a unit by about 2^-9 of its size, a logit by some of that."""
    moved = walk_through(chains.make(depth=depth, width=64, sites=8), precision="bfloat16")
    assert 1e-5 < moved <= 0.02


def test_what_has_no_first_layer_has_no_plan() -> None:
    exactly = exact.ExactConditionals([0.25] * 4, chains.make(sites=2).noise)
    view = exactly.view(sweep=False)
    assert view is not None
    assert exactly.plan(view) is None
    with pytest.raises(KeyError, match="half"):
        chains.make().walk(torch.zeros(6, 1), None, torch.zeros(1, dtype=torch.int64), precision="half")
