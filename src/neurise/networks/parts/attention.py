"""Layers of causal attention: over all places of a row at once, or one place after another with what was kept of the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

EXPANSION = 4
"""Units of a hidden layer per channel."""
PER_HEAD = 64
"""Channels that a head has at most: fused attention is made for such sizes."""
LONGEST = 1000.0
"""The slowest pair of channels turns by one radian in so many places."""
ANY_LENGTH = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Kinds of attention that need no plan for every number of places."""


class Weights(NamedTuple):
    """The weights of one layer."""

    before_attention: Tensor  # (width,): scale of the norm
    project: Tensor  # (channels of queries, keys and values, width)
    merge: Tensor  # (width, width)
    before_hidden: Tensor  # (width,)
    up: Tensor  # (hidden, width)
    down: Tensor  # (width, hidden)


class Attention(nn.Module):
    r"""``depth`` layers in which a place looks at itself and at the places before it.

    .. math::
        h \leftarrow h + M\,\mathrm{attention}(P\,\mathrm{norm}(h)), \qquad
        h \leftarrow h + D\,\mathrm{GELU}(U\,\mathrm{norm}(h)) .

    Queries and keys are turned by angles that grow with the place, so that their product depends on the distance of two
    places: what is learnt of one pair of places serves all pairs of the same distance. The weights of all layers are
    stacked, so that they are rounded to shorter numbers by one operation per kind. ``shared`` heads of queries have the
    same keys and values, of which less is kept then while rows are generated.
    """

    def __init__(self, width: int, depth: int, *, heads: int, shared: int = 1) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"attention_heads={heads} does not divide width={width}")
        if heads % shared:
            raise ValueError(f"shared_heads={shared} does not divide the {heads} heads of width={width}")
        self.width, self.depth, self.heads, self.shared = width, depth, heads, shared
        self.channels = width // heads
        self.before_attention = nn.Parameter(torch.empty(depth, width))
        self.project = nn.Parameter(torch.empty(depth, width + 2 * width // shared, width))
        self.merge = nn.Parameter(torch.empty(depth, width, width))
        self.before_hidden = nn.Parameter(torch.empty(depth, width))
        self.up = nn.Parameter(torch.empty(depth, EXPANSION * width, width))
        self.down = nn.Parameter(torch.empty(depth, width, EXPANSION * width))
        self.recomputes = False  # whether the way back computes each layer again, to keep less

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights. The more layers there are, the less each adds at the start."""
        nn.init.ones_(self.before_attention)
        nn.init.ones_(self.before_hidden)
        nn.init.normal_(self.project, std=self.width**-0.5, generator=generator)
        nn.init.normal_(self.up, std=self.width**-0.5, generator=generator)
        less = (2 * self.depth) ** -0.5
        nn.init.normal_(self.merge, std=less * self.width**-0.5, generator=generator)
        nn.init.normal_(self.down, std=less * (EXPANSION * self.width) ** -0.5, generator=generator)

    def layers(self, dtype: torch.dtype) -> Iterator[Weights]:
        """Yield the weights of each layer."""
        kinds = (self.before_attention, self.project, self.merge, self.before_hidden, self.up, self.down)
        for weights in zip(*(kind.to(dtype).unbind(0) for kind in kinds), strict=True):
            yield Weights(*weights)

    def forward(self, h: Tensor, kept: Tensor | None = None) -> Tensor:
        """Run all layers on (n, places, width), in the numbers that h has.

        ``kept`` (n, 2 · depth, width) multiplies what each half of a layer adds, the same at all places of a row.
        """
        turns = self.turns(h.shape[1], h.device)
        for number, weights in enumerate(self.layers(h.dtype)):
            own = (None, None) if kept is None else kept[:, 2 * number : 2 * number + 2, None].unbind(1)
            if self.recomputes and torch.is_grad_enabled() and not _is_one_of_many(h):
                h = checkpoint(self._layer, h, weights, turns, own, use_reentrant=False, preserve_rng_state=False)
            else:
                h = self._layer(h, weights, turns, own)
        return h

    def _layer(self, h: Tensor, weights: Weights, turns: Tensor, kept: tuple[Tensor | None, ...]) -> Tensor:
        queries, keys, values = self.asked(h, weights, turns)
        if self.shared > 1:  # each key and value for all heads that share it
            keys, values = (part.repeat_interleave(self.shared, dim=1) for part in (keys, values))
        # On a CPU, fused attention would take networks that run as one by one after another.
        with sdpa_kernel(SDPBackend.MATH) if h.device.type == "cpu" and _is_one_of_many(h) else nullcontext():
            seen = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        h = _add(h, functional.linear(seen.transpose(1, 2).flatten(-2), weights.merge), kept[0])
        return _add(h, hidden(h, weights), kept[1])

    def asked(self, h: Tensor, weights: Weights, turns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of (n, places, width), (n, heads, places, channels of a head) each."""
        own = self.heads // self.shared
        projected = functional.linear(norm(h, weights.before_attention), weights.project)
        by_head = projected.view(*h.shape[:2], -1, self.channels)  # (n, places, heads, channels)
        # Split, not sliced: the way back of a slice fills the rest with zeros and adds them up.
        turning, values = torch.split(by_head, [self.heads + own, own], dim=2)
        queries, keys = torch.split(rotated(turning, turns), [self.heads, own], dim=2)
        return queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)

    def turns(self, places: int, device: torch.device) -> Tensor:
        r"""Return :math:`e^{i g \lambda^{-k}}` of places g and pairs k of channels, (places, 1, pairs) complex."""
        dtype = torch.float64 if self.project.dtype == torch.float64 else torch.float32
        pairs = self.channels // 2
        rates = LONGEST ** (-torch.arange(pairs, device=device, dtype=dtype) / max(1, pairs))
        angles = torch.arange(places, device=device)[:, None, None] * rates
        return torch.polar(torch.ones_like(angles), angles)


def rotated(part: Tensor, turns: Tensor) -> Tensor:
    """Turn pairs of channels by the angles of their places, (..., places, heads, channels); an odd channel stays as it is."""
    if part.shape[-1] % 2:
        even, odd = part[..., :-1].contiguous(), part[..., -1:]
        return torch.cat([rotated(even, turns), odd], dim=-1) if even.shape[-1] else part
    # As complex numbers it is one product; the parts of a pair by themselves would be gone through eight times.
    pairs = torch.view_as_complex(part.to(turns.real.dtype).view(*part.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).to(part.dtype)


def hidden(h: Tensor, weights: Weights) -> Tensor:
    """Return what the second half of a layer adds."""
    units = functional.gelu(functional.linear(norm(h, weights.before_hidden), weights.up))
    return functional.linear(units, weights.down)


def norm(h: Tensor, scale: Tensor) -> Tensor:
    """Normalise the last axis to mean 0 and variance 1, then scale."""
    return functional.layer_norm(h, h.shape[-1:], scale)


def heads_for(width: int) -> int:
    """Return how many heads suit a width: the fewest that divide it and have at most 64 channels each."""
    return next(heads for heads in range(max(1, -(-width // PER_HEAD)), width + 1) if width % heads == 0)


def _add(h: Tensor, more: Tensor, kept: Tensor | None) -> Tensor:
    return h + more if kept is None else torch.addcmul(h, more, kept)


def _is_one_of_many(h: Tensor) -> bool:
    """Whether several networks run as one."""
    return torch._C._functorch.is_batchedtensor(h)


class Kept:
    """Keys and values of the places so far, of rows that are generated place by place."""

    def __init__(self, attention: Attention, rows: int, places: int, dtype: torch.dtype, device: torch.device) -> None:
        shape = (attention.depth, 2, rows, attention.heads // attention.shared, places, attention.channels)
        self.attention, self.layers = attention, list(attention.layers(dtype))
        self.memory = torch.empty(shape, dtype=dtype, device=device)
        self.turns = attention.turns(places, device)

    def advance(self, h: Tensor, place: int) -> Tensor:
        """Run all layers at one place, (n, width), which looks at itself and at all before it."""
        attention, seen = self.attention, slice(0, place + 1)
        for weights, (keys, values) in zip(self.layers, self.memory, strict=True):
            query, key, value = attention.asked(h[:, None], weights, self.turns[place : place + 1])
            keys[:, :, place], values[:, :, place] = key[:, :, 0], value[:, :, 0]
            # Heads that share keys and values are rows of one question.
            query = query.reshape(len(h), -1, attention.shared, attention.channels)
            with sdpa_kernel(ANY_LENGTH):
                found = functional.scaled_dot_product_attention(query, keys[:, :, seen], values[:, :, seen])
            h = h + functional.linear(found.flatten(1), weights.merge)
            h = h + hidden(h, weights)
        return h
