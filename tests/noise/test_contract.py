"""What every noise process that touches one site per step promises, against its kernels written out."""

import itertools
from functools import cache

import chi_square
import noisy
import numpy as np
import oracles
import pytest
import torch

from neurise import exact
from neurise.noise.base import SiteNoise
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]
CASES = [
    (name, space, keep_prob, steps)
    for name, (space, keep_prob) in itertools.product(
        noisy.SITE_NOISE, [(SPACES[0], 0.0), (SPACES[0], 0.4), (SPACES[1], 0.0), (SPACES[1], 0.7)]
    )
    for steps in (space.sites, 2 * space.sites + 1)
]


def build(case: tuple[str, Space, float, int]) -> SiteNoise:
    name, space, keep_prob, steps = case
    return noisy.SITE_NOISE[name](space, keep_prob, cycles=1, steps=steps)


@cache
def noised_laws(case: tuple[str, Space, float, int], place: int | None = None) -> list[np.ndarray]:
    noise = build(case)
    law = oracles.random_law(noise.space, seed=1) if place is None else np.eye(noise.space.size)[place]
    return noisy.laws(noise, law)


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1].states}^{case[1].sites}-{case[2]}-T{case[3]}")
def case(request: pytest.FixtureRequest) -> tuple[str, Space, float, int]:
    return request.param


def assert_drawn(noise: SiteNoise, rows: torch.Tensor, law: np.ndarray) -> None:
    places = noisy.on_the_way(noise).index(rows.long()).numpy()
    if (law > 0).sum() == 1:
        assert (places == law.argmax()).all()
    else:
        chi_square.assert_drawn_from(places, law)


def test_both_kinds_are_found() -> None:
    assert {"round_robin", "masked_round_robin"} <= set(noisy.SITE_NOISE)


