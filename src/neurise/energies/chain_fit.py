r"""Maximum likelihood where no sum can be done: the moments are those of persistent chains.

A round sweeps the chains at the parameters :math:`\theta_0` and climbs the penalised likelihood that their importance weights
tell (:mod:`neurise.energies.chains`),

.. math:: L(\theta) - L(\theta_0) = (\theta - \theta_0) \cdot m
   - \log \Bigl\langle e^{(\theta - \theta_0) \cdot f} \Bigr\rangle_{\theta_0} - \text{penalty},

by natural-gradient steps :math:`(F + \lambda)^{-1} g`, which are halved until L rises and half of the chains are effectively left:
nothing diverges. F is the mean of the covariances of features in the chains and in the rows, which have what the others lack.
With n chains, moments that agree are off by :math:`N g^\top (F + \lambda)^{-1} g / d \approx N/n` in
units of the error of N rows. From there on the parameters of several rounds are averaged, until what the chains add to the error
of the rows is small.

**Graph.** Candidates are pairs whose loss would cost the regressions of both sites together more than a pair must be worth by the
extended Bayesian criterion, or, where regressions on all others are too many, pairs whose mutual information is worth it. Those
that the likelihood does not need (:func:`neurise.energies.graph_selection.wald`) go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import neighbours
from neurise.energies.chains import Chains, Snapshot, problems
from neurise.energies.family import Family
from neurise.energies.graph_selection import Rule, wald
from neurise.energies.maximum_likelihood import ENOUGH, SMOOTH, Aim, Prior
from neurise.energies.regressions import sample_of

MOST_PARAMETERS, MOST_UNASKED = 3000, 1000
"""Parameters at most: a step solves with a matrix of this size; and where the energy is one of several members."""
SWEEPS, STEPS, ROUNDS = 10, 4, 80
"""Sweeps of a round, steps that are made with its importance weights, and rounds until the moments must agree."""
CHECK, LONGER = 400, 4
"""Sweeps within which chains must forget where they were; and how many times as many they are given where that is not enough."""
EFFECTIVE = 0.5
"""Share of the chains that must be left after a step."""
LONGEST = 0.5
"""No parameter changes by more in one round."""
GAIN = 0.5
"""Share of a step that is made in each round which is averaged: less noise, and thus less of what is not linear in it."""
SHORTEST = 2.0**-12
"""Share of a step that is tried last."""
ADDED, LEAST_MEAN, MOST_MEAN = 0.1, 4, 40
"""What chains may add to the variance of the estimate, as a share of that of the rows; and rounds that are averaged."""
REFRESH = 4
"""Rounds after which the curvature is estimated again."""
PRUNINGS = 6
"""How often pairs are dropped at most."""


@dataclass(frozen=True)
class ChainFit:
    """Parameters by chains, and what is known of them."""

    family: Family
    theta: Tensor  # (size,)
    fisher: Tensor  # (size, size)
    penalty: Tensor  # (size,): λ
    count: float  # N
    chains: int
    rounds: int
    problems: tuple[str, ...]  # why it is not to be trusted
    shares: Tensor  # (kinds,): of the classes
    samples: list[Tensor]  # where the chains of each class stand, (chains, sites)

    def covariance(self) -> Tensor:
        r"""Return the covariance of the estimate, :math:`(N F + c)^{-1}`, given the graph."""
        inverse: Tensor = torch.linalg.inv(self.fisher + torch.diag(self.penalty + SMOOTH))
        return inverse / self.count


class _Climb:
    """The likelihood of rows, as chains see it."""

    def __init__(self, family: Family, aim: Aim, prior: Prior, chains: int) -> None:
        self.shrink = family.size / (family.size + 4 * chains)
        self.family, self.prior, self.count, self.mean = family, prior, aim.count, family.mean(aim.rows)

    def penalty(self, theta: Tensor) -> Tensor:
        """Return λ of each parameter."""
        return self.prior.weights(self.family, theta) / self.count

    def curvature(self, fisher: Tensor, theta: Tensor) -> Tensor:
        """Return Cholesky's factor of F + λ, in which off-diagonal entries count the less the fewer chains there are."""
        factor, failed, least = fisher, torch.ones(()), self.shrink
        while bool(failed):  # sums in float32 may have a direction of negative curvature
            mixed = (1 - least) * fisher + torch.diag(least * fisher.diagonal() + self.penalty(theta) + SMOOTH)
            factor, failed = torch.linalg.cholesky_ex(mixed)
            least = min(1.0, 4 * least)
        return factor

    def gradient(self, drawn: Snapshot, theta: Tensor) -> Tensor:
        """Return what the moments of the rows have more than those of the chains."""
        return self.mean - drawn.moved(theta).moments - self.penalty(theta) * theta

    def off(self, gradient: Tensor, factor: Tensor) -> float:
        """Return the mean square by which moments are off, in units of the variance of those of the rows."""
        return self.count * float(gradient @ _solved(factor, gradient)) / self.family.size

    def step(self, drawn: Snapshot, theta: Tensor, factor: Tensor) -> Tensor | None:
        """Return parameters that are more likely, as the weights of the chains tell; None where no step leads up."""
        step, start = _solved(factor, self.gradient(drawn, theta)), drawn.moved(theta).log_z
        length, cost = 1.0, self.prior.cost(self.family, theta)
        while length >= SHORTEST:
            there = theta + length * step
            if (
                float((there - drawn.theta).abs().max()) > LONGEST
            ):  # further away, what no chain has done is not weighed
                length /= 2
                continue
            moved = drawn.moved(there)
            rise = length * float(step @ self.mean) - (moved.log_z - start)
            if moved.effective >= EFFECTIVE and rise * self.count > self.prior.cost(self.family, there) - cost:
                return there
            length /= 2
        return None


