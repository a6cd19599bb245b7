r"""Effective couplings and fields of a fitted model, from finite differences of its log-odds.

For :math:`\mu \propto \exp(\sum J_{ij}\sigma_i\sigma_j + \sum h_i\sigma_i)` the second difference over two sites is a
constant, whatever the others are:

.. math:: \log\frac{\mu(+,+)\,\mu(-,-)}{\mu(+,-)\,\mu(-,+)} = 4 J_{ij}.

For a learnt law it varies with the context, which is taken from data, and is averaged.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neurise import shown
from neurise.extras import need
from neurise.structure.averages import average, field_weights, fields_of
from neurise.structure.door import ask
from neurise.structure.gauge import couplings_of, norm_of_one, scores_of
from neurise.structure.products import Product
from neurise.structure.sources import pairs_of
from neurise.structure.temperature import Temperature, effective_temperature
from neurise.structure.threshold import select


@dataclass(frozen=True, eq=False)
class Structure:
    """Pair interactions and fields in the zero-sum gauge, and the graph of those that are there.

    A pair that the model knows nothing about, because a site never varies, has NaN for all its numbers and no edge.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> found.couplings.shape, found.adjacency.shape
    ((4, 4), (4, 4))
    """

    symbols: np.ndarray  # (states,), in the order of the tables
    tables: np.ndarray  # (sites, sites, states, states); [i, j, a, b] = [j, i, b, a]
    fields: np.ndarray  # (sites,) the h of h σ for two states, σ = +1 the second symbol; else (sites, states)
    errors: np.ndarray  # (sites, sites): standard errors of the scores; of the couplings, for two states
    adjacency: np.ndarray  # (sites, sites) booleans
    threshold: float | None  # score above which a pair is an edge, where one number decides
    rule: str  # "given", "two groups" or "four standard errors"
    constant: tuple[int, ...]  # sites that never vary
    rows: int  # distinct rows that served as contexts
    shape: tuple[int, ...] | None = None
    field_errors: np.ndarray | None = None  # of the form of the fields: their standard errors, where they are known
    errors_by: str = "counting"  # what the errors come from: counting as many rows, or "Fisher information"
    temperature: Temperature | None = None  # where the programmed couplings are known
    products: tuple[Product, ...] | None = None  # of three and four spins, where an energy has them

    def __repr__(self) -> str:
        return shown.record(self)

    @property
    def states(self) -> int:
        """How many states a site has."""
        return len(self.symbols)

    @property
    def couplings(self) -> np.ndarray:
        """Coupling J of each pair, (sites, sites), of J σσ' for two states, else of the nearest Potts coupling J 1{a = b}."""
        return couplings_of(self.tables)

    @property
    def scores(self) -> np.ndarray:
        """Strength of each pair, (sites, sites), :math:`|J|` for two states, else the Frobenius norm of its table."""
        return scores_of(self.tables)

    @property
    def edges(self) -> np.ndarray:
        """Pairs i < j that interact, (edges, 2)."""
        return np.argwhere(np.triu(self.adjacency, 1))

    def to_networkx(self, names: Sequence[Hashable] | None = None) -> Any:
        """Give the graph to networkx: nodes 0, 1, … or ``names``, in the order of the sites.

        Edges have the attributes ``coupling``, ``score`` and ``error``, nodes have ``field``: the h of h σ for two states, else
        a list of one number per symbol.
        """
        nodes = list(range(len(self.tables))) if names is None else list(names)
        if len(nodes) != len(self.tables) or len(set(nodes)) < len(nodes):
            raise ValueError(
                f"names has {len(set(nodes))} different names ({len(nodes)} in all) for {len(self.tables)} sites"
            )
        graph = need("networkx", "dwave").Graph()
        graph.add_nodes_from((node, {"field": field}) for node, field in zip(nodes, self.fields.tolist(), strict=True))
        values = {"coupling": self.couplings, "score": self.scores, "error": self.errors}
        for i, j in self.edges.tolist():
            graph.add_edge(nodes[i], nodes[j], **{name: float(matrix[i, j]) for name, matrix in values.items()})
        return graph

    def to_dict(self) -> dict[str, Any]:
        """Give the essentials in JSON's types."""
        first, second = self.edges.T
        return {
            "sites": len(self.tables),
            "states": self.states,
            "rows": self.rows,
            "rule": self.rule,
            "threshold": self.threshold,
            "constant": list(self.constant),
            "edges": self.edges.tolist(),
            "edge_couplings": self.couplings[first, second].tolist(),
            "couplings": self.couplings.tolist(),
            "scores": self.scores.tolist(),
            "errors": self.errors.tolist(),
            "errors_by": self.errors_by,
            "fields": self.fields.tolist(),
            "field_errors": None if self.field_errors is None else self.field_errors.tolist(),
            "temperature": None if self.temperature is None else self.temperature.to_dict(),
            "products": None if self.products is None else [product._asdict() for product in self.products],
        }

    def with_programmed(self, programmed: Any, *, labels: Sequence[Hashable] | None = None) -> Structure:
        """Return the same with an effective temperature; see :func:`neurise.structure.effective_temperature`."""
        found = effective_temperature(self.couplings, self.errors, programmed, labels=labels)
        return replace(self, temperature=found)


