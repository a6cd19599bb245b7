"""Several conditionals that answer together, and what each of their kinds is worth."""

from __future__ import annotations

from typing import Any

import conditionals_cases as cases
import numpy as np
import pytest
import torch

from neurise.conditionals.base import Frame
from neurise.conditionals.committee import Committee, Together, find_shares
from neurise.space import Space
from neurise.walks import Planned

WEIGHTS = [0.2, 0.5, 0.3]
both = pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
NOISES: dict[str, dict[str, Any]] = {"hard": {}, "soft": {"keep_prob": 0.4, "cycles": 2}}
noises = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


def committee(where: Frame, kinds: tuple[str, ...] = cases.KINDS) -> Committee:
    return Committee([cases.single(kind, where, seed) for seed, kind in enumerate(kinds)], WEIGHTS[: len(kinds)])


# --- what it says ------------------------------------------------------------------------------------------------------


@both
@noises
@pytest.mark.parametrize("classes", [0, 2])
def test_it_says_the_weighted_geometric_mean(space: Space, noise: dict[str, Any], classes: int) -> None:
    whole = committee(cases.frame(space, **noise, classes=classes))
    for t, u, x in cases.questions(whole):
        y = torch.arange(len(x)) % classes if classes else None
        product = np.ones((len(x), space.states))
        for weight, member in zip(WEIGHTS, whole, strict=True):
            product *= member.log_conditional(t, u, x, y).exp().numpy() ** weight
        expected = product / product.sum(-1, keepdims=True)
        np.testing.assert_allclose(whole.log_conditional(t, u, x, y).exp(), expected, rtol=1e-12)


def test_equal_weights_of_one_member_change_nothing() -> None:
    where = cases.frame(cases.SPACES["four"])
    one = cases.single("site_mlp", where)
    for t, u, x in cases.questions(one):
        together = Committee([one, one], [0.25, 0.75]).log_conditional(t, u, x)
        torch.testing.assert_close(together, one.log_conditional(t, u, x), rtol=1e-12, atol=1e-12)


def test_what_every_member_hides_is_hidden() -> None:
    where = cases.frame(Space(3, 2))
    hides, shows = (cases.single("site_mlp", where, hide_noised=hide) for hide in (True, False))
    t = torch.arange(3)
    assert torch.equal(Committee([hides, hides], [0.5, 0.5]).hidden(t), hides.hidden(t))
    assert not Committee([hides, shows], [0.5, 0.5]).hidden(t).any()
    assert Committee([hides, hides], [0.5, 0.5]).is_autoregressive
    assert not Committee([hides, shows], [0.5, 0.5]).is_autoregressive


# --- walks -------------------------------------------------------------------------------------------------------------


@both
@noises
@pytest.mark.parametrize(
    "kinds", [("site_mlp", "pairwise sum"), cases.KINDS], ids=["all planned", "one without a plan"]
)
def test_walks_answer_as_the_reference(space: Space, noise: dict[str, Any], kinds: tuple[str, ...]) -> None:
    whole = committee(cases.frame(space, **noise, classes=2), kinds)
    x = space.configurations()
    y = torch.arange(len(x)) % 2
    walk = whole.walk(x.T.contiguous(), y, torch.tensor([0]))
    assert isinstance(walk, Together if "local_mlp" in kinds else Planned)
    for cycle in range(whole.noise.cycles):
        found = cases.as_log_law(cases.walked(whole, x, y, cycle), space.states)
        # float64 throughout; log-laws are normalised here, constants per row are not part of what a walk says.
        torch.testing.assert_close(found, cases.recomputed(whole, x, y, cycle), rtol=1e-9, atol=1e-9)


@both
def test_sweeps_answer_as_the_reference(space: Space) -> None:
    where = cases.frame(space)
    members = [cases.single(kind, where, clean=kind == "pairwise sum") for kind in ("site_mlp", "pairwise sum")]
    whole = Committee(members, [0.3, 0.7])
    x = space.configurations()
    found = cases.as_log_law(cases.walked(whole, x, None, 0, sweep=True), space.states)
    torch.testing.assert_close(found, cases.recomputed(whole, x, None, 0, sweep=True), rtol=1e-9, atol=1e-9)


