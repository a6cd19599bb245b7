"""Draw from a model by tokens: for programs that show them and never meet the user's symbols.

Tokens are the places of symbols in the alphabet of their site, and sites are the user's columns. Labels are class numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise import devices
from neurise.modeling.chain_model import ChainModel
from neurise.modeling.model import Model, Request
from neurise.modeling.trajectory import Chains
from neurise.sampling.clamped import weigh
from neurise.sampling.corrector import correct


class Group(NamedTuple):
    """Rows drawn together given some of their sites: tokens (n, sites), what they are worth, and the weight of the group."""

    tokens: np.ndarray
    effective: float
    """How many independent rows they are worth."""
    log_weight: float = 0.0
    """The logarithm of an unbiased estimate of how likely the given sites are, up to a constant."""


def request_of(model: Model, n: int, clamp: Mapping[int, int], label: int | None, seed: int | None) -> Request:
    """Ask for n rows that hold given tokens at some sites."""
    schema, generator = model.schema_, devices.generator(seed, model.device_)
    labels = None if label is None else torch.full((n,), label, device=model.device_)
    if schema.labels is not None and labels is None and not clamp:
        labels = schema.labels.draw(n, generator=generator)
    given = torch.zeros(1, schema.space.sites, dtype=torch.bool)
    values = torch.zeros(1, schema.space.sites, dtype=torch.uint8)
    for site, token in clamp.items():
        place = schema.order.index(site)
        only = int(schema.constant[place])
        if only >= 0 and token != only:
            raise ValueError(
                f"{schema.site_name(place)} is always {schema.symbol(place, only)!r}: nothing else can be held"
            )
        given[0, place], values[0, place] = True, token
    return Request(n, labels, (values, given) if clamp else None, generator, quiet=True)


def draw(model: Model, n: int, clamp: Mapping[int, int], label: int | None, seed: int | None) -> np.ndarray:
    """Draw n rows as ``sample`` does, (n, sites)."""
    with torch.no_grad():
        return in_columns(model, model._draw(request_of(model, n, clamp, label, seed)))


def begin(model: Model, n: int, clamp: Mapping[int, int], label: int | None, seed: int | None) -> Chains:
    """Begin n reverse chains."""
    return model._chains(request_of(model, n, clamp, label, seed))


def begin_noising(model: Model, tokens: np.ndarray, seed: int | None) -> Chains:
    """Begin the forward chains of rows (n, sites)."""
    x = torch.from_numpy(np.ascontiguousarray(tokens, dtype=np.uint8))[:, list(model.order_)]
    return model._noising(x, devices.generator(seed, model.device_))


@torch.no_grad()
def group(model: Model, n: int, clamp: Mapping[int, int], label: int | None, seed: int | None) -> Group:
    """Draw one group of n rows given some of their sites; groups of different seeds are independent.

    Of a chain model they are weighted particles, however few: what many groups say together, each by its weight, is right.
    """
    request = request_of(model, n, clamp, label, seed)
    if not isinstance(model, ChainModel) or request.clamp is None:
        return Group(in_columns(model, model._draw(request)), float(n))
    model.check_clamp(request)
    values, given = (part.to(model.device_) for part in request.clamp)
    labels, known = request.y, model.schema_.labels
    if known is not None and labels is None:
        labels = known.draw(n, generator=request.generator)
    x, least, kept, log_mean = weigh(model.conditionals, values, given, labels, n, n, request.generator)
    rows, sweeps = x[0], model.sweeps_of(None).get(0, 0)
    if sweeps:
        y = None if kept is None else kept[0]
        held = given.expand(n, -1)
        rows = correct(model.conditionals, rows, y, sweeps=sweeps, held=held, generator=request.generator)
    return Group(in_columns(model, rows), float(least[0]), float(log_mean[0]))


def in_columns(model: Model, tokens: Tensor) -> np.ndarray:
    """Put tokens in the order of the user's columns."""
    return tokens.cpu().numpy()[:, np.argsort(model.order_)]
