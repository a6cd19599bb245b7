"""Parallel tempering against exact answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from chi_square import assert_drawn_from, assert_means
from pairwise_models import SPACES, generator, law_of, random_model

from neurise.interactions import Interactions
from neurise.mcmc import parallel_tempering, tempering
from neurise.space import Space


def test_swaps_leave_the_law_of_every_level_as_it_is() -> None:
    """Chains drawn exactly from their levels are swapped, even and odd pairs, and never swept."""
    space, groups = SPACES[1], 50_000
    model, *parts = random_model(space)
    ladder = tempering._Ladder(model, groups, generator())
    levels = len(ladder.betas)
    laws = [law_of(space, *parts, beta=float(beta)) for beta in ladder.betas]
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.choice(space.size, groups, p=law) for law in laws])
    flat = space.configurations()[torch.from_numpy(rows)]
    blocks, _, width = ladder.cells.shape
    padded = torch.zeros((blocks * width, space.sites), dtype=torch.uint8)
    padded[: len(flat)] = flat
    ladder.cells.copy_(padded.view(blocks, width, -1).transpose(1, 2))
    ladder.log_weight[:] = model.log_weight(padded)
    for _ in range(3):
        ladder.swap()
    for level in range(levels):
        assert_drawn_from(space.index(ladder.chains(ladder.at[level]).T).numpy(), laws[level])
    torch.testing.assert_close(ladder.beta[ladder.at], ladder.betas[:, None].expand_as(ladder.at))
    # What is said to be accepted is what an explicit sum over two independent chains gives; Hoeffding bounds the error of a
    # mean of 50,000 numbers in [0, 1] by √(log(2/1e-6) / 2n) = 0.012.
    energy = model.log_weight(space.configurations()).numpy()
    gap = float(ladder.betas[0] - ladder.betas[1])
    chance = np.minimum(1, np.exp(gap * (energy[:, None] - energy[None, :])))  # [x at level 1, x at level 0]
    ladder.place(ladder.betas)
    ladder.odd = False
    ladder.swap()
    exact = laws[1] @ chance @ laws[0]
    assert float(ladder.acceptance[0]) == pytest.approx(exact, abs=math.sqrt(math.log(2e6) / 2 / groups))


def test_round_trips_where_every_swap_is_accepted() -> None:
    """Without interactions a chain climbs a level a swap, waits one at each end, and is back after 2·levels swaps."""
    model = Interactions.ising(np.zeros((0, 2)), np.zeros(0), np.zeros(3))
    ladder = tempering._Ladder(model, 2, generator(), levels=5)
    for _ in range(20):  # everyone has been hottest once, and coldest after that
        ladder.swap()
    assert torch.equal(ladder.at, torch.arange(10).view(5, 2))
    before = int(ladder.trips)
    for _ in range(100):
        ladder.swap()
    assert int(ladder.trips) - before == 10 * 100 // 10  # each of 10 chains comes back every 10 swaps
    assert ladder.acceptance.tolist() == [1.0] * 4


def test_levels_are_spaced_by_their_rejections() -> None:
    model = Interactions.ising(np.zeros((0, 2)), np.zeros(0), np.zeros(3))
    ladder = tempering._Ladder(model, 2, generator(), levels=3)
    ladder.swapped, ladder.tried = torch.tensor([0.9, 0.1]).double(), torch.ones(2).double()
    ladder.respace()
    # The path of rejections is 0, .101, 1.002: its half, .501, is reached 4/9 of the way from 0.5 to 1.
    assert ladder.betas.tolist() == pytest.approx([0.0, 0.5 + 0.5 * (0.501 - 0.101) / 0.901, 1.0])


@pytest.mark.parametrize("space", SPACES)
def test_tempering_draws_from_the_law(space: Space) -> None:
    model, *parts = random_model(space)
    result = parallel_tempering(model, 64 * 200, groups=64, generator=generator())
    index = space.index(result.rows)  # (groups, rows)
    shares = np.stack([np.bincount(row, minlength=space.size) / len(row) for row in index.numpy()])
    law = law_of(space, *parts)
    often = law > 0.01  # a group sees these often enough for its share to be nearly normal
    assert often.sum() > 5
    assert_means(shares[:, often], law[often])
    assert result.diagnostics.mixed
    torch.testing.assert_close(model.log_weight(result.rows.view(-1, space.sites)), result.log_weight.reshape(-1))


def test_same_seed_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempering, "WARM_UP", (8, 8))
    model, *_ = random_model(SPACES[1])
    one, two, other = (parallel_tempering(model, 10, sweeps=64, generator=generator(seed)).rows for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_blocks_of_chains_change_nothing_in_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that do not fill their last block: the extra ones stay out of sight."""
    monkeypatch.setattr(tempering, "BLOCK", 600)
    space = SPACES[1]
    model, *parts = random_model(space)
    ladder = tempering._Ladder(model, 63, generator())
    assert ladder.cells.shape[0] > 1
    assert ladder.cells.shape[0] * ladder.cells.shape[2] > ladder.at.numel()
    run = ladder.run(600, every=5)
    shares = np.stack(
        [np.bincount(row, minlength=space.size) / len(row) for row in space.index(run.rows[:, 20:]).numpy()]
    )
    law = law_of(space, *parts)
    assert_means(shares[:, law > 0.01], law[law > 0.01])


def test_what_has_not_mixed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of 40 spins so cold that domain walls freeze, and a run that is far too short."""
    monkeypatch.setattr(tempering, "WARM_UP", (8, 16, 32, 64))
    edges = np.array([(i, (i + 1) % 40) for i in range(40)] + [(i, (i + 7) % 40) for i in range(40)])
    couplings = np.random.default_rng(0).choice([-6.0, 6.0], len(edges))
    result = parallel_tempering(
        Interactions.ising(edges, couplings, np.zeros(40)), 16, sweeps=64, generator=generator()
    )
    assert not result.diagnostics.mixed
    assert "NOT WELL MIXED" in str(result.diagnostics)
    assert result.diagnostics.to_dict()["mixed"] is False


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"groups": 1}, {"sweeps": 0}])
def test_impossible_runs_are_refused(wrong: dict[str, int]) -> None:
    model, *_ = random_model(SPACES[0])
    with pytest.raises(ValueError, match="must be positive"):
        parallel_tempering(model, **{"rows": 10, **wrong}, generator=generator())
