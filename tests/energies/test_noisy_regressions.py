"""Regressions of every site on all others, in rows that were noised a little, against the law of such rows."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from neurise.energies import noisy_regressions
from neurise.energies.noisy_regressions import NOISE, fit, noised, serves
from neurise.rows import Rows
from neurise.space import Space


def drawn(law: Tensor, space: Space, n: int, seed: int = 0) -> Rows:
    """Draw rows of a law."""
    place = torch.multinomial(law, n, replacement=True, generator=torch.Generator().manual_seed(seed))
    return Rows(space.configurations()[place])


def conditional(terms: noisy_regressions.Terms, site: int, x: Tensor, states: int) -> Tensor:
    """Return what the terms say of a site of rows, (n, states)."""
    hot = torch.nn.functional.one_hot(x.long(), states).float()
    hot[:, site] = 0
    return (hot.flatten(1) @ terms.pair[site].T + terms.bias[site]).double().softmax(-1)


@pytest.mark.parametrize("states", [2, 3])
def test_they_are_the_conditionals_given_a_noised_neighbour(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    r""":math:`P(x_0 \mid \tilde x_1) \propto \sum_{x_1} \mu(x_0, x_1)\,k(\tilde x_1 \mid x_1)`, and the other way round."""
    monkeypatch.setattr(noisy_regressions, "NOISE", 0.3)
    space, n = Space(2, states), 200_000
    law = torch.rand(space.size, generator=torch.Generator().manual_seed(states), dtype=torch.float64)
    law = (law / law.sum()).view(states, states)
    kernel = 0.7 * torch.eye(states, dtype=torch.float64) + 0.3 / states
    found = fit(drawn(law.flatten(), space, n), space, torch.ones(2, dtype=torch.bool), seed=1)
    for site, joint in enumerate((law, law.T)):
        assert not found.pair.view(2, states, 2, states)[site, :, site].any()
        wanted = joint @ kernel  # (own, noised neighbour)
        x = torch.zeros(states, 2, dtype=torch.uint8)
        x[:, 1 - site] = torch.arange(states)
        # Of n rows each neighbour has at least a tenth; five standard errors of a share, and the penalty is far below them.
        assert float(wanted.sum(0).min()) > 0.1
        allowed = 5 * 0.5 / math.sqrt(0.1 * n)
        torch.testing.assert_close(
            conditional(found, site, x, states), (wanted / wanted.sum(0)).T, rtol=0, atol=allowed
        )


def test_sites_that_agree_are_followed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Site 0 leans to site 1, and sites 1 and 2 always agree: after noise each of the two tells something."""
    space, generator = Space(3, 2), torch.Generator().manual_seed(0)
    other = torch.randint(0, 2, (5000,), generator=generator)
    own = torch.where(torch.rand(5000, generator=generator) < 0.9, other, 1 - other)
    rows = Rows(torch.stack([own, other, other], dim=1).to(torch.uint8))
    monkeypatch.setattr(noisy_regressions, "NOISE", 0.1)
    pair = fit(rows, space, torch.ones(3, dtype=torch.bool), seed=0).pair.view(3, 2, 3, 2)
    first, second = pair[0, 1, 1, 1], pair[0, 1, 2, 1]
    assert float(min(first, second)) > 0.5 * float(max(first, second)) > 0


def test_only_what_is_looked_at_is_noised() -> None:
    space = Space(40, 3)
    rows = Rows(space.uniform(5000, generator=torch.Generator().manual_seed(0)))
    sample = noised(rows, space, torch.device("cpu"), torch.Generator().manual_seed(1))
    assert torch.equal(sample.target.argmax(-1).to(torch.uint8), rows.x)
    seen = sample.features.view(5000, 40, 3).argmax(-1)
    changed = float((seen != rows.x).double().mean())
    expected = NOISE * 2 / 3  # a redraw gives the same token one time in three
    assert changed == pytest.approx(expected, abs=5 * math.sqrt(expected / rows.x.numel()))


def test_tokens_are_redrawn_from_the_alphabet_of_their_site() -> None:
    space = Space(2, 3, (2, 3))
    rows = Rows(space.uniform(20_000, generator=torch.Generator().manual_seed(0)))
    sample = noised(rows, space, torch.device("cpu"), torch.Generator().manual_seed(1))
    assert int(sample.features.view(-1, 2, 3)[:, 0].argmax(-1).max()) == 1


def test_sites_that_never_vary_have_no_terms() -> None:
    space = Space(3, 2)
    rows = Rows(space.uniform(500, generator=torch.Generator().manual_seed(0)))
    rows.x[:, 1] = 1
    pair = fit(rows, space, torch.tensor([True, False, True]), seed=0).pair.view(3, 2, 3, 2)
    assert not pair[1].any()
    assert not pair[:, :, 1].any()


def test_the_work_is_limited() -> None:
    rows, cpu = Rows(torch.zeros(1000, 300, dtype=torch.uint8)), torch.device("cpu")
    assert serves(rows, Space(300, 2), cpu)
    assert not serves(rows, Space(300, 7), cpu)  # 1000 × 2100² is beyond what a CPU does in a minute
    assert not serves(rows, Space(300, 2), torch.device("meta"))
    assert not serves(rows, Space(5000, 2), torch.device("cuda"))
