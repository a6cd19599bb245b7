"""D3PM with the truth in the place of its network, and its steps by explicit matrices."""

from __future__ import annotations

import math

import denoisers
import numpy as np
import torch
from torch import Tensor

from neurise import discovery
from neurise.models._d3pm.steps import Steps
from neurise.models.d3pm import D3PMChain, D3PMObjective, make_steps
from neurise.space import Space

SPACES = {"3 sites, 2 states": Space(3, 2), "2 sites, 3 states": Space(2, 3)}
NOISES = ["uniform", "absorbing"]


def steps_of(noise: str, space: Space, timesteps: int, *, posterior: str = "exact", offset: bool = False) -> Steps:
    kind = discovery.find("neurise.noise", noise)(space)
    return make_steps(kind, timesteps, posterior=posterior, offset=offset, device=torch.device("cpu"))


def true_chain(pmf: np.ndarray, space: Space, noise: str, timesteps: int, posterior: str = "exact") -> D3PMChain:
    """The reverse chain of a network that knows P(x_0,i | x_t)."""
    steps = steps_of(noise, space, timesteps, posterior=posterior)
    kind = discovery.find("neurise.noise", noise)(space)
    denoiser = denoisers.exact(torch.from_numpy(pmf), kind, lambda t: steps.keep[(t * timesteps).round().long()])
    return D3PMChain(denoiser, timesteps, steps)


def objective(chain: D3PMChain, bound_weight: float, ce_weight: float) -> D3PMObjective:
    return D3PMObjective(chain.denoiser, chain.steps, bound_weight, ce_weight)


def kernels(noise: str, states: int, timesteps: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Q_0 = 1, Q_1 … Q_T and their running products, [from, to], straight from the paper's β_t."""
    tokens = states + (noise == "absorbing")
    target = np.full(tokens, 1 / tokens) if noise == "uniform" else np.eye(tokens)[-1]

    def level(t: int) -> float:
        return math.cos((t / timesteps + 0.008) / 1.008 * math.pi / 2)

    single, running = [np.eye(tokens)], [np.eye(tokens)]
    for t in range(1, timesteps + 1):
        cosine, linear = min(1 - level(t) / level(t - 1), 0.999), 1 / (timesteps - t + 1)
        beta = cosine if noise == "uniform" else linear
        single.append((1 - beta) * np.eye(tokens) + beta * target)
        running.append(running[-1] @ single[-1])
    return single, running


def bayes_step(noise: str, pi: np.ndarray, t: int, x_t: int, timesteps: int) -> np.ndarray:
    """Σ_a π_a P(x_{t−1} | x_t, x_0 = a), each by Bayes' rule; where x_t rules tokens out, π is that of the others."""
    single, running = kernels(noise, len(pi), timesteps)
    total, mass = np.zeros(len(single[0])), 0.0
    for a, weight in enumerate(pi):
        joint = running[t - 1][a] * single[t][:, x_t]
        if joint.sum() > 0:
            total += weight * joint / joint.sum()
            mass += weight
    return total / mass


def every_pair(space: Space, tokens: int) -> tuple[Tensor, Tensor]:
    """All (x_0, x_t), two of (pairs, sites)."""
    clean, noised = space.configurations(), Space(space.sites, tokens).configurations().to(torch.int16)
    return clean.repeat_interleave(len(noised), 0), noised.repeat(len(clean), 1)


def forward_probability(noise: str, space: Space, timesteps: int, t: int, x_0: Tensor, x_t: Tensor) -> Tensor:
    """Return q(x_t | x_0) of each pair."""
    kernel = torch.from_numpy(kernels(noise, space.states, timesteps)[1][t])
    return kernel[x_0.long(), x_t.long()].prod(-1)
