"""The structure of a model that learnt an energy: its couplings and fields as they are, with the errors of the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.conditionals.energy_conditionals import EnergyConditionals
from neurise.schema import Schema
from neurise.structure.gauge import norm_of_one, zero_sum
from neurise.structure.one_alphabet import check_one_alphabet
from neurise.structure.products import products
from neurise.structure.recovery import Structure


def of_energy(energy: EnergyConditionals, schema: Schema) -> Structure:
    """Read couplings, fields and the graph off an energy; sites stand where the user has them.

    The errors come from the Fisher information, given which pairs have couplings: another pair has no error, NaN. Where few rows
    made all pairs have couplings, the graph is that of the pairs which the Bayesian criterion chose. Classes have fields
    of their own, of which the mean by frequency is given.
    """
    alphabet = check_one_alphabet(schema.alphabet)
    order, states = np.asarray(schema.order), schema.space.states
    sites = len(order)
    edges = order[energy.edges.cpu().numpy()].reshape(-1, 2)
    own = zero_sum(energy.couplings.cpu().numpy())
    tables, errors = np.zeros((sites, sites, states, states)), np.full((sites, sites), np.nan)
    adjacency = np.zeros((sites, sites), dtype=bool)
    for (i, j), table, error, is_edge in zip(
        edges.tolist(), own, energy.table_errors.tolist(), energy.is_edge.tolist(), strict=True
    ):
        tables[i, j], tables[j, i] = table, table.T
        errors[i, j] = errors[j, i] = error / norm_of_one(states)
        adjacency[i, j] = adjacency[j, i] = is_edge
    np.fill_diagonal(errors, 0.0)
    frequencies = np.ones(1) if schema.labels is None else schema.labels.frequencies
    constant = tuple(sorted(order[(schema.constant >= 0).numpy()].tolist()))
    fields, field_errors = np.empty((sites, states)), np.empty((sites, states))
    fields[order] = np.tensordot(frequencies, energy.fields.cpu().numpy(), 1)
    field_errors[order] = np.sqrt(np.tensordot(frequencies**2, energy.field_errors.cpu().numpy() ** 2, 1))
    for numbers in (tables, fields, field_errors):
        numbers[list(constant)] = np.nan
    tables[:, list(constant)] = np.nan
    fields -= fields.mean(axis=1, keepdims=True)
    known: dict[str, Any] = {"threshold": None, "rule": "likelihood of the graph", "errors_by": "Fisher information"}
    return Structure(
        symbols=alphabet.symbols,
        tables=tables,
        fields=fields[:, 1] if states == 2 else fields,
        errors=errors,
        adjacency=adjacency,
        constant=constant,
        rows=schema.count,
        field_errors=field_errors[:, 1] if states == 2 else field_errors,
        products=products(energy, schema) or None,
        **known,
    )