def _solved(factor: Tensor, gradient: Tensor) -> Tensor:
    return torch.cholesky_solve(gradient[:, None], factor).squeeze(1)


def fit(
    family: Family,
    aim: Aim,
    *,
    prior: Prior,
    start: Tensor | None = None,
    device: torch.device | None = None,
    seed: int = 0,
    work: Work | None = None,
    check: int = CHECK,
) -> ChainFit:
    """Match the moments of chains to those of rows.

    Without ``check`` sweeps at the end this is a draft, and it is not known whether chains mix.
    """
    work, chains = work or Work(), Chains.at_rows(family, aim, device=device, seed=seed)
    climb = _Climb(family, aim, prior, chains.number)
    theta = pseudo_likelihood(family, aim, work) if start is None else start
    noise = climb.count / chains.number
    allowed = (
        ENOUGH**2 + 4 * noise
    )  # a step adds the noise of its own chains to that of the next: twice the mean of both
    wanted = min(MOST_MEAN, max(LEAST_MEAN, math.ceil(noise / ADDED))) if check else LEAST_MEAN
    total, averaged, made, off = torch.zeros_like(theta), 0, 0, math.inf
    of_rows = family.covariance(chains.run(theta, 0, work).samples, aim.shares)
    fisher, factor = of_rows, climb.curvature(of_rows, theta)
    while averaged < wanted and made - averaged < ROUNDS and work.left():
        drawn = chains.run(theta, SWEEPS, work)
        if made % REFRESH == 0:
            fisher = (of_rows + family.covariance(drawn.samples, aim.shares)) / 2
            factor = climb.curvature(fisher, theta)
        gradient = climb.gradient(drawn, theta)
        off = climb.off(gradient, factor)
        made += 1
        if averaged or off <= allowed:
            step = GAIN * _solved(factor, gradient)
            theta = theta + step * min(1.0, LONGEST / float(step.abs().max().clamp(min=LONGEST)))
            total, averaged = total + theta, averaged + 1
            continue
        for _ in range(STEPS):
            there = climb.step(drawn, theta, factor)
            if there is None:
                break
            theta = there
    theta = total / averaged if averaged else theta
    found = [] if averaged or not work.left() else [_apart(off, f"after {made} rounds")]
    if check and averaged and work.left():
        for sweeps in (check, LONGER * check):
            found = problems(chains, theta, sweeps=sweeps, seed=seed + 1, work=work)
            if not found:
                break
        drawn = chains.run(theta, 0, work)
        fisher = (of_rows + family.covariance(drawn.samples, aim.shares)) / 2
        off = climb.off(climb.gradient(drawn, theta), climb.curvature(fisher, theta))
        found += [_apart(off, f"after {sweeps} sweeps more")] if off > allowed and work.left() else []
    return ChainFit(
        family,
        theta,
        fisher,
        climb.penalty(theta),
        climb.count,
        chains.number,
        made,
        tuple(found if work.left() else ()),
        aim.shares,
        chains.run(theta, 0, work).samples,
    )


