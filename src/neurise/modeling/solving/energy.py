"""Solve for the energy of the data, by maximum likelihood on the graph that is known, or on one that the data choose.

Products of three and four spins join it where no graph is known and held-back rows ask for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.conditionals.base import Frame
from neurise.conditionals.energy_conditionals import EnergyConditionals
from neurise.deadline import Work
from neurise.energies import chain_fit, choosing, higher_orders, learning, maximum_likelihood
from neurise.energies.chain_fit import ChainFit
from neurise.energies.draws import draws
from neurise.energies.family import Family
from neurise.energies.learning import Declined, Learnt, Sampled
from neurise.energies.maximum_likelihood import Aim, Fit
from neurise.energies.products import ProductFit
from neurise.interactions import Interactions
from neurise.modeling.solving.base import Solved, Teacher
from neurise.rows import Rows
from neurise.space import Space

MANY_ROWS = 20_000
"""Rows from which on a graph that most of them have chosen is not chosen again by all of them; nor is it in large spaces."""


def energy(
    rows: Rows, held: Rows | None, frame: Frame, *, seed: int, work: Work, near: Tensor | None = None
) -> Solved | Teacher | None:
    """Learn the energy of the sites that vary; None where no way leads to one.

    Where its sums are too many, Markov chains learn it. Where those of its conditionals are, it teaches.
    """
    varies = torch.nonzero(frame.constant.cpu() < 0).flatten()
    space = Space.of([frame.noise.space.digits[site] for site in varies.tolist()])
    options: dict[str, Any] = {"classes": frame.classes, "device": frame.constant.device, "seed": seed, "work": work}
    own, aside = _sites(rows, varies), None if held is None else _sites(held, varies)
    options["graph"] = None if near is None else torch.nonzero(near.cpu()[varies][:, varies].triu(1)).numpy()
    found = learning.learn(own, space, held=aside, chains=held is not None, judged=True, **options)
    if isinstance(found, Declined):
        return None
    if isinstance(found, Sampled):
        return _made_by_chains(found, found.found, frame, varies, seed) or _teacher(found, frame, varies)
    higher = None if near is not None else higher_orders.choose(found, own, held=aside, seed=seed, work=work)
    if higher is not None:
        made = _made_of_products(higher, found.selected.family.edges, frame, varies)
        if made is not None:
            return made
    return _made(found, found.found, frame, varies, seed, near) or _teacher(found, frame, varies)


def _teacher(found: Learnt | Sampled, frame: Frame, varies: Tensor) -> Teacher:
    """Draw rows of a law whose conditionals would need tables that are too large."""

    def draw(n: int, seed: int, work: Work) -> Rows:
        rows = draws(found, n, seed=seed, work=work, device=frame.constant.device)
        x = frame.constant.cpu().clamp(min=0).to(torch.uint8).repeat(len(rows), 1)
        x[:, varies] = rows.x
        return replace(rows, x=x)

    return Teacher(draw, found.words)


def _made_by_chains(learnt: Sampled, found: ChainFit, frame: Frame, varies: Tensor, seed: int) -> Solved | None:
    """Make conditionals of what Markov chains have learnt; solved for again, the graph stays."""
    conditionals = EnergyConditionals.of(_laws(found.family, found.theta, frame, varies), frame)
    if conditionals is None:
        return None
    is_edge = torch.ones(len(found.family.edges), dtype=torch.bool)
    conditionals.describe_estimate(*_errors(found.family, found.theta, found.covariance(), frame, varies), is_edge)

    def again(rows: Rows, work: Work) -> Solved | None:
        own, device = Aim.of(_sites(rows, varies), found.family.classes), frame.constant.device
        options: dict[str, Any] = {"device": device, "seed": seed, "work": work, "check": 0}
        refitted = chain_fit.fit(found.family, own, prior=choosing.PRIOR, start=found.theta, **options)
        return _made_by_chains(learnt, refitted, frame, varies, seed)

    return Solved(conditionals, found.family.size, learnt.words, again)


def _made_of_products(found: ProductFit, pairs: np.ndarray, frame: Frame, varies: Tensor) -> Solved | None:
    """Make conditionals of a law with higher products; solved for again, other rows choose products from the same pairs."""
    places = {own: place for place, own in enumerate(found.sets)}
    edges = [own for own in found.sets if len(own) == 2]
    higher = [own for own in found.sets if len(own) > 2]
    family = Family(Space(found.sites, 2), np.array(edges, dtype=np.int64).reshape(-1, 2))
    kept = [places[own] for own in (*((site,) for site in range(found.sites)), *edges)]
    theta = torch.from_numpy(found.theta[kept])
    covariance = torch.from_numpy(found.covariance[np.ix_(kept, kept)])
    sites = [tuple(varies[list(own)].tolist()) for own in higher]
    conditionals = EnergyConditionals.of(_laws(family, theta, frame, varies), frame, sites)
    if conditionals is None:
        return None
    number = [places[own] for own in higher]
    conditionals.describe_products(found.theta[number], np.sqrt(found.covariance.diagonal()[number]))
    conditionals.describe_estimate(
        *_errors(family, theta, covariance, frame, varies), torch.ones(len(edges), dtype=torch.bool)
    )

    def again(rows: Rows, work: Work) -> Solved | None:
        other = higher_orders.find(_sites(rows, varies), pairs, work=work)
        return None if other is None else _made_of_products(other, pairs, frame, varies)

    counted = {order: sum(len(own) == order for own in higher) for order in (3, 4)}
    words = (
        f"maximum likelihood on {len(edges)} pairs, {counted[3]} products of three sites and {counted[4]} of four "
        f"found by the extended Bayesian criterion, {len(found.sets)} parameters; held-back rows ask for the products"
    )
    return Solved(conditionals, len(found.sets), words, again)


def _made(learnt: Learnt, found: Fit, frame: Frame, varies: Tensor, seed: int, near: Tensor | None) -> Solved | None:
    """Make conditionals of a fit to the sites that vary; solved for again, few rows choose the graph anew."""
    conditionals = EnergyConditionals.of(_laws(found.family, found.theta, frame, varies), frame)
    if conditionals is None:
        return None
    chosen = set(map(tuple, learnt.selected.family.edges.tolist()))
    is_edge = torch.tensor([tuple(pair) in chosen for pair in found.family.edges.tolist()], dtype=torch.bool)
    conditionals.describe_estimate(*_errors(found.family, found.theta, found.covariance(), frame, varies), is_edge)

    def again(rows: Rows, work: Work) -> Solved | None:
        if len(rows) < MANY_ROWS and found.family.space.size <= choosing.QUICK:
            chosen_again = energy(rows, None, frame, seed=seed, work=work, near=near)
            return chosen_again if isinstance(chosen_again, Solved) else None
        own = Aim.of(_sites(rows, varies), found.family.classes)
        refitted = maximum_likelihood.fit(found.laws, own, prior=found.prior, start=found.theta, seed=seed, work=work)
        return _made(learnt, refitted, frame, varies, seed, near)

    return Solved(conditionals, found.family.size, learnt.words, again)


def _sites(rows: Rows, varies: Tensor) -> Rows:
    """Return rows with the sites that vary, on the CPU."""
    return replace(rows.to(torch.device("cpu")), x=rows.x.cpu()[:, varies])


def _laws(family: Family, theta: Tensor, frame: Frame, varies: Tensor) -> list[Interactions]:
    """Return the law of each class over all sites; those that never vary have no terms."""
    space, sites = frame.noise.space, varies.numpy()
    laws = []
    for kind in range(family.kinds):
        own = family.interactions(theta, kind)
        fields = np.zeros((space.sites, space.states))
        fields[sites, : own.states] = own.fields
        tables = np.zeros((len(own.edges), space.states, space.states))
        tables[:, : own.states, : own.states] = own.tables
        laws.append(Interactions(sites[own.edges], tables, fields, space.sizes))
    return laws


def _errors(family: Family, theta: Tensor, covariance: Tensor, frame: Frame, varies: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return standard errors of the scores of all pairs, (pairs,), and of the fields, (classes, sites, states).

    A table :math:`T = (\varphi_i \otimes \varphi_j) J` has the norm t, whose variance is :math:`T^\top \Sigma_T T / t^2`; a field
    is :math:`\varphi_i h_i`.
    """
    ends = family.num_fields + np.cumsum(family.numbers)
    pairs = torch.zeros(len(family.edges), dtype=torch.float64)
    for number, (end, size) in enumerate(zip(ends.tolist(), family.numbers.tolist(), strict=True)):
        own = slice(end - size, end)
        couplings, block = theta[own], covariance[own, own]
        i, j = family.edges[number].tolist()
        basis = torch.kron(
            family.basis[i, :, : family.space.digits[i] - 1], family.basis[j, :, : family.space.digits[j] - 1]
        )
        table, spread = basis @ couplings, basis @ block @ basis.T
        norm = table.norm().clamp(min=1e-12)
        pairs[number] = (table @ spread @ table).clamp(min=0).sqrt() / norm
    space, sites = frame.noise.space, varies.tolist()
    fields = torch.zeros(family.kinds, space.sites, space.states, dtype=torch.float64)
    columns = family.columns
    for kind in range(family.kinds):
        for place, site in enumerate(sites):
            own_columns = torch.nonzero(columns[:, 0] == place).flatten() + kind * len(columns)
            basis = family.basis[place, :, : len(own_columns)]
            block = covariance[own_columns][:, own_columns]
            fields[kind, site, : len(basis)] = (basis @ block @ basis.T).diagonal().clamp(min=0).sqrt()
    return pairs, fields
