"""The log-ratios of all single changes of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from neurise.alphabet import as_array
from neurise.modeling.model import Model

BLOCK = 2**21
"""Cells of the changed rows that a model is asked about at a time."""


@dataclass(frozen=True, eq=False)
class Mutations:
    """The log-ratio of every single change, in nats; 0 at what the wild type holds.

    ``of`` says what it is taken from: ``"log_prob"``, exactly; ``"conditional"``, the model's conditionals of single sites;
    ``"elbo"``, an estimate by the difference of two lower bounds, with its standard error.
    """

    wild_type: np.ndarray  # (sites,) symbols
    symbols: np.ndarray  # (states,)
    log_ratio: np.ndarray  # (sites, states); −∞ for a symbol that is impossible there
    error: np.ndarray | None  # (sites, states)
    of: str
    constant: tuple[int, ...]  # sites that never varied in what the model learnt from

    @property
    def is_wild(self) -> np.ndarray:
        """Which cells are the wild type, (sites, states)."""
        return np.asarray(self.symbols == self.wild_type[:, None])

    def ranked(self) -> list[tuple[int, int]]:
        """Return the changes as (site, state), the most favourable first."""
        order = np.argsort(-self.log_ratio, axis=None, kind="stable")
        changed = order[~self.is_wild.ravel()[order]]
        return [(int(site), int(state)) for site, state in zip(*np.divmod(changed, len(self.symbols)), strict=True)]


def mutations(model: Model, wild_type: Any, y: Any = None, *, seed: int | None = 0, draws: int = 16) -> Mutations:
    r"""Compute :math:`\log P(x^{u \to a}) - \log P(x)` for every site u and symbol a of one row x, the wild type.

    It is exact where the model has a likelihood: one evaluation per change. Else the conditionals of single sites give it,
    :math:`\log P(a \mid x_{-u}) - \log P(x_u \mid x_{-u})` (``Pairwise`` on large spaces, networks that were taught clean
    conditionals); else the bounds of both, an estimate over ``draws`` draws. With labels, y is that of the row; without it they
    are summed over.

    >>> import neurise, numpy as np
    >>> X = np.repeat([[0, 0], [1, 1], [0, 1]], [60, 39, 1], axis=0)
    >>> neurise.mutations(neurise.Independent().fit(X), [0, 0]).log_ratio.round(2)
    array([[ 0.  , -0.45],
           [ 0.  , -0.41]])
    """
    schema = model.schema_
    row = as_array(wild_type, "wild_type")
    if row.ndim == 2 and len(row) == 1:
        row = row[0]
    if row.shape != (schema.space.sites,):
        raise ValueError(f"wild_type must be one row of {schema.space.sites} sites; its shape is {row.shape}")
    wild = schema.encode(row[None], "wild_type")[0]
    for ask, of in ((_by_likelihood, "log_prob"), (_by_conditionals, "conditional"), (_by_bounds, "elbo")):
        try:
            values, error = ask(model, wild, y, seed, draws)
        except NotImplementedError as reason:
            why = reason
            continue
        places = np.argsort(schema.order)  # rows of the tables stand in the order of the model
        constant = [site for site, only in zip(schema.order, schema.constant.tolist(), strict=True) if only >= 0]
        return Mutations(
            schema.alphabet.symbols[wild[places].long().numpy()],
            schema.alphabet.symbols,
            values[places],
            None if error is None else error[places],
            of,
            tuple(sorted(constant)),
        )
    raise why


Answer = tuple[np.ndarray, np.ndarray | None]
"""The log-ratios, (places, states), and their errors."""


def _by_likelihood(model: Model, wild: torch.Tensor, y: Any, seed: int | None, draws: int) -> Answer:
    def log_prob(X: Any, label: Any) -> tuple[np.ndarray, None]:
        return model.log_prob(X, label), None

    return _compared(model, wild, y, log_prob)


def _by_bounds(model: Model, wild: torch.Tensor, y: Any, seed: int | None, draws: int) -> Answer:
    def bound(X: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
        found = model.elbo(X, label, seed=seed, draws=draws)
        return found.value, found.standard_error

    return _compared(model, wild, y, bound)


def _compared(
    model: Model, wild: torch.Tensor, y: Any, ask: Callable[[Any, Any], tuple[np.ndarray, np.ndarray | None]]
) -> Answer:
    """Ask about every change of the wild type, and about the wild type itself."""
    sites, states = len(wild), model.space_.states
    place, token = (part.flatten() for part in torch.meshgrid(torch.arange(sites), torch.arange(states), indexing="ij"))
    parts = []
    step = max(1, BLOCK // sites)
    for start in range(0, sites * states, step):
        own = slice(start, start + step)
        changed = wild.repeat(len(place[own]), 1)
        changed[torch.arange(len(changed)), place[own]] = token[own].to(wild.dtype)
        parts.append(ask(model.schema_.decode(changed), y))
    values = np.concatenate([value for value, _ in parts]).reshape(sites, states)
    errors = [error for _, error in parts if error is not None]
    at = np.arange(sites), wild.long().numpy()
    own_value = values[at][:, None]  # the wild type, asked about once per site
    if np.isneginf(own_value).any():
        raise ValueError("the model holds the wild type for impossible: nothing can be compared with it")
    ratio = values - own_value
    ratio[at] = 0.0
    if not errors:
        return ratio, None
    spread = np.concatenate(errors).reshape(sites, states)
    error = np.hypot(spread, spread[at][:, None])
    error[at] = 0.0
    return ratio, error


def _by_conditionals(model: Model, wild: torch.Tensor, y: Any, seed: int | None, draws: int) -> Answer:
    if not hasattr(model, "conditional"):
        raise NotImplementedError(f"a {type(model).__name__} has no conditionals of single sites")
    row, order = model.schema_.decode(wild[None]), model.schema_.order
    with np.errstate(divide="ignore"):
        laws = np.log(np.concatenate([model.conditional(row, site, y=y) for site in order]))  # (places, states)
    at = np.arange(len(wild)), wild.long().numpy()
    if np.isneginf(laws[at]).any():
        raise ValueError("the model holds the wild type for impossible: nothing can be compared with it")
    return laws - laws[at][:, None], None