def recover(
    model: Any,
    data: Any,
    *,
    y: Any = None,
    cycle: int | None = None,
    rows: int | None = None,
    threshold: float | None = None,
    programmed: Any = None,
    seed: int = 0,
    verbose: bool | None = None,
) -> Structure:
    r"""Recover fields, pair interactions and the graph from a fitted model, with rows of data as contexts.

    In each row x and for each pair the p × p table of :math:`\log \mu(x_i = a, x_j = b \mid \text{the others of } x)` is
    brought into the zero-sum gauge. Tables are averaged over the rows with the weight

    .. math:: w(x) = \Bigl[\sum_{ab} \frac{1}{\mu(a, b \mid \text{the others of } x)}\Bigr]^{-1},

    the inverse variance of a log-odds ratio that is counted in that context: where one of the p² outcomes hardly ever occurs,
    nothing was there to learn its probability from. Fields are what is left of the single-site log-odds, by the same rule:
    :math:`f_i(a) = \langle \log \mu(x_i = a \mid x_{-i}) - \sum_j D_{ij}(a, x_j) \rangle_w`, centred over a.
    A pairwise law gives back its own J and h exactly.

    The graph: scores are cut into two groups with the least variance within (two means), and the threshold lies half way
    between the groups. Where the cut explains less than 0.75 of the variance (no pair interacts, or all alike) each score is
    held against four times its own standard error. Couplings of very different sizes want a ``threshold`` of your own.

    Args:
        model: anything with ``log_prob(X)``, or with clean conditionals ``conditional(X, site)`` → (N, states).
        data: a data set (its rows, or rows drawn from its law), or an (N, sites) array of symbols.
        y: label to condition on, for a model with labels; without it they are summed over.
        cycle: for soft noise, which has no clean conditionals: take those that the network learnt in this cycle, at step
            cycle · sites + place of the site. They belong to laws that are already noised, and their couplings are weaker.
        rows: how many distinct rows to take as contexts; by default as many as need about 2^18 evaluations of the model.
        threshold: score above which a pair is an edge.
        programmed: couplings that a machine was told: a data set, a matrix, or a dictionary by pairs of sites, in the sign of
            :math:`\mu \propto \exp(\sum J\sigma\sigma)`. The learnt couplings over these are an inverse temperature
            (:func:`neurise.structure.effective_temperature`).
        seed: of the choice of rows.
        verbose: show progress: always, never, or, by default, where it takes long.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> found.couplings.shape, found.fields.shape, len(found.edges)
    ((4, 4), (4,), 3)
    """
    asked = ask(model, data, y=y, cycle=cycle, rows=rows, seed=seed)
    sites, states = asked.source.space.sites, asked.source.space.states
    found = average(asked.source, asked.x, asked.masses, verbose=verbose)
    unknown = found.weights == 0
    for i in asked.constant:
        unknown |= (pairs_of(sites) == i).any(axis=1)
    pairs = np.where(unknown[:, None, None], np.nan, found.tables)
    tables = _square(pairs, sites)
    first, second = pairs_of(sites).T
    tables[second, first] = pairs.swapaxes(1, 2)
    fields = fields_of(tables, found.singles, asked.x, asked.masses)
    fields[list(asked.constant)] = np.nan
    with np.errstate(divide="ignore"):
        error = np.where(unknown, np.nan, (1 - 1 / states) / norm_of_one(states) / np.sqrt(found.weights))
    chosen, used, rule = select(scores_of(pairs), error, threshold)
    with np.errstate(divide="ignore"):
        field_error = (1 - 1 / states) / np.sqrt(field_weights(found.singles, asked.masses).sum(axis=0))
    field_error[list(asked.constant)] = np.nan
    structure = Structure(
        symbols=asked.symbols,
        tables=tables,
        fields=fields[:, 1] if states == 2 else fields,
        errors=_square(error, sites),
        adjacency=_square(chosen, sites),
        threshold=used,
        rule=rule,
        constant=tuple(np.flatnonzero(np.isnan(fields).any(axis=1)).tolist()),
        rows=len(asked.x),
        shape=asked.shape,
        field_errors=field_error if states == 2 else field_error[:, None].repeat(states, axis=1),
    )
    return structure if programmed is None else structure.with_programmed(programmed, labels=asked.labels)


def _square(values: np.ndarray, sites: int) -> np.ndarray:
    """Spread one entry per pair, (pairs, …), over a symmetric matrix with zeros on the diagonal, (sites, sites, …)."""
    matrix = np.zeros((sites, sites, *values.shape[1:]), dtype=values.dtype)
    first, second = pairs_of(sites).T
    matrix[first, second] = matrix[second, first] = values
    return matrix
