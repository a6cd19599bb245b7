"""Chains of any single-site noise, and their kernels written out configuration by configuration."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import torch
from fixtures import Untrained

from neurise import discovery
from neurise.conditionals.base import Frame
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.base import SiteNoise
from neurise.space import Space

FOUND = {name: discovery.find("neurise.noise", name) for name in discovery.names("neurise.noise")}
SITE_NOISE: dict[str, type] = {
    name: kind for name, kind in FOUND.items() if inspect.isclass(kind) and issubclass(kind, SiteNoise)
}


def on_the_way(noise: SiteNoise) -> Space:
    return Space(noise.space.sites, noise.tokens)


def every(noise: SiteNoise) -> list[tuple[int, ...]]:
    """All configurations on the way."""
    return list(itertools.product(range(noise.tokens), repeat=noise.space.sites))


def single(noise: SiteNoise) -> np.ndarray:
    """One visit to one site, k[new, old], as the noise tells it."""
    tokens = torch.arange(noise.tokens)
    return noise.log_noised_token(tokens, torch.ones_like(tokens)).exp().numpy().T


def forward(noise: SiteNoise, t: int) -> np.ndarray:
    """Step t as a matrix [new, old] over all configurations on the way."""
    u, k, states = t % noise.space.sites, single(noise), every(noise)
    kernel = np.zeros((len(states), len(states)))
    for (i, new), (j, old) in itertools.product(enumerate(states), repeat=2):
        if all(new[site] == old[site] for site in range(noise.space.sites) if site != u):
            kernel[i, j] = k[new[u], old[u]]
    return kernel


def embedded(noise: SiteNoise, law: np.ndarray) -> np.ndarray:
    """A law of the data among the configurations on the way."""
    wide = np.zeros(len(every(noise)))
    data = itertools.product(range(noise.space.states), repeat=noise.space.sites)
    wide[[every(noise).index(x) for x in data]] = law
    return wide


def laws(noise: SiteNoise, law: np.ndarray) -> list[np.ndarray]:
    """μ_0 … μ_T, by multiplying with one kernel after the other."""
    found = [embedded(noise, law)]
    for t in range(noise.num_steps):
        found.append(forward(noise, t) @ found[-1])
    return found


def backward(noise: SiteNoise, t: int, conditional: np.ndarray) -> np.ndarray:
    """Reverse step t as a matrix [new, old], from ``noise.reverse`` and the conditional in each context, (m^q, p)."""
    u, states = t % noise.space.sites, every(noise)
    here = torch.tensor(states)[:, u]
    with np.errstate(divide="ignore"):
        step = noise.reverse(torch.from_numpy(np.log(conditional)), here, torch.tensor([t])).exp().numpy()
    return moves(noise, u, step)


def moves(noise: SiteNoise, u: int, step: np.ndarray) -> np.ndarray:
    """The matrix [new, old] of a kernel that changes site u alone, from its rows (old, new token)."""
    states = every(noise)
    place = {x: i for i, x in enumerate(states)}
    kernel = np.zeros((len(states), len(states)))
    for j, old in enumerate(states):
        for token in range(noise.tokens):
            kernel[place[(*old[:u], token, *old[u + 1 :])], j] += step[j, token]
    return kernel


def answers(conditionals: object, t: int, u: int) -> np.ndarray:
    """What conditionals say of site u at time t in every configuration on the way, (m^q, p)."""
    x = torch.tensor(every(conditionals.noise), dtype=torch.int16)  # type: ignore[attr-defined]
    with torch.no_grad():
        found = conditionals.log_conditional(torch.tensor([t]), torch.tensor([u]), x)  # type: ignore[attr-defined]
    return found.double().softmax(-1).numpy()


def chain(conditionals: object, start: np.ndarray, sweeps: dict[int, int] | None = None) -> np.ndarray:
    """Law of the reverse chain with sweeps between its steps, as a product of matrices; over the data."""
    noise, current = conditionals.noise, start  # type: ignore[attr-defined]
    for t in reversed(range(noise.num_steps)):
        current = backward(noise, t, answers(conditionals, t, t % noise.space.sites)) @ current
        for _ in range((sweeps or {}).get(t, 0)):
            current = swept(conditionals, t, current)
    inside = (slice(0, noise.space.states),) * noise.space.sites
    return current.reshape([noise.tokens] * noise.space.sites)[inside].flatten()


def swept(conditionals: object, t: int, law: np.ndarray) -> np.ndarray:
    """One sweep by hand: from the last site to the first, each that is neither erased nor masked is redrawn."""
    noise = conditionals.noise  # type: ignore[attr-defined]
    first = min(t, noise.space.sites) if noise.keep_prob == 0 else 0
    for u in reversed(range(first, noise.space.sites)):
        table = answers(conditionals, t, u)
        step = np.zeros((len(table), noise.tokens))
        for j, old in enumerate(every(noise)):
            if old[u] == noise.space.states:
                step[j, old[u]] = 1  # a mask stays
            else:
                step[j, : noise.space.states] = table[j]
        law = moves(noise, u, step) @ law
    return law


def start(noise: SiteNoise) -> np.ndarray:
    law = np.ones(1)
    for _ in range(noise.space.sites):
        law = np.outer(law, noise.start_law().numpy()).flatten()
    return law


def untrained_with(
    noise: SiteNoise,
    *,
    hide_noised: bool = True,
    scale: float = 2.0,
    constant: tuple[int, ...] | None = None,
    unseen: float = 0.0,
) -> Untrained:
    """Conditionals with random weights in float64, for any noise; every context has its own answer."""
    module = SiteMLP(noise.space, noise.num_steps, width=8, depth=2)
    generator = torch.Generator().manual_seed(7)
    module.reset(generator)
    torch.nn.init.normal_(module.head, std=scale, generator=generator)
    only = torch.tensor(constant or [-1] * noise.space.sites)
    learnt = NetworkConditionals(module.double(), Frame(noise, 0, only), hide_noised=hide_noised)
    return Untrained(KnownSites(learnt, only, unseen=unseen) if constant else learnt)
