r"""How surprising rows are to a model: log-probabilities, the share of every site in them, and ranks.

>>> import neurise
>>> X = [[0, 0], [1, 1], [0, 1], [0, 0]] * 10
>>> found = neurise.surprise(neurise.Independent().fit(X), X)
>>> found.log_prob.shape, found.sites.shape          # per row, and per row and site
((40,), (40, 2))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from neurise import checks, devices
from neurise.alphabet import as_matrix
from neurise.modeling.model import MOST_DRAWS, Model
from neurise.modeling.partial_rows import log_marginal
from neurise.modeling.site_terms import SiteTerms

GIVEN = {
    "chain": "-log P(site | the sites that are generated before it); they add up to -log P(row)",
    "chains": "-log P(site | the sites that are generated before it), averaged over the orders of the model",
    "labels": "-log P(site | the sites that are generated before it), averaged over the labels",
    "bound": "the share of the site in the bound: an estimate",
    "others": "-log P(site | all other sites)",
}
"""What a site's surprise is, by the kind of the model."""
BLOCK = 2**21
"""Cells of the rows that are scored at a time."""


class Surprise(NamedTuple):
    """How surprising each row is, in nats. ``of`` says what ``log_prob`` holds, and ``given`` what ``sites`` holds."""

    log_prob: np.ndarray  # (N,)
    error: np.ndarray | None  # (N,) standard errors, where it is an estimate
    of: str  # "log_prob", exact; "elbo", a lower bound; "pseudo_log_likelihood", the sum over sites given all others
    sites: np.ndarray | None  # (N, sites); None where the likelihood does not fall into terms of sites
    given: str  # a sentence about the sites

    @property
    def rank(self) -> np.ndarray:
        """Return 1 for the row of least probability, and so on, (N,); rows of equal probability share the lower number."""
        return ranks(self.log_prob)


def surprise(
    model: Model, X: Any, y: Any = None, *, sites: bool = True, seed: int | None = 0, draws: int = 4
) -> Surprise:
    r"""Score rows: their log-probability and, for every site, how much it contributes to their being improbable.

    With hard noise the surprise of a site is exact, :math:`s_u = -\log P(x_u \mid x_{>u})` given the sites that are generated
    before it, and :math:`\sum_u s_u = -\log P(x)`. Without y, a model with labels sums over them, here too:
    :math:`P(x_u \mid x_{>u}) = \sum_y P(y \mid x_{>u})\,P(x_u \mid x_{>u}, y)`.

    Of other models it is what ``given`` says: a mixture over orders gives the mean over its chains, each weighted by its
    probability given the row; soft noise the steps of that site in the evidence lower bound, averaged over ``draws`` draws;
    ``Pairwise`` gives :math:`-\log P(x_u \mid x_{-u})`. ``log_prob`` is the likelihood where it is known, else the bound with
    its standard error, else the pseudo-likelihood: ``of`` says which. ``sites=False`` leaves the sites out.

    Of a row with gaps the probability is that of what is there, :math:`P(x_o) = \sum_{x_m} P(x_o, x_m)`, with a standard error
    where the sum is estimated, and so are the surprises of its sites; those of the gaps are NaN.

    >>> import neurise, numpy as np
    >>> X = np.repeat([[0, 0], [1, 1], [0, 1]], [60, 39, 1], axis=0)
    >>> neurise.surprise(neurise.Independent().fit(X), [[0, 0], [1, 0]]).sites.round(2)
    array([[0.49, 0.51],
           [0.94, 0.51]])
    """
    checks.count("draws", draws, MOST_DRAWS)
    if draws < 2:
        raise ValueError(f"a standard error needs at least two draws, got draws={draws}")
    x, missing = model.schema_.encode_gaps(X)
    generator = devices.generator(seed, model.device_)
    if missing is not None:
        return _with_gaps(model, x, missing, y, generator, sites=sites, seed=seed, draws=draws)
    if not sites:
        return _whole(model, X, y, seed, draws)
    labels = _labels(model, y, len(x))
    try:
        terms = [model.site_terms(x, label, generator) for label, _ in labels]
    except NotImplementedError as reason:
        return _whole(model, X, y, seed, draws)._replace(given=str(reason))
    weights = [weight for _, weight in labels]
    places = np.argsort(model.schema_.order)
    if terms[0].given == "others" and len(terms) > 1:
        return _whole(model, X, y, seed, draws)._replace(given="the labels are not known: give y")
    if terms[0].given == "bound":
        rest = [[model.site_terms(x, label, generator) for label, _ in labels] for _ in range(draws - 1)]
        return _bounded([terms, *rest], weights, _whole(model, X, y, seed, draws) if len(terms) > 1 else None, places)
    if len(terms) == 1:
        values, total, given = -terms[0].values.numpy(), terms[0].total.numpy(), terms[0].given
    elif terms[0].given == "chain":
        values, total = _summed(terms, weights)
        given = "chain"
    else:
        values, total = _averaged(terms, weights)
        given = "labels"
    return Surprise(total, None, terms[0].of, values[:, places] + 0.0, GIVEN[given])  # + 0.0: no −0


