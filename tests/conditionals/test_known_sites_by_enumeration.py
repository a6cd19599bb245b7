"""Sites that never vary: the exact answer there, and nothing of them elsewhere."""

from __future__ import annotations

import itertools
from typing import Any

import conditionals_cases as cases
import numpy as np
import oracles
import pytest
import tiny
import torch

from neurise import exact
from neurise.conditionals.base import Conditionals
from neurise.conditionals.committee import Committee
from neurise.conditionals.known_sites import KnownSites
from neurise.space import Space

SPACES = {"bits": (Space(4, 2), [-1, 1, -1, 0]), "four": (Space(3, 4), [-1, 2, -1])}
"""Spaces, and the only token of each site or −1: never the first site alone, nor the last."""
NOISES: dict[str, dict[str, Any]] = {"hard": {}, "soft": {"keep_prob": 0.4, "cycles": 2}}
both = pytest.mark.parametrize(("space", "constant"), SPACES.values(), ids=SPACES)
noises = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
shares = pytest.mark.parametrize("unseen", [0.0, 0.05])
kinds = pytest.mark.parametrize("kind", [*cases.KINDS, "committee"])


def known(
    space: Space, constant: list[int], noise: dict[str, Any], unseen: float, kind: str = "site_mlp"
) -> KnownSites:
    where = cases.frame(space, **noise, constant=constant)
    if kind == "committee":
        members = [cases.single(own, where, seed) for seed, own in enumerate(("site_mlp", "pairwise sum"))]
        inner: Conditionals = Committee(members, [0.3, 0.7])
    else:
        inner = cases.single(kind, where)
    return KnownSites(inner, where.constant, unseen=unseen)


@both
@noises
@shares
@kinds
def test_a_constant_site_follows_its_noised_law(
    space: Space, constant: list[int], noise: dict[str, Any], unseen: float, kind: str
) -> None:
    asked = known(space, constant, noise, unseen, kind)
    for site in (site for site, token in enumerate(constant) if token >= 0):
        clean = np.full(space.states, unseen)
        clean[constant[site]] = 1 - (space.states - 1) * unseen
        # The law of the site alone, pushed through the kernels of its own steps one by one.
        laws = oracles.noised_laws(Space(1, space.states), clean, noise.get("keep_prob", 0.0), noise.get("cycles", 1))
        for cycle in range(asked.noise.cycles):
            t, u = torch.tensor([cycle * space.sites + site]), torch.tensor([site])
            found = asked.log_conditional(t, u, space.configurations()).exp()
            np.testing.assert_allclose(found, np.tile(laws[cycle], (space.size, 1)), rtol=1e-12)


@both
@noises
@shares
@kinds
def test_what_a_constant_site_holds_tells_nothing_of_the_others(
    space: Space, constant: list[int], noise: dict[str, Any], unseen: float, kind: str
) -> None:
    asked = known(space, constant, noise, unseen, kind)
    only = torch.tensor(constant)
    for t, u, x in cases.questions(asked):
        if constant[int(u)] >= 0:
            continue
        usual = torch.where(only >= 0, only, x).to(x.dtype)
        found = asked.log_conditional(t, u, x)
        torch.testing.assert_close(found, asked.log_conditional(t, u, usual), rtol=1e-12, atol=1e-12)
        if int(u) == 0 and int(t) == 0:
            assert found.std(0).min() > 1e-6  # and the sites that vary do


@both
@noises
@shares
@kinds
def test_the_law_is_that_of_the_constant_sites_times_that_of_the_others(
    space: Space, constant: list[int], noise: dict[str, Any], unseen: float, kind: str
) -> None:
    asked = known(space, constant, noise, unseen, kind)
    fixed = [site for site, token in enumerate(constant) if token >= 0]
    others = [site for site in range(space.sites) if site not in fixed]
    law = exact.chain_law(asked).view([space.states] * space.sites).permute(fixed + others)
    table = law.reshape(space.states ** len(fixed), -1).numpy()
    np.testing.assert_allclose(table, np.outer(table.sum(1), table.sum(0)), rtol=1e-10, atol=1e-15)
    if "keep_prob" not in noise:  # one visit erases all, so that the reverse chain ends in the very law
        mass = np.full((len(fixed), space.states), unseen)
        for row, site in enumerate(fixed):
            mass[row, constant[site]] = 1 - (space.states - 1) * unseen
        wanted = [np.prod(choice) for choice in itertools.product(*mass)]
        np.testing.assert_allclose(table.sum(1), wanted, rtol=1e-12)


@both
@noises
@shares
@kinds
@pytest.mark.parametrize("sweep", [False, True], ids=["chain", "sweep"])
def test_walks_answer_as_the_reference(
    space: Space, constant: list[int], noise: dict[str, Any], unseen: float, kind: str, sweep: bool
) -> None:
    if sweep and kind == "local_mlp":
        pytest.skip("each of its networks knows one site")
    asked, x = known(space, constant, noise, unseen, kind), space.configurations()
    for cycle in range(1 if sweep else asked.noise.cycles):
        found = cases.as_log_law(cases.walked(asked, x, None, cycle, sweep=sweep), space.states)
        wanted = cases.recomputed(asked, x, None, cycle, sweep=sweep)
        torch.testing.assert_close(found.exp(), wanted.exp(), rtol=1e-9, atol=1e-12)


@both
@pytest.mark.parametrize("laid_out", [False, True])
def test_laying_it_out_changes_nothing(space: Space, constant: list[int], laid_out: bool) -> None:
    asked, x = known(space, constant, {}, 0.05, "committee"), space.configurations()
    before = asked.log_conditionals(x)
    if laid_out:
        asked.lay_out()
    torch.testing.assert_close(asked.log_conditionals(x), before, rtol=1e-12, atol=1e-12)


# --- models ------------------------------------------------------------------------------------------------------------

ROWS = np.array(list(itertools.product([0, 1, 2], repeat=4)))


@pytest.mark.parametrize(("members", "pairwise"), [(1, False), (2, False), (2, True)], ids=str)
def test_a_symbol_that_was_never_seen_is_unlikely_or_impossible(members: int, pairwise: bool) -> None:
    X = np.random.default_rng(0).choice(3, size=(60, 4))
    X[:, 1] = 2
    for unseen in (1e-6, 0.0):
        one = tiny.model(members=members, architecture__pairwise=pairwise, chain__unseen=unseen).fit(X, max_steps=20)
        law, log_prob = exact.law(one).numpy(), one.log_prob(ROWS)
        seen = ROWS[:, 1] == 2
        np.testing.assert_allclose(np.exp(log_prob), law, rtol=1e-5)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert np.isfinite(log_prob[seen]).all()
        if not unseen:
            assert (log_prob[~seen] == -np.inf).all()
            continue
        # Whichever symbol it is, the others are judged as if it were the one that was always there.
        for other in (0, 1):
            ratio = log_prob[ROWS[:, 1] == other] - log_prob[seen]
            np.testing.assert_allclose(ratio, np.log(1e-6 / (1 - 2e-6)), atol=1e-4)


@pytest.mark.parametrize("unseen", [-0.1, 0.5, 1, float("nan"), "no", True])
def test_a_probability_that_cannot_be_is_refused(unseen: Any) -> None:
    with pytest.raises(ValueError, match=r"unseen must be in \[0, 1/2\)"):
        tiny.model(chain__unseen=unseen).fit(tiny.spins(), max_steps=1)
