r"""Rows of which some values are missing: how likely they are, what the missing values may be, and the law of one column.

With o the values that are there and m those that are not,

.. math:: P(x_o) = \sum_{x_m} P(x_o, x_m), \qquad P(x_m \mid x_o) = P(x_o, x_m) / P(x_o) .

A model says how it sums (``Model._log_marginal``): over all completions where they are few, and otherwise by whatever it has.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from neurise import checks, devices
from neurise.alphabet import Symbols
from neurise.categorical import draw, uniforms
from neurise.filled_frames import with_filled
from neurise.frames import as_table, frame_kind

if TYPE_CHECKING:
    from neurise.modeling.model import Model

MOST = 2**12
"""Completions of a row up to which they are all looked at."""
AT_ONCE = 2**16
"""Completed rows that are scored together."""
DRAWS = 64
"""Completions of a row that are drawn where they are too many to look at."""

Estimate = tuple[Tensor, Tensor]
"""Logarithms of probabilities, (n,) float64, and their standard errors, 0 where they are exact."""


class Marginal(NamedTuple):
    """How likely the values are that rows have, in nats, (N,), and the standard error of each number: 0 where it is exact."""

    log_prob: np.ndarray
    error: np.ndarray


class Completions(NamedTuple):
    """Some rows, and all ways to fill the sites that are missing in each of them."""

    rows: Tensor  # (r,): which rows they are
    sites: Tensor  # (m,): the sites that are missing in all of them
    tokens: Tensor  # (c, m): what these may hold
    log_prob: Tensor  # (r, c)


def digits_of(model: Model) -> Tensor:
    """Return how many states each site has, in the model's order, (sites,)."""
    return torch.tensor(model.space_.digits)


def counts(missing: Tensor, digits: Tensor) -> Tensor:
    """Return how many completions each row has, (n,) float64: they may be more than a whole number holds."""
    return (missing * digits.double().log()).sum(1).exp().round()


