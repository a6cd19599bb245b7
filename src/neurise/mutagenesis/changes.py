"""The log-ratios of all single changes of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from neurise import holdings
from neurise.alphabet import as_array, is_text
from neurise.columns import Columns
from neurise.modeling.model import Model
from neurise.schema import Schema

BLOCK = 2**21
"""Cells of the changed rows that a model is asked about at a time."""
IMPOSSIBLE = "the model holds the wild type for impossible: nothing can be compared with it"


@dataclass(frozen=True, eq=False)
class Mutations:
    """The log-ratio of every single change, in nats; 0 at what the wild type holds.

    ``of`` says what it is taken from: ``"log_prob"``, exactly; ``"conditional"``, the model's conditionals of single sites;
    ``"elbo"``, an estimate by the difference of two lower bounds, with its standard error. Where columns have alphabets of
    their own, the states of a column are its symbols, and what is beyond them is NaN.
    """

    wild_type: np.ndarray  # (sites,) symbols
    symbols: np.ndarray  # (sites, states); None beyond the symbols of a column
    is_wild: np.ndarray  # (sites, states) booleans: which cells are the wild type
    log_ratio: np.ndarray  # (sites, states); −∞ for a symbol that is impossible there
    error: np.ndarray | None  # (sites, states)
    of: str
    constant: tuple[int, ...]  # sites that never varied in what the model learnt from
    names: tuple[str, ...] | None = None  # of the sites, where they have some

    def ranked(self) -> list[tuple[int, int]]:
        """Return the changes as (site, state), the most favourable first."""
        order = np.argsort(-self.log_ratio, axis=None, kind="stable")  # NaN comes last
        wanted = order[~self.is_wild.ravel()[order] & ~np.isnan(self.log_ratio.ravel()[order])]
        return [(int(site), int(state)) for site, state in zip(*np.divmod(wanted, self.is_wild.shape[1]), strict=True)]


def mutations(model: Model, wild_type: Any, y: Any = None, *, seed: int | None = 0, draws: int = 16) -> Mutations:
    r"""Compute :math:`\log P(x^{u \to a}) - \log P(x)` for every site u and symbol a of one row x, the wild type.

    The row is a sequence of symbols, a data frame of one row, or a text with a character per site: "0101", "ACDE-".

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
    wild = _tokens(model, wild_type)
    for ask, of in ((_by_likelihood, "log_prob"), (_by_conditionals, "conditional"), (_by_bounds, "elbo")):
        try:
            values, error = ask(model, wild, y, seed, draws)
        except NotImplementedError as reason:
            why = reason
            continue
        return _in_order_of_the_user(model, wild, values, error, of)
    raise why


Answer = tuple[np.ndarray, np.ndarray | None]
"""The log-ratios, (places, states), and their errors; NaN where a site does not have so many states."""


def _tokens(model: Model, wild_type: Any) -> torch.Tensor:
    """Check the wild type, and translate it to tokens in the order of the model, (sites,)."""
    schema = model.schema_
    row = _of_text(wild_type, schema) if isinstance(wild_type, str) else wild_type
    if not hasattr(row, "columns"):  # a data frame of one row is one already
        row = row if isinstance(row, np.ndarray) else as_array(row, "wild_type")
        row = row[None] if row.ndim == 1 else row
    if np.shape(row) != (1, schema.space.sites):
        shape = np.shape(row)[1:] if np.shape(row)[:1] == (1,) else np.shape(row)
        raise ValueError(f"wild_type must be one row of {schema.space.sites} sites; its shape is {shape}")
    return schema.encode(row, "wild_type")[0]


def _of_text(text: str, schema: Schema) -> np.ndarray:
    """Read a row that is written as one text: a character per site where symbols are letters, else a bit string."""
    letters = isinstance(schema.alphabet, Columns) or is_text(schema.alphabet.dtype)
    return np.array(list(text)) if letters else np.asarray(holdings.opened([text], "wild_type").X)


def _in_order_of_the_user(
    model: Model, wild: torch.Tensor, values: np.ndarray, error: np.ndarray | None, of: str
) -> Mutations:
    schema = model.schema_
    places, states = np.argsort(schema.order), schema.space.states
    symbols = np.full((len(wild), states), None, dtype=object)
    for site, place in enumerate(places.tolist()):
        for token in range(schema.space.digits[place]):
            symbols[site, token] = schema.symbol(place, token)
    is_wild = wild.numpy()[places][:, None] == np.arange(states)
    constant = [site for site, only in zip(schema.order, schema.constant.tolist(), strict=True) if only >= 0]
    names = getattr(schema.alphabet, "names", None)
    return Mutations(
        symbols[is_wild],
        symbols,
        is_wild,
        values[places],
        None if error is None else error[places],
        of,
        tuple(sorted(constant)),
        None if names is None else tuple(map(str, names)),
    )


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
    exists = torch.arange(model.space_.states) < torch.tensor(model.space_.digits)[:, None]  # (places, states)
    place, token = exists.nonzero(as_tuple=True)
    parts, step = [], max(1, BLOCK // len(wild))
    for start in range(0, len(place), step):
        own = slice(start, start + step)
        changed = wild.repeat(len(place[own]), 1)
        changed[torch.arange(len(changed)), place[own]] = token[own].to(wild.dtype)
        parts.append(ask(model.schema_.decode(changed), y))
    values = _spread(exists.numpy(), np.concatenate([value for value, _ in parts]))
    at = np.arange(len(wild)), wild.long().numpy()
    if np.isneginf(values[at]).any():
        raise ValueError(IMPOSSIBLE)
    ratio = values - values[at][:, None]  # the wild type was asked about once per site
    ratio[at] = 0.0
    errors = [error for _, error in parts if error is not None]
    if not errors:
        return ratio, None
    spread = _spread(exists.numpy(), np.concatenate(errors))
    error = np.hypot(spread, spread[at][:, None])
    error[at] = 0.0
    return ratio, error


def _spread(exists: np.ndarray, values: np.ndarray) -> np.ndarray:
    table = np.full(exists.shape, np.nan)
    table[exists] = values
    return table


def _by_conditionals(model: Model, wild: torch.Tensor, y: Any, seed: int | None, draws: int) -> Answer:
    if not hasattr(model, "conditional"):
        raise NotImplementedError(f"a {type(model).__name__} has no conditionals of single sites")
    row, order, digits = model.schema_.decode(wild[None]), model.schema_.order, model.space_.digits
    laws = np.full((len(wild), model.space_.states), np.nan)  # (places, states)
    with np.errstate(divide="ignore"):
        for place, site in enumerate(order):  # a column's own symbols come first, and may be all that there is
            laws[place, : digits[place]] = np.log(model.conditional(row, site, y=y)[0, : digits[place]])
    at = np.arange(len(wild)), wild.long().numpy()
    if np.isneginf(laws[at]).any():
        raise ValueError(IMPOSSIBLE)
    return laws - laws[at][:, None], None