def in_blocks(
    model: Model, X: Any, y: Any = None, *, seed: int = 0, **options: Any
) -> Iterator[tuple[slice, Surprise]]:
    """Score rows a block at a time, so that any number of them takes the memory of one block."""
    rows = as_matrix(X)
    step = max(1, BLOCK // rows.shape[1])
    for number, start in enumerate(range(0, len(rows), step)):
        part = slice(start, min(len(rows), start + step))
        own = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
        yield part, surprise(model, X[part], None if y is None else y[part], seed=own, **options)


def ranks(log_prob: np.ndarray) -> np.ndarray:
    """Return 1 for the least probable row, and so on, (N,); equal ones share the lower number."""
    return 1 + np.searchsorted(np.sort(log_prob), log_prob, side="left")


def _whole(model: Model, X: Any, y: Any, seed: int | None, draws: int) -> Surprise:
    """Score whole rows by what the model knows of them."""
    try:
        return Surprise(model.log_prob(X, y), None, "log_prob", None, "")
    except NotImplementedError as reason:
        try:
            bound = model.elbo(X, y, seed=seed, draws=draws)
            return Surprise(bound.value, bound.standard_error, "elbo", None, "")
        except NotImplementedError:
            if not hasattr(model, "pseudo_log_likelihood"):
                raise reason from None
            return Surprise(model.pseudo_log_likelihood(X, y), None, "pseudo_log_likelihood", None, "")


def _with_gaps(
    model: Model, x: Tensor, missing: Tensor, y: Any, generator: Generator, *, sites: bool, **options: Any
) -> Surprise:
    """Score rows of tokens of which some lack values: each complete one by itself, the others by sums over their gaps."""
    lacking, decode = missing.any(1), model.schema_.decode
    labels = None if y is None else np.broadcast_to(np.asarray(y), len(x))
    probe = surprise(model, decode(x[:1]), None if labels is None else labels[:1], sites=sites, **options)
    if probe.of != "log_prob":
        raise NotImplementedError(
            f"rows with gaps need an exact likelihood, and a {type(model).__name__} has none here"
        )
    value, error = np.empty(len(x)), np.zeros(len(x))
    terms = None if probe.sites is None else np.full(x.shape, np.nan)
    whole, parts = torch.nonzero(~lacking).flatten(), torch.nonzero(lacking).flatten()
    if len(whole):
        own = None if labels is None else labels[whole.numpy()]
        found = surprise(model, decode(x[whole]), own, sites=sites, **options)
        value[whole.numpy()] = found.log_prob
        if terms is not None:
            terms[whole.numpy()] = found.sites
    own = None if labels is None else labels[parts.numpy()]
    gaps, places = missing[parts], torch.arange(x.shape[1])
    known, spread = log_marginal(model, x[parts], gaps, own, generator)
    value[parts.numpy()], error[parts.numpy()] = known.numpy(), spread.numpy()
    if terms is not None and probe.given == GIVEN["chain"]:
        before = torch.zeros(len(parts), dtype=torch.float64)  # log-probability of what is generated before a place
        for place in reversed(places.tolist()):
            now = log_marginal(model, x[parts], gaps | (places < place), own, generator)[0] if place else known
            there = ~gaps[:, place]
            terms[parts[there].numpy(), model.schema_.order[place]] = (before - now)[there].numpy()
            before = now
    return probe._replace(log_prob=value, error=error if error.any() else None, sites=terms)


def _labels(model: Model, y: Any, n: int) -> list[tuple[Tensor | None, float]]:
    """Return the labels of n rows, as given; or every class for all of them, with its probability."""
    if model.schema_.labels is not None and y is None:
        return [(label.expand(n), weight) for label, weight in model.label_terms(None) if label is not None]
    given = model.schema_.encode_labels(y, n)
    return [(None if given is None else given.to(model.device_), 1.0)]


def _summed(terms: Sequence[SiteTerms], weights: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    r"""Sum over labels along the chain: :math:`L_u = \log \sum_y \pi_y P(x_{\ge u} \mid y)` and :math:`s_u = L_{u+1} - L_u`."""
    values = _stacked([term.values for term in terms])  # (labels, N, sites)
    along = np.log(weights)[:, None, None] + values[..., ::-1].cumsum(-1)[..., ::-1]
    log_law = np.logaddexp.reduce(along, axis=0)  # (N, sites): L_u
    before = np.concatenate([log_law[:, 1:], np.zeros((len(log_law), 1))], axis=1)
    with np.errstate(invalid="ignore"):
        # Beyond an impossible site no label is possible any more: the most favourable one is asked.
        found = np.where(np.isneginf(before), -values.max(axis=0), before - log_law)
    return found, log_law[:, 0]


def _averaged(terms: Sequence[SiteTerms], weights: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Average over labels by their probability given the row."""
    totals = np.log(weights)[:, None] + _stacked([term.total for term in terms])  # (labels, N)
    total: np.ndarray = np.logaddexp.reduce(totals, axis=0)
    with np.errstate(invalid="ignore"):
        share = np.exp(totals - total)[..., None]
        values = np.where(share > 0, -share * _stacked([term.values for term in terms]), 0.0).sum(axis=0)
    return values, total


def _bounded(
    drawn: Sequence[Sequence[SiteTerms]], weights: Sequence[float], whole: Surprise | None, places: np.ndarray
) -> Surprise:
    """Average draws of a bound; its sum over labels, where there are several, is that of ``whole``."""
    values = np.stack([_averaged(terms, weights)[0] for terms in drawn]).mean(axis=0)[:, places]
    if whole is not None:
        return whole._replace(sites=values, given=GIVEN["bound"])
    totals = _stacked([terms[0].total for terms in drawn])
    error = totals.std(axis=0, ddof=1) / len(totals) ** 0.5
    return Surprise(totals.mean(axis=0), error, drawn[0][0].of, values, GIVEN["bound"])


def _stacked(tensors: Sequence[Tensor]) -> np.ndarray:
    return np.stack([tensor.numpy() for tensor in tensors])