def completions(
    log_prob: Callable[[Tensor, Tensor], Tensor], x: Tensor, missing: Tensor, digits: Tensor, rows: Tensor
) -> Iterator[Completions]:
    """Yield all completions of some rows, those that lack the same sites together.

    ``log_prob(completed, which)`` scores tokens (k, sites), of which the k-th is a completion of row ``which[k]``.
    """
    if not len(rows):
        return
    patterns, kind = torch.unique(missing[rows], dim=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        sites, own = torch.nonzero(pattern).flatten(), rows[kind == number]
        tokens = _every(digits[sites].tolist()).to(x.dtype)
        for part in torch.split(own, max(1, AT_ONCE // len(tokens))):
            which = part.repeat_interleave(len(tokens))
            completed = x[which]
            completed[:, sites] = tokens.repeat(len(part), 1)
            yield Completions(part, sites, tokens, log_prob(completed, which).view(len(part), -1))


def _every(sizes: Sequence[int]) -> Tensor:
    """Return all configurations of sites with so many states each, (c, sites)."""
    index, columns = torch.arange(math.prod(sizes)), list[Tensor]()
    for size in reversed(sizes):
        columns.insert(0, index % size)
        index = index // size
    return torch.stack(columns, dim=1) if columns else torch.zeros(1, 0, dtype=torch.int64)


def log_sum(terms: Sequence[Estimate]) -> Estimate:
    """Add probabilities that are known by their logarithms, with their errors."""
    if len(terms) == 1:
        return terms[0]
    values, errors = (torch.stack(parts) for parts in zip(*terms, strict=True))
    total = values.logsumexp(0)
    share = (values - total).exp().nan_to_num(nan=0.0)
    return total, (share * errors).square().sum(0).sqrt()


def log_marginal(model: Model, x: Tensor, missing: Tensor, y: Any, generator: Generator) -> Estimate:
    """Return how likely what is there of the rows is; labels that are not given are summed over."""
    terms = []
    for label, weight in model._label_rows(y, len(x)):
        value, error = model._log_marginal(x, missing, label, generator)
        terms.append((value + np.log(weight), error))
    return log_sum(terms)


def enumerable(model: Model, missing: Tensor) -> tuple[Tensor, Tensor]:
    """Insist that every row has few completions; return the numbers of states of the sites, and all rows."""
    digits = digits_of(model)
    number = counts(missing, digits)
    if float(number.max()) > MOST:
        raise NotImplementedError(
            f"{type(model).__name__} knows how likely complete rows are, and row {int(number.argmax())} can be completed in "
            f"{float(number.max()):.3g} ways (the limit is {MOST:,}); a NeurISE with keep_prob=0 and one order estimates such "
            "sums"
        )
    return digits, torch.arange(len(missing))


def by_completion(model: Model, x: Tensor, missing: Tensor, y: Tensor | None) -> Estimate:
    """Sum over all completions of every row, for a model that scores complete rows."""
    if not model.has_likelihood:
        raise NotImplementedError(
            f"{type(model).__name__} has no exact likelihood, and so nothing to say of rows with missing values; NeurISE with "
            "keep_prob=0 has one, and fills them (impute)"
        )
    digits, rows = enumerable(model, missing)
    found = torch.empty(len(x), dtype=torch.float64)

    def score(completed: Tensor, which: Tensor) -> Tensor:
        return model._log_prob(completed, None if y is None else y.cpu()[which].to(y.device))

    for part in completions(score, x, missing, digits, rows):
        found[part.rows] = part.log_prob.logsumexp(1)
    return found, torch.zeros_like(found)


def marginal(model: Model, X: Symbols, y: Any = None, seed: int | None = 0) -> Marginal:
    """Return how likely the values are that rows have, and the standard errors."""
    x, missing = model._fitted().encode_gaps(X)
    gaps = torch.zeros_like(x, dtype=torch.bool) if missing is None else missing
    value, error = log_marginal(model, x, gaps, y, devices.generator(seed, model.device_))
    return Marginal(value.numpy(), error.numpy())


def log_prob(model: Model, x: Tensor, missing: Tensor, y: Any) -> np.ndarray:
    """Return how likely the values are that rows have, and warn where that is estimated."""
    value, error = log_marginal(model, x, missing, y, devices.generator(0, model.device_))
    if bool((error > 0).any()):
        guessed = error[error > 0]
        warnings.warn(
            f"the log-probabilities of {len(guessed):,} of {len(x):,} rows are estimated, with a standard error of "
            f"{float(guessed.median()):.2g} nats (at most {float(guessed.max()):.2g}): too many completions to sum over; "
            "marginal(X) returns the errors",
            stacklevel=3,
        )
    return value.numpy()


def impute(model: Model, X: Symbols, n: int, y: Any, seed: int | None) -> Any:
    """Return X with its missing values drawn from their law given the others; n > 1 returns a list of n such."""
    count, schema = checks.positive_whole("n", n), model._fitted()
    x, missing = schema.encode_gaps(X)
    gaps = torch.zeros_like(x, dtype=torch.bool) if missing is None else missing
    generator, where = devices.generator(seed, model.device_), gaps[:, np.argsort(schema.order)].numpy()
    found = []
    for _ in range(count):
        filled = _filled(model, x, gaps, y, generator) if bool(gaps.any()) else x
        found.append(like(schema.decode(filled, generator), X, where))
    return found[0] if count == 1 else found


@torch.no_grad()
def _filled(model: Model, x: Tensor, missing: Tensor, y: Any, generator: Generator) -> Tensor:
    """Draw what is missing; rows that lack nothing stay as they are. A label that is not given is drawn first."""
    rows = torch.nonzero(missing.any(1)).flatten()
    own, gaps, schema = x[rows], missing[rows], model.schema_
    labels = schema.encode_labels(y, len(x))
    labels = None if labels is None else labels[rows]
    if schema.labels is not None and labels is None:
        joint = []
        for label, weight in model._label_rows(None, len(own)):
            joint.append(model._log_marginal(own, gaps, label, generator)[0] + np.log(weight))
        odds = torch.stack(joint, dim=1).log_softmax(1)
        labels = draw(odds, uniforms(len(own), generator=torch.Generator().manual_seed(_seed(generator)))).long()
    labels = None if labels is None else labels.to(model.device_)
    completed = x.clone()
    completed[rows] = model._complete(own, gaps, labels, generator)
    return completed


def _seed(generator: Generator) -> int:
    return int(torch.randint(2**62, (1,), generator=generator, device=generator.device))


def drawn_from(part: Completions, generator: Generator) -> Tensor:
    """Draw one of the completions of every row, (r, m)."""
    source = torch.Generator().manual_seed(_seed(generator))
    if not bool((part.log_prob > -torch.inf).any(1).all()):
        raise ValueError("the model gives the values that are there probability zero: nothing can be drawn")
    return part.tokens[draw(part.log_prob.log_softmax(1), uniforms(len(part.rows), generator=source)).long()]


def like(found: Any, X: Any, missing: np.ndarray) -> Any:
    """Put symbols that were found into the gaps of X: what is there stays as it is, and so does the type."""
    values = as_table(found) if frame_kind(found) is not None else np.asarray(found)
    if frame_kind(X) is not None:
        return with_filled(X, values)
    values = np.asarray(values)
    if isinstance(X, Tensor):
        return torch.where(torch.from_numpy(missing), torch.as_tensor(values).to(X.dtype), X.detach().cpu())
    if not isinstance(X, np.ndarray):
        rows = np.array(X, dtype=object) if isinstance(X, list | tuple) else values
        if rows.shape != missing.shape:  # bit strings, which have no gaps
            return values
        return np.where(missing, values, rows).astype(values.dtype)
    filled = np.ma.getdata(X).copy()
    filled[missing] = values[missing]
    return np.ma.array(filled) if isinstance(X, np.ma.MaskedArray) else filled


@torch.no_grad()
def predict_proba(model: Model, X: Symbols, column: Any, y: Any, seed: int | None) -> np.ndarray:
    r"""Return :math:`P(x_u = a \mid x_o)` of a column u for all of its symbols a, (N, symbols), from the other values of a row."""
    schema = model._fitted()
    place = schema.order.index(schema.space.sites - 1 if column is None else schema.site_of(column))
    x, missing = schema.encode_gaps(X)
    gaps = torch.zeros_like(x, dtype=torch.bool) if missing is None else missing
    return law_of(model, x, gaps, place, y, devices.generator(seed, model.device_)).numpy()


def law_of(model: Model, x: Tensor, missing: Tensor, place: int, y: Any, generator: Generator) -> Tensor:
    """Return the law of a place of the order given the other values of rows of tokens, (n, symbols)."""
    if y is not None and np.ndim(y) and len(y) != len(x):
        raise ValueError(f"y has {len(y)} labels for {len(x)} rows")
    gaps = missing.clone()
    gaps[:, place] = False
    size = int(digits_of(model)[place])
    learnt = model._learnt_law(x, gaps, place) if y is None else None
    if learnt is not None:
        return learnt[:, :size]
    small = model._summable(gaps)
    law = torch.empty(len(x), size, dtype=torch.float64)
    for rows in (torch.nonzero(small).flatten(), torch.nonzero(~small).flatten()):
        if not len(rows):
            continue
        labels = None if y is None else np.broadcast_to(np.asarray(y), len(x))[rows.numpy()]
        if bool(small[rows[0]]) and model.has_likelihood:
            law[rows] = _by_sums(model, x[rows], gaps[rows], place, size, labels, generator)
        else:
            law[rows] = _by_draws(model, x[rows], gaps[rows], place, size, labels, generator)
    return law


@torch.no_grad()
def most_probable(model: Model, X: Symbols, n: int = 1, y: Any = None, *, seed: int | None = 0) -> Any:
    r"""Return X with each missing value replaced by :math:`\arg\max_a P(x_u = a \mid x_o)`; of equal ones the first symbol."""
    if checks.positive_whole("n", n) > 1:
        raise ValueError(f"n is {n}, and the most probable values are the same each time; leave n or most_probable out")
    schema = model._fitted()
    x, found = schema.encode_gaps(X)
    missing = torch.zeros_like(x, dtype=torch.bool) if found is None else found
    generator, filled = devices.generator(seed, model.device_), x.clone()
    for place in torch.nonzero(missing.any(0)).flatten().tolist():
        rows = torch.nonzero(missing[:, place]).flatten()
        own = y if np.ndim(y) == 0 else np.asarray(y)[rows.numpy()]
        filled[rows, place] = law_of(model, x[rows], missing[rows], place, own, generator).argmax(1).to(x.dtype)
    return like(schema.decode(filled), X, missing[:, np.argsort(schema.order)].numpy())


def _by_sums(model: Model, x: Tensor, gaps: Tensor, place: int, size: int, y: Any, generator: Generator) -> Tensor:
    """Compare how likely the row is with each of the symbols."""
    joint = []
    for token in range(size):
        changed = x.clone()
        changed[:, place] = token
        joint.append(log_marginal(model, changed, gaps, y, generator)[0])
    total = torch.stack(joint, dim=1)
    if not bool((total > -torch.inf).any(1).all()):
        row = int((total > -torch.inf).any(1).logical_not().nonzero()[0])
        raise ValueError(
            f"the model gives the other values of row {row} probability zero: they say nothing about a column"
        )
    return total.softmax(1)


def _by_draws(model: Model, x: Tensor, gaps: Tensor, place: int, size: int, y: Any, generator: Generator) -> Tensor:
    r"""Average over completions of what else is missing, :math:`P(x_u \mid x_o) = E\,[P(x_u \mid x_o, x_m) \mid x_o]`.

    A model that does not know the conditional of a complete row counts what it draws.
    """
    hidden = gaps.clone()
    hidden[:, place] = True
    total = torch.zeros(len(x), size, dtype=torch.float64)
    complete = torch.zeros_like(gaps)
    for _ in range(DRAWS):
        completed = _filled(model, x, hidden, y, generator)
        if model.has_likelihood:
            total += _by_sums(model, completed, complete, place, size, y, generator)
        else:
            total += torch.nn.functional.one_hot(completed[:, place].long(), size)
    return total / DRAWS
