"""MDLM, flow matching with a mask, masked diffusion with one schedule and autoregression in any order have one loss."""

import itertools
import math

import masking
import numpy as np
import pytest
import torch
from torch import Tensor

from neurise.models._dfm.objective import Example as Noised
from neurise.models._dfm.objective import PosteriorObjective
from neurise.models._dfm.path import Path
from neurise.models._md4.objective import Example as Levels
from neurise.models._md4.objective import MaskingObjective
from neurise.space import Space

SPACES = [Space(3, 2), Space(2, 3)]
each_space = pytest.mark.parametrize("space", SPACES, ids=["3 sites, 2 states", "2 sites, 3 states"])


def prediction(space: Space) -> masking.AnyPrediction:
    """Any network whose answers do not depend on time."""
    one_schedule = torch.zeros(space.sites, space.states, dtype=torch.float64)
    return masking.AnyPrediction(space, one_schedule).requires_grad_(False)


def log_mu(network: masking.AnyPrediction, x: Tensor) -> Tensor:
    found: Tensor = network(None, x[None])[0].log_softmax(-1)
    return found


def hidden(x_0: Tensor, chosen: tuple[bool, ...], space: Space) -> Tensor:
    return torch.where(torch.tensor(chosen), space.states, x_0.to(torch.int16))


@each_space
@pytest.mark.parametrize("v", [1e-3, 0.5, 1.0])
def test_flow_matching_with_a_mask_and_a_linear_path_has_the_loss_of_mdlm(space: Space, v: float) -> None:
    r"""MDLM's loss at time t is :math:`-\alpha'/(1 - \alpha) \sum \log \mu(x_0)` over masked sites, with α = 1 − t."""
    network = prediction(space)
    flow = PosteriorObjective(masking.denoiser(network, space), Path("mask", 1.0), "generalised_kl")
    t = v**2
    for x_0, chosen in itertools.product(space.configurations(), masking.subsets(space.sites)):
        x = hidden(x_0, chosen, space)
        drawn = Noised(torch.tensor([v], dtype=torch.float64), x[None], None, x_0[None])
        answers = log_mu(network, x)
        mdlm = -sum(float(answers[i, int(x_0[i])]) for i in range(space.sites) if chosen[i]) / t
        assert float(flow.losses(network, drawn)) == pytest.approx(mdlm * 2 * v, rel=1e-9, abs=1e-12)  # dt = 2v dv


@each_space
def test_with_one_schedule_masked_diffusion_has_that_loss_too(space: Space) -> None:
    network, v = prediction(space), 0.6
    masked = MaskingObjective(masking.denoiser(network, space), 1.0)
    t = v**masked.power
    for x_0, chosen in itertools.product(space.configurations(), masking.subsets(space.sites)):
        level = torch.tensor([[[0.0 if gone else 1.0 for gone in chosen]]], dtype=torch.float64)
        drawn = Levels(torch.tensor([v], dtype=torch.float64), level, None, x_0[None])
        answers = log_mu(network, hidden(x_0, chosen, space))
        mdlm = -sum(float(answers[i, int(x_0[i])]) for i in range(space.sites) if chosen[i]) / t
        slope = masked.power * v ** (masked.power - 1)
        assert float(masked.losses(network, drawn)) == pytest.approx(mdlm * slope, rel=1e-9, abs=1e-12)


@each_space
def test_autoregression_in_any_order_has_the_same_expectation(space: Space) -> None:
    r"""Averaged over all orders, :math:`-\sum_k \log \mu(x_{\sigma_k} \mid x_{\sigma_1}, …, x_{\sigma_{k-1}})` is that integral."""
    network = prediction(space)
    flow = PosteriorObjective(masking.denoiser(network, space), Path("mask", 1.0), "generalised_kl")
    # In v the integrand is a polynomial of degree 2q − 1: q nodes would do.
    nodes, weights = np.polynomial.legendre.leggauss(space.sites + 1)
    v = torch.tensor((nodes + 1) / 2)
    for x_0 in space.configurations():
        integral = 0.0
        for chosen in masking.subsets(space.sites):
            x, gone = hidden(x_0, chosen, space), sum(chosen)
            drawn = Noised(v, x.expand(len(v), -1), None, x_0.expand(len(v), -1))
            chance = v ** (2 * gone) * (1 - v**2) ** (space.sites - gone)
            integral += float((torch.tensor(weights / 2) * chance * flow.losses(network, drawn)).sum())
        orders = list(itertools.permutations(range(space.sites)))
        total = 0.0
        for order in orders:
            for place, site in enumerate(order):
                known = set(order[:place])
                chosen = tuple(i not in known for i in range(space.sites))
                total -= float(log_mu(network, hidden(x_0, chosen, space))[site, int(x_0[site])])
        assert integral == pytest.approx(total / math.factorial(space.sites), rel=1e-9)