def test_several_visits_are_powers_of_one(case: tuple[str, Space, float, int]) -> None:
    noise = build(case)
    k, tokens = noisy.single(noise), torch.arange(noise.tokens)
    np.testing.assert_allclose(k.sum(0), 1, atol=1e-15)
    for visits in range(4):
        found = noise.log_noised_token(tokens, torch.full_like(tokens, visits)).exp().numpy().T
        np.testing.assert_allclose(found, np.linalg.matrix_power(k, visits), atol=1e-15)
        law = torch.rand(5, noise.space.states, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        spread = law.numpy() @ np.linalg.matrix_power(k, visits).T[: noise.space.states]
        np.testing.assert_allclose(noise.spread(law, visits), spread, atol=1e-15)


def test_corrupt_draws_the_product_of_the_steps(case: tuple[str, Space, float, int]) -> None:
    noise, generator, n = build(case), torch.Generator().manual_seed(2), 4000
    place = noise.space.size - 2
    x_0 = noise.space.configurations()[place].expand(n, -1)
    for t, law in enumerate(noised_laws(case, place)):
        assert_drawn(noise, noise.corrupt(x_0, torch.full((n,), t), generator=generator), law)


def test_the_law_of_a_time_is_the_product_of_the_steps(case: tuple[str, Space, float, int]) -> None:
    noise = build(case)
    for t, law in enumerate(noised_laws(case)):
        np.testing.assert_allclose(
            exact.noised(noised_laws(case)[0][noisy.embedded(noise, np.ones(noise.space.size)) > 0], noise, t),
            law,
            atol=1e-14,
        )


def test_the_target_follows_the_exact_conditional(case: tuple[str, Space, float, int]) -> None:
    """Every (x_0, x_t) with its probability: what ``target`` returns, counted by what the other sites show."""
    noise = build(case)
    pmf, states = oracles.random_law(noise.space, seed=1), noisy.every(noise)
    conditionals = exact.ExactConditionals(pmf, noise)
    clean = noise.space.configurations()
    for t in range(noise.num_steps):
        for u in range(noise.space.sites):
            counts = np.zeros((len(states), noise.space.states))
            for place, probability in enumerate(pmf):
                x_t = torch.tensor(states, dtype=torch.int16)
                x_0 = clean[place].expand(len(states), -1)
                token = noise.target(x_0, x_t, torch.full((len(states),), u)).tolist()
                for j, weight in enumerate(noised_laws(case, place)[t]):
                    if weight:
                        counts[j, token[j]] += probability * weight
            split = counts.reshape(noise.tokens**u, noise.tokens, -1, noise.space.states)
            summed = np.broadcast_to(split.sum(1, keepdims=True), split.shape).reshape(counts.shape)
            possible = summed.sum(1) > 0
            expected = summed[possible] / summed[possible].sum(1, keepdims=True)
            found = noisy.answers(conditionals, t, u)[possible]
            np.testing.assert_allclose(found, expected, atol=1e-13)


def test_reverse_with_exact_conditionals_undoes_a_step(case: tuple[str, Space, float, int]) -> None:
    noise, laws = build(case), noised_laws(case)
    conditionals = exact.ExactConditionals(oracles.random_law(noise.space, seed=1), noise)
    for t in range(noise.num_steps):
        kernel = noisy.backward(noise, t, noisy.answers(conditionals, t, t % noise.space.sites))
        joint = noisy.forward(noise, t).T * laws[t][:, None]  # [x_t, x_{t+1}]
        seen = laws[t + 1] > 0
        np.testing.assert_allclose(kernel[:, seen], joint[:, seen] / joint.sum(0)[seen], atol=1e-13)
        np.testing.assert_allclose(kernel @ laws[t + 1], laws[t], atol=1e-14)


def test_push_and_push_redraw_are_matrices(case: tuple[str, Space, float, int]) -> None:
    noise, generator = build(case), torch.Generator().manual_seed(4)
    law = torch.rand(5, noise.tokens, generator=generator, dtype=torch.float64).softmax(-1)
    conditional = torch.rand(5, noise.space.states, generator=generator, dtype=torch.float64).softmax(-1)
    tokens = torch.arange(noise.tokens)
    for t in range(noise.num_steps):
        kernel = noise.reverse(conditional.log()[:, None, :], tokens, torch.tensor([t])).exp()  # (5, old, new)
        torch.testing.assert_close(kernel.sum(-1), torch.ones_like(kernel[..., 0]))
        torch.testing.assert_close(noise.push(law, conditional, t), torch.einsum("co,con->cn", law, kernel))
    kernel = noise.redraw(conditional.log()[:, None, :].expand(-1, noise.tokens, -1), tokens).exp()
    torch.testing.assert_close(kernel.sum(-1), torch.ones_like(kernel[..., 0]))
    torch.testing.assert_close(noise.push_redraw(law, conditional), torch.einsum("co,con->cn", law, kernel))


def test_redraw_leaves_the_law_of_its_time_as_it_is(case: tuple[str, Space, float, int]) -> None:
    noise, laws = build(case), noised_laws(case)
    conditionals = exact.ExactConditionals(oracles.random_law(noise.space, seed=1), noise)
    for t in range(noise.num_steps):
        np.testing.assert_allclose(noisy.swept(conditionals, t, laws[t]), laws[t], atol=1e-14)
        np.testing.assert_allclose(exact.swept(conditionals, torch.from_numpy(laws[t]), t=t), laws[t], atol=1e-14)


def test_bridge_is_bayes(case: tuple[str, Space, float, int]) -> None:
    noise = build(case)
    k = noisy.single(noise)
    for t in range(noise.num_steps):
        before = np.linalg.matrix_power(k, t // noise.space.sites)
        for past, future in itertools.product(range(noise.space.states), range(noise.tokens)):
            joint = k[future] * before[:, past]
            if joint.sum():
                bridge = noise.bridge(torch.tensor(past), torch.tensor(future), torch.tensor(t)).exp()
                np.testing.assert_allclose(bridge, joint / joint.sum(), atol=1e-13)


def test_paths_of_a_bound_end_where_the_chain_starts(case: tuple[str, Space, float, int]) -> None:
    noise, generator, n, place = build(case), torch.Generator().manual_seed(5), 4000, 1
    start, laws = noisy.start(noise), noised_laws(case, place)
    after = (start > 0).astype(float)  # chance to end in a possible state, given the present one
    ends = [after]
    for t in reversed(range(noise.num_steps)):
        ends.append(noisy.forward(noise, t).T @ ends[-1])
    x_0 = noise.space.configurations()[place].expand(n, -1)
    for t, (law, chance) in enumerate(zip(laws, reversed(ends), strict=True)):
        expected = law * chance / (law * chance).sum()
        assert_drawn(noise, noise.pinned(x_0, torch.full((n,), t), generator=generator), expected)
    last = laws[-1] * after / (laws[-1] * after).sum()
    divergence = sum(q * np.log(q / p) for q, p in zip(last, start, strict=True) if q)
    assert noise.start_divergence() == pytest.approx(divergence, abs=1e-12)


def test_the_start_is_drawn_from_its_law(case: tuple[str, Space, float, int]) -> None:
    noise = build(case)
    assert_drawn(noise, noise.start(4000, generator=torch.Generator().manual_seed(6)), noisy.start(noise))


def test_hard_noise_erases_what_it_visits(case: tuple[str, Space, float, int]) -> None:
    """An erased site is independent of x_0; no other site is."""
    noise = build(case)
    for t in range(noise.num_steps + 1):
        for site, erased in enumerate(noise.erased(torch.tensor(t)).tolist()):
            visits = noise.visits(torch.tensor(t))[site]
            shown = noise.log_noised_token(torch.arange(noise.space.states), visits).exp()
            assert bool((shown == shown[0]).all()) is erased
