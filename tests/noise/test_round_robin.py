import itertools
import math

import numpy as np
import oracles
import pytest
import torch

from neurise import exact
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACE = Space(sites=3, states=4)  # sites != states, so that mixing them up fails
KEEP_PROBS = [0.0, 0.3, 0.9]


def test_step_t_visits_site_t_mod_q() -> None:
    noise = RoundRobin(SPACE, keep_prob=0.5, cycles=3)
    visited = [0] * SPACE.sites
    for t in range(noise.num_steps + 1):
        assert noise.visits(torch.tensor(t)).tolist() == visited
        visited[t % SPACE.sites] += 1
    assert noise.num_steps == 9
    assert noise.site(torch.arange(5)).tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_one_shot_law_equals_the_loop_over_kernels(keep_prob: float) -> None:
    noise = RoundRobin(SPACE, keep_prob=keep_prob, cycles=2)
    law = oracles.random_law(SPACE, seed=1)
    for t, expected in enumerate(oracles.noised_laws(SPACE, law, keep_prob, cycles=2)):
        np.testing.assert_allclose(exact.noised(law, noise, t).numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_corrupt_draws_the_noised_law(keep_prob: float) -> None:
    n, generator = 60_000, torch.Generator().manual_seed(2)
    noise = RoundRobin(SPACE, keep_prob=keep_prob, cycles=2)
    x_0 = torch.tensor([[3, 0, 2]], dtype=torch.uint8).expand(n, -1)
    start = np.zeros(SPACE.size)
    start[int(SPACE.index(x_0[0]))] = 1
    laws = oracles.noised_laws(SPACE, start, keep_prob, cycles=2)
    for t in (0, 2, 4):
        drawn = noise.corrupt(x_0, torch.full((n,), t), generator=generator)
        shares = torch.bincount(SPACE.index(drawn), minlength=SPACE.size).numpy() / n
        assert oracles.tv(shares, laws[t]) <= oracles.sampled_tv_tolerance(laws[t], n)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_single_steps_draw_the_kernel(keep_prob: float) -> None:
    n, generator = 60_000, torch.Generator().manual_seed(3)
    noise = RoundRobin(SPACE, keep_prob=keep_prob, cycles=2)
    old = torch.tensor([1, 2, 3], dtype=torch.uint8)
    for t in (0, 4):
        moved = noise.step(old.expand(n, -1), t, generator=generator)
        expected = oracles.forward_kernel(SPACE, t, keep_prob)[:, int(SPACE.index(old))]
        shares = torch.bincount(SPACE.index(moved), minlength=SPACE.size).numpy() / n
        assert oracles.tv(shares, expected) <= oracles.sampled_tv_tolerance(expected, n)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
@pytest.mark.parametrize("t", range(6))
def test_reverse_kernel_is_bayes(t: int, keep_prob: float) -> None:
    noise = RoundRobin(SPACE, keep_prob=keep_prob, cycles=2)
    mu_t = oracles.random_law(SPACE, seed=t)
    expected = oracles.bayes_kernel(SPACE, t, keep_prob, mu_t)
    u, x = t % SPACE.sites, SPACE.configurations()
    log_conditional = torch.from_numpy(oracles.conditional(SPACE, mu_t, u)).log()
    step = noise.reverse(log_conditional, x[:, u], torch.tensor([t])).exp()  # (x_{t+1}, new token)
    kernel = np.zeros((SPACE.size, SPACE.size))
    for old, token in itertools.product(range(SPACE.size), range(SPACE.states)):
        new = x[old].clone()
        new[u] = token
        kernel[int(SPACE.index(new)), old] = step[old, token]
    np.testing.assert_allclose(kernel, expected, atol=1e-13)


@pytest.mark.parametrize("keep_prob", [*KEEP_PROBS, 1 - 1e-12])
def test_reverse_never_divides_nothing_by_nothing(keep_prob: float) -> None:
    noise = RoundRobin(SPACE, keep_prob=keep_prob, cycles=1)
    impossible = torch.tensor([[0.0, -math.inf, -math.inf, -math.inf], [1e4, -1e4, 0.0, 0.0]], dtype=torch.float64)
    for token in range(4):
        step = noise.reverse(impossible, torch.full((2,), token), torch.tensor([0])).exp()
        torch.testing.assert_close(step.sum(-1), torch.ones(2, dtype=torch.float64))
        assert step[0, 0] == 1


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_push_is_the_reverse_kernel_applied_to_a_law(keep_prob: float) -> None:
    noise = RoundRobin(SPACE, keep_prob=keep_prob, cycles=1)
    generator = torch.Generator().manual_seed(4)
    law, conditional = torch.rand(2, 5, 4, generator=generator, dtype=torch.float64).softmax(-1)
    kernel = noise.reverse(conditional.log()[:, None, :], torch.arange(4), torch.tensor([0])).exp()  # (5, old, new)
    torch.testing.assert_close(noise.push(law, conditional, 0), torch.einsum("co,con->cn", law, kernel))


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_bridge_is_the_law_between_past_and_future(keep_prob: float) -> None:
    space, cycles = Space(sites=2, states=3), 3
    noise = RoundRobin(space, keep_prob=keep_prob, cycles=cycles)
    for t in range(noise.num_steps):
        u = t % space.sites
        for past, future in itertools.product(oracles.configurations(space), repeat=2):
            start = np.zeros(space.size)
            start[int(space.index(torch.tensor(past)))] = 1
            mu_t = oracles.noised_laws(space, start, keep_prob, cycles)[t]
            joint = oracles.forward_kernel(space, t, keep_prob)[int(space.index(torch.tensor(future)))] * mu_t
            if joint.sum() == 0:
                continue
            shares = [
                sum(w for w, x in zip(joint, oracles.configurations(space), strict=True) if x[u] == token)
                for token in range(space.states)
            ]
            bridge = noise.bridge(torch.tensor(past[u]), torch.tensor(future[u]), torch.tensor(t)).exp()
            np.testing.assert_allclose(bridge, np.array(shares) / joint.sum(), atol=1e-13)


@pytest.mark.parametrize("keep_prob", KEEP_PROBS)
def test_start_divergence_is_that_of_the_last_law_from_the_uniform_one(keep_prob: float) -> None:
    space = Space(sites=2, states=3)
    start = np.eye(space.size)[5]
    last = oracles.noised_laws(space, start, keep_prob, cycles=2)[-1]
    expected = sum(w * math.log(w * space.size) for w in last if w > 0)
    assert RoundRobin(space, keep_prob, 2).start_divergence() == pytest.approx(expected, abs=1e-12)


def test_hard_noise_erases_what_it_visits_and_soft_noise_nothing() -> None:
    t = torch.tensor([0, 2, 3])
    assert RoundRobin(SPACE, 0.0, 2).erased(t).tolist() == [[False] * 3, [True, True, False], [True] * 3]
    assert not RoundRobin(SPACE, 0.1, 2).erased(t).any()


@pytest.mark.parametrize("keep_prob", [1.0, -0.1, 1.5, math.nan])
def test_keep_prob_outside_its_range_is_refused(keep_prob: float) -> None:
    with pytest.raises(ValueError, match="keep_prob must be in"):
        RoundRobin(SPACE, keep_prob=keep_prob, cycles=1)


def test_keeping_always_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="no site would ever be noised"):
        RoundRobin(SPACE, keep_prob=1.0, cycles=1)


@pytest.mark.parametrize("cycles", [0, -2, 1.5])
def test_cycles_must_be_a_positive_whole_number(cycles: float) -> None:
    with pytest.raises(ValueError, match=f"cycles.*{cycles}"):
        RoundRobin(SPACE, keep_prob=0.5, cycles=cycles)  # type: ignore[arg-type]
