"""Slow, plain, independent answers: explicit loops over every configuration, written from the paper's equations.

Nothing here uses the library's mathematics. Matrices are indexed [new, old] and configurations are in the order of
``itertools.product``: first site most significant.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from neurise.space import Space


def configurations(space: Space) -> list[tuple[int, ...]]:
    return list(itertools.product(range(space.states), repeat=space.sites))


def random_law(space: Space, seed: int, *, zeros: float = 0.0) -> np.ndarray:
    """A law without any structure; a share of its entries may be zero."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(0.5, size=space.size) * (rng.random(space.size) >= zeros)
    return weight / weight.sum()


def draw(space: Space, law: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Independent rows of a law, (n, sites) tokens."""
    places = np.random.default_rng(seed).choice(space.size, n, p=law)
    return np.array(configurations(space))[places]


def forward_kernel(space: Space, t: int, keep_prob: float) -> np.ndarray:
    """k_t(new, old) of the paper, entry by entry; step t touches site t mod q."""
    u, a = t % space.sites, (1 - keep_prob) / space.states
    kernel = np.zeros((space.size, space.size))
    for (i, new), (j, old) in itertools.product(enumerate(configurations(space)), repeat=2):
        if all(new[site] == old[site] for site in range(space.sites) if site != u):
            kernel[i, j] = a + keep_prob if new == old else a
    return kernel


def noised_laws(space: Space, law: np.ndarray, keep_prob: float, cycles: int) -> list[np.ndarray]:
    """μ_0 … μ_T by multiplying with one kernel after the other."""
    laws = [law]
    for t in range(cycles * space.sites):
        laws.append(forward_kernel(space, t, keep_prob) @ laws[-1])
    return laws


def bayes_kernel(space: Space, t: int, keep_prob: float, mu_t: np.ndarray) -> np.ndarray:
    """k_rev(x_t, x_{t+1}) = k(x_{t+1}, x_t) μ_t(x_t) / μ_{t+1}(x_{t+1}), without a word about conditionals."""
    kernel = forward_kernel(space, t, keep_prob)
    joint = kernel.T * mu_t[:, None]  # [x_t, x_{t+1}]
    return joint / joint.sum(axis=0, keepdims=True)


def conditional(space: Space, law: np.ndarray, site: int) -> np.ndarray:
    """μ(x_site = a | others) for every configuration, (p^q, p): row i asks in the context of configuration i."""
    probability = dict(zip(configurations(space), law, strict=True))
    table = np.zeros((space.size, space.states))
    for i, x in enumerate(configurations(space)):
        for token in range(space.states):
            table[i, token] = probability[(*x[:site], token, *x[site + 1 :])]
    return table / table.sum(axis=1, keepdims=True)


def empirical(space: Space, rows: torch.Tensor) -> np.ndarray:
    """Share of each configuration among rows of tokens."""
    place = {x: i for i, x in enumerate(configurations(space))}
    counts = np.zeros(space.size)
    for row in rows.tolist():
        counts[place[tuple(row)]] += 1
    return counts / len(rows)


def sampled_tv_tolerance(law: np.ndarray, n: float, failure: float = 1e-9) -> float:
    r"""A bound that TV(empirical law of n independent draws, law) exceeds with at most the given probability.

    The mean is at most :math:`\tfrac12 \sum_x \sqrt{\mu_x(1-\mu_x)/n}` (Jensen), and replacing one draw changes the TV by at
    most 1/n, so McDiarmid bounds the excess by :math:`\sqrt{\log(1/\text{failure}) / 2n}`.
    """
    mean = 0.5 * np.sqrt(law * (1 - law) / n).sum()
    return float(mean + math.sqrt(math.log(1 / failure) / (2 * n)))


def tv(first: np.ndarray, second: np.ndarray) -> float:
    return 0.5 * float(np.abs(np.asarray(first) - np.asarray(second)).sum())
