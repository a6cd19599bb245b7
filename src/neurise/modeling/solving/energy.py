"""Solve for the pairwise energy of the data, by maximum likelihood on a graph that the data choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.conditionals.base import Frame
from neurise.conditionals.energy_conditionals import EnergyConditionals
from neurise.deadline import Work
from neurise.energies import choosing, learning, maximum_likelihood
from neurise.energies.learning import Learnt
from neurise.energies.maximum_likelihood import Aim, Fit
from neurise.interactions import Interactions
from neurise.modeling.solving.base import Solved
from neurise.rows import Rows
from neurise.space import Space

MANY_ROWS = 20_000
"""Rows from which on a graph that most of them have chosen is not chosen again by all of them; nor is it in large spaces."""


def energy(rows: Rows, held: Rows | None, frame: Frame, *, seed: int, work: Work) -> Solved | None:
    """Learn the energy of the sites that vary; None where its sums, or those of its conditionals, are too many."""
    varies = torch.nonzero(frame.constant.cpu() < 0).flatten()
    space = Space.of([frame.noise.space.digits[site] for site in varies.tolist()])
    options: dict[str, Any] = {"classes": frame.classes, "device": frame.constant.device, "seed": seed, "work": work}
    found = learning.learn(_sites(rows, varies), space, held=None if held is None else _sites(held, varies), **options)
    if not isinstance(found, Learnt):
        return None
    return _made(found, found.found, frame, varies, seed)


def _made(learnt: Learnt, found: Fit, frame: Frame, varies: Tensor, seed: int) -> Solved | None:
    """Make conditionals of a fit to the sites that vary; solved for again, few rows choose the graph anew."""
    conditionals = EnergyConditionals.of(_laws(found, frame, varies), frame)
    if conditionals is None:
        return None
    chosen = set(map(tuple, learnt.selected.family.edges.tolist()))
    is_edge = torch.tensor([tuple(pair) in chosen for pair in found.family.edges.tolist()], dtype=torch.bool)
    conditionals.describe_estimate(*_errors(found, frame, varies), is_edge)

    def again(rows: Rows, work: Work) -> Solved | None:
        if len(rows) < MANY_ROWS and found.family.space.size <= choosing.QUICK:
            return energy(rows, None, frame, seed=seed, work=work)
        own = Aim.of(_sites(rows, varies), found.family.classes)
        refitted = maximum_likelihood.fit(found.laws, own, prior=found.prior, start=found.theta, seed=seed, work=work)
        return _made(learnt, refitted, frame, varies, seed)

    return Solved(conditionals, found.family.size, learnt.words, again)


def _sites(rows: Rows, varies: Tensor) -> Rows:
    """Return rows with the sites that vary, on the CPU."""
    return replace(rows.to(torch.device("cpu")), x=rows.x.cpu()[:, varies])


def _laws(found: Fit, frame: Frame, varies: Tensor) -> list[Interactions]:
    """Return the law of each class over all sites; those that never vary have no terms."""
    space, sites = frame.noise.space, varies.numpy()
    laws = []
    for kind in range(found.family.kinds):
        own = found.family.interactions(found.theta, kind)
        fields = np.zeros((space.sites, space.states))
        fields[sites, : own.states] = own.fields
        tables = np.zeros((len(own.edges), space.states, space.states))
        tables[:, : own.states, : own.states] = own.tables
        laws.append(Interactions(sites[own.edges], tables, fields, space.sizes))
    return laws


def _errors(found: Fit, frame: Frame, varies: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return standard errors of the scores of all pairs, (pairs,), and of the fields, (classes, sites, states).

    A table :math:`T = (\varphi_i \otimes \varphi_j) J` has the norm t, whose variance is :math:`T^\top \Sigma_T T / t^2`; a field
    is :math:`\varphi_i h_i`.
    """
    family, covariance = found.family, found.covariance()
    ends = family.num_fields + np.cumsum(family.numbers)
    pairs = torch.zeros(len(family.edges), dtype=torch.float64)
    for number, (end, size) in enumerate(zip(ends.tolist(), family.numbers.tolist(), strict=True)):
        own = slice(end - size, end)
        couplings, block = found.theta[own], covariance[own, own]
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