@both
def test_all_sites_at_once_are_the_same_as_one_by_one(space: Space) -> None:
    whole = committee(cases.frame(space))
    x = space.configurations()
    found = whole.log_conditionals(x)
    for t, u, rows in cases.questions(whole):
        torch.testing.assert_close(found[:, int(u)], whole.log_conditional(t, u, rows), rtol=1e-9, atol=1e-9)


# --- what each kind is worth -------------------------------------------------------------------------------------------


def said(space: Space, seed: int, certainty: float = 1.0, n: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-laws of n contexts, (n, states), and tokens that follow them."""
    generator = torch.Generator().manual_seed(seed)
    logits = certainty * torch.randn(n, space.states, generator=generator, dtype=torch.float64)
    law = torch.log_softmax(logits, -1)
    return law, torch.multinomial(law.exp(), 1, generator=generator).squeeze(-1)


def shifted(law: torch.Tensor, size: float, seed: int) -> torch.Tensor:
    noise = torch.randn(law.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.log_softmax(law + size * noise, -1)


@both
@pytest.mark.parametrize("certainty", [0.1, 1.0, 10.0])
def test_kinds_that_say_the_same_share_alike(space: Space, certainty: float) -> None:
    for seed in range(40):
        law, observed = said(space, seed, certainty)
        for again in (law, law.log_softmax(-1), law + 1e-15 * torch.randn(law.shape, dtype=torch.float64)):
            assert find_shares([law, again], observed, [10, 20]) == pytest.approx([0.5, 0.5], abs=1e-12)


@both
def test_the_better_kind_gets_more(space: Space) -> None:
    for seed in range(10):
        law, observed = said(space, seed, 1.5, n=1000)
        worse = shifted(law, 3.0, seed + 100)
        (good, bad), (second_bad, second_good) = (
            find_shares(kinds, observed, [5, 5]) for kinds in ([law, worse], [worse, law])
        )
        assert good > 0.6 > 0.4 > bad
        assert second_good > 0.6 > 0.4 > second_bad


@both
def test_shares_of_three_kinds_sum_to_one_and_are_not_negative(space: Space) -> None:
    for seed in range(10):
        law, observed = said(space, seed, 1.5, n=1000)
        shares = find_shares([shifted(law, 3.0, 1), law, shifted(law, 3.0, 2)], observed, [5, 6, 7])
        assert sum(shares) == pytest.approx(1, abs=1e-12)
        assert min(shares) >= 0
        assert shares[1] == max(shares)
    law, observed = said(space, 0)
    # 1/3 and 1/2 lie between the twentieths that are tried.
    assert find_shares([law] * 3, observed, [1, 1, 1]) == pytest.approx([1 / 3] * 3, abs=0.5 / 20)


def test_the_share_of_a_third_kind_is_the_one_nearest_to_a_third() -> None:
    # All kinds say the same, so that every share is as good; of the twentieths that are tried 0.35 is nearest.
    law, observed = said(Space(2, 4), 0)
    assert find_shares([law] * 3, observed, [3, 2, 9])[2] == pytest.approx(0.35, abs=1e-12)


def test_ties_go_to_the_kind_with_fewer_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of an even number of shares none is a half: 0.4 and 0.6 of six are equally near.
    monkeypatch.setattr("neurise.conditionals.committee.SHARES", 6)
    law, observed = said(Space(2, 4), 0)
    assert find_shares([law, law], observed, [10, 20]) == pytest.approx([0.6, 0.4], abs=1e-12)
    assert find_shares([law, law], observed, [20, 10]) == pytest.approx([0.4, 0.6], abs=1e-12)
    assert find_shares([law, law], observed, [10, 10]) == pytest.approx([0.6, 0.4], abs=1e-12)
