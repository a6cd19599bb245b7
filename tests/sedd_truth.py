"""The true score of a small law under both noises, by plain enumeration, in the place of a network."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from neurise.modeling.joint import Denoiser, Noise
from neurise.models._sedd.forms import FORMS
from neurise.models._sedd.schedule import Schedule
from neurise.models._sedd.score import Score
from neurise.models.sedd import NOISES, SCHEDULES, ScoreChain
from neurise.space import Space


def total_noise(schedule: str, t: float) -> float:
    return -math.log(1 - 0.999 * t) if schedule == "loglinear" else 1e-4 ** (1 - t) * 20**t


def forward(noise: str, space: Space, sigma: float) -> np.ndarray:
    """Kernel [x_0, x_t] of all sites, (states^sites, tokens^sites), first site most significant."""
    states, keep = space.states, np.exp(-sigma)
    one = keep * np.eye(states)
    one = one + (1 - keep) / states if noise == "uniform" else np.hstack([one, np.full((states, 1), 1 - keep)])
    kernel = np.ones((1, 1))
    for _ in range(space.sites):
        kernel = np.kron(kernel, one)
    return kernel


def ratios(law: np.ndarray, tokens: int, space: Space) -> np.ndarray:
    """law(x with site i → y) / law(x) for every x, i and y, (tokens^sites, sites, states); 1 where law(x) is 0."""
    law = law.reshape([tokens] * space.sites)
    table = np.ones((*law.shape, space.sites, space.states))
    for x in np.argwhere(law > 0).tolist():
        for i in range(space.sites):
            for y in range(space.states):
                table[(*x, i, y)] = law[(*x[:i], y, *x[i + 1 :])] / law[tuple(x)]
    return table.reshape(-1, space.sites, space.states)


def output(form: str, log_score: Tensor) -> Tensor:
    """What a network of a form gives for a log-score, less the offset that masked sites are given."""
    score = log_score.exp()
    return {"log": log_score, "softplus": score.expm1().log() - math.log(math.e - 1), "raw": score - 1}[form]


class ExactScore(nn.Module):
    """What a perfect network would say: the score, less the offset that masked sites are given."""

    def __init__(self, pmf: np.ndarray, space: Space, noise: str, schedule: str, form: str = "log") -> None:
        super().__init__()
        self.pmf, self.space, self.noise, self.schedule, self.form = torch.tensor(pmf), space, noise, schedule, form

    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        clean, sites, states = self.space.configurations().long(), self.space.sites, self.space.states
        sigma = torch.tensor([total_noise(self.schedule, time) for time in t.tolist()], dtype=torch.float64)
        # What is said of masks does not depend on the time; at time 0 there are none to ask about.
        keep = torch.exp(-sigma if self.noise == "uniform" else -torch.ones(len(sigma))).double()
        keep = keep.expand(len(x))[:, None, None]
        kernel = keep * torch.eye(states)  # (n, from, to)
        if self.noise == "uniform":
            kernel = kernel + (1 - keep) / states
        else:
            kernel = torch.cat([kernel, (1 - keep).expand(-1, states, 1)], -1)
        rows = torch.arange(len(x))[:, None, None]
        factors = kernel[rows, clean, x.long()[:, None]]  # (n, configurations, sites)
        outputs = []
        for i in range(sites):
            weight = self.pmf * factors[..., [j for j in range(sites) if j != i]].prod(-1)
            changed = torch.einsum("nc,ncy->ny", weight, kernel[:, clean[:, i], :states])
            outputs.append(changed / (weight * factors[..., i]).sum(-1, keepdim=True))
        ratio = torch.stack(outputs, 1)
        scale = (1 / keep - 1) * states if self.noise == "absorbing" else 1
        return output(self.form, torch.log(ratio * scale))


def parts(
    noise: str, schedule: str, space: Space, network: nn.Module, form: str = "log"
) -> tuple[Denoiser, Score, Schedule]:
    """What an objective, a chain and a bound are made of."""
    make_noise, make_score = NOISES[noise]
    made: Noise = make_noise(space)
    denoiser = Denoiser(network, made, torch.full((space.sites,), -1), width=1)
    return denoiser, make_score(made, FORMS[form]), SCHEDULES[schedule]()


def exact_chain(
    pmf: np.ndarray, space: Space, noise: str, schedule: str, sampler: str, steps: int, form: str = "log"
) -> ScoreChain:
    """A sampler that knows the truth."""
    denoiser, score, made = parts(noise, schedule, space, ExactScore(pmf, space, noise, schedule, form), form)
    return ScoreChain(denoiser, steps + 1, score, made, sampler)