def _apart(off: float, when: str) -> str:
    return f"{when} the moments of chains and rows differ by {math.sqrt(off):.1f} standard errors"


def pseudo_likelihood(family: Family, aim: Aim, work: Work) -> Tensor:
    """Return parameters by regressions of every site on its neighbours, both directions averaged; classes have the same."""
    space, edges = family.space, torch.from_numpy(family.edges)
    near = torch.zeros(space.sites, space.sites, dtype=torch.bool)
    near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = True
    found = neighbours.fit(aim.rows, space.states, near, device=torch.device("cpu"), work=work)[0]
    tables = found.pair.double().view(space.sites, space.states, space.sites, space.states).transpose(1, 2)
    tables = (tables + tables.permute(1, 0, 3, 2)) / 2
    inside = space.allowed().double()
    sizes = inside.sum(1)
    dual = family.basis / sizes[:, None, None]
    # What a table says on average over the states that a neighbour has belongs to the field.
    fields = found.bias.double() + torch.einsum("ijab,jb->ia", tables, inside / sizes[:, None])
    own = torch.einsum("iac,ia->ic", dual, fields)[tuple(family.columns.T)]
    first, second = edges.unbind(1)
    couplings = dual[first].mT @ tables[first, second] @ dual[second]
    one, two, pair = family.pairs.unbind(1)
    number = family.columns[:, 1]
    return torch.cat([own.repeat(family.kinds), couplings[pair, number[one], number[two]]])


def candidates(family: Family, rule: Rule, costs: Tensor) -> Family:
    """Return the family of the pairs that may be worth their price by costs (sites, sites)."""
    cost = costs[tuple(torch.from_numpy(family.edges).T)].numpy()
    return family.restricted(cost > rule.price(family))[0]


def information(aim: Aim, states: int) -> Tensor:
    """Return the mutual information of every pair of sites, in nats of all rows, (sites, sites)."""
    sample = sample_of(aim.rows, states, torch.device("cpu"))
    sites = aim.rows.x.shape[1]
    shown = torch.nn.functional.one_hot(aim.rows.x.cpu()[sample.place].long(), states).float().flatten(1)
    joint = ((shown * sample.weight[:, None]).T @ shown).double().view(sites, states, sites, states).transpose(1, 2)
    own = joint.diagonal(dim1=0, dim2=1).diagonal(dim1=0, dim2=1)  # (sites, states)
    product = own[:, None, :, None] * own[None, :, None, :]
    return aim.count * torch.where(joint > 0, joint * (joint / product.clamp(min=1e-30)).log(), 0.0).sum((2, 3))


def select(family: Family, aim: Aim, rule: Rule, device: torch.device | None) -> ChainFit:
    """Drop pairs that are worth less than their price until there are none; chains are asked whether they mix at the end."""
    options: dict[str, Any] = {"prior": rule.prior, "device": device, "seed": rule.seed, "work": rule.work}
    found = fit(family, aim, check=0, **options)
    for _ in range(PRUNINGS):
        kept = wald(found) >= rule.price(found.family)
        if kept.all() or found.problems or not rule.work.left():
            break
        fewer, places = found.family.restricted(kept)
        found = fit(fewer, aim, start=found.theta[places], check=0, **options)
    if found.problems or not rule.work.left():
        return found
    return fit(found.family, aim, start=found.theta, **options)
