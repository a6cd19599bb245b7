"""The reverse and the forward chains of a chain model, to be told of step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from neurise.conditionals.base import Ordered
from neurise.modeling.model import Request
from neurise.modeling.trajectory import Chains
from neurise.sampling.clamped import Trail, checked_clamped
from neurise.sampling.corrector import Sweeps
from neurise.sampling.stepwise import Move, mixture_moves, noise_moves, reverse_moves

if TYPE_CHECKING:
    from neurise.modeling.chain_model import ChainModel


def chains_of(model: ChainModel, request: Request) -> Chains:
    """Return the chains that draw what is asked for: from noise, or, with ``clamp``, those of the particles that were kept."""
    sweeps = model.sweeps_of(request.sweeps)
    noise = model.chains[0].conditionals.noise
    steps = noise.num_steps + noise.space.sites * sum(sweeps.values())
    start, moves = _free(model, request, sweeps) if request.clamp is None else _clamped(model, request, sweeps)
    return Chains(start, noise.num_steps, steps, noise.tokens, moves)


def noising(model: ChainModel, x: Tensor, generator: torch.Generator) -> Chains:
    """Return the forward chains of rows of tokens. Those of a mixture have orders of their own; the first is shown."""
    first = model.chains[0]
    noise, x = first.conditionals.noise, x.to(model.device_)
    moves: Iterator[Move] = noise_moves(noise, first.arranged(x), generator=generator)
    if first.order is not None:
        places = torch.tensor(first.order, device=model.device_)
        moves = (move._replace(site=places[move.site]) for move in moves if move.site is not None)
    return Chains(x, 0, noise.num_steps, noise.tokens, moves)


def _free(model: ChainModel, request: Request, sweeps: Sweeps) -> tuple[Tensor, Iterator[Move]]:
    """Start from noise, from the same random numbers as ``sample``, each row in one of the chains."""
    n, generator, chains = request.n, request.generator, model.chains
    begin = None if request.start is None else request.start.to(model.device_)
    which = torch.zeros(n, dtype=torch.int64, device=generator.device)
    if len(chains) > 1:
        which.random_(len(chains), generator=generator)
    start = torch.zeros(n, model.schema_.space.sites, dtype=torch.int16, device=model.device_)
    found = list[tuple[Ordered, Tensor, Sequence[Move]]]()
    for number, own in enumerate(chains):
        rows = torch.nonzero(which == number).flatten()
        if len(rows):
            first = own.conditionals.noise.start(len(rows), generator=generator)
            first = first if begin is None else own.arranged(begin[rows])
            y = None if request.y is None else request.y[rows]
            start[rows] = own.restored(first).to(start.dtype)
            moves = reverse_moves(own.conditionals, first, y, generator=generator, sweeps=sweeps)
            if not model.is_mixture:
                return start, moves
            found.append((own, rows.cpu(), list(moves)))  # one after another, as samples are drawn
    return start, mixture_moves(found, n)


def _clamped(model: ChainModel, request: Request, sweeps: Sweeps) -> tuple[Tensor, Iterator[Move]]:
    """Draw weighted particles, and follow those that were kept from their start."""
    model.check_clamp(request)
    assert request.clamp is not None
    trails, labels = list[Trail](), model.schema_.labels
    drawn = checked_clamped(
        model.conditionals, request, labels=labels, sweeps=sweeps, device=model.device_, trails=trails
    )
    model.effective_samples_ = float(drawn.effective.sum())
    ways = [trail.traced() for trail in trails]
    start = torch.cat([first for first, _ in ways])[: request.n]
    known = [torch.cat(tokens)[: request.n] for tokens in zip(*(tokens for _, tokens in ways), strict=True)]
    held = request.clamp[1].to(model.device_).expand(request.n, -1)
    y = None if drawn.y is None else drawn.y.to(model.device_)
    moves = reverse_moves(
        model.conditionals, start, y, generator=request.generator, sweeps=sweeps, held=held, known=known
    )
    return start, moves
