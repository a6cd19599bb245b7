"""Hidden layers too wide for registers: both the layer and what it is made of live in global memory, a tile at a time here.

A block of rows writes and reads its own stretch alone, (rows, 2, A), which stays in the cache: the layer, and the sums that
are still to be normed. The threads of a block share the stretch: a barrier stands between what one of them writes and what
another reads.
"""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl

from neurise.sampling._layers import first_layer
from neurise.sampling._products import logits_of, product


@triton.jit
def wide_layers(
    layer_ptr,
    total,
    context,
    columns,
    norm_ptr,
    weight_ptr,
    bias_ptr,
    u,
    latest,
    moved,
    old,
    new,
    present,
    row,
    inside,
    WIDTH: tl.constexpr,
    A: tl.constexpr,
    DEPTH: tl.constexpr,
    STATES: tl.constexpr,
    GROWS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    TERMS: tl.constexpr,
    EPS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    STAGES: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Run all blocks of site u, and leave the last in memory."""
    mean = tl.zeros([ROWS], tl.float32)
    square = tl.zeros([ROWS], tl.float32)
    for begin in range(0, A, TILE):
        place = begin + tl.arange(0, TILE)
        z = first_layer(
            total, context, columns, u, latest, moved, old, new, present, row, inside, place, A, STATES, GROWS
        )
        tl.store(_at(layer_ptr, row, A + place, A), z, mask=inside[:, None])
        mean, square = _moments(mean, square, z, begin, place, WIDTH, TILE)
    _activate(layer_ptr, norm_ptr, mean, square, row, inside, WIDTH, A, False, EPS, TILE)
    for layer in range(0, DEPTH - 1):
        mean = tl.zeros([ROWS], tl.float32)
        square = tl.zeros([ROWS], tl.float32)
        for begin in range(0, A, TILE):
            place = begin + tl.arange(0, TILE)
            z = tl.zeros([ROWS, TILE], tl.float32)
            for start in tl.range(0, A, CHUNK, num_stages=STAGES):
                into = start + tl.arange(0, CHUNK)
                h = tl.load(_at(layer_ptr, row, into, A), mask=inside[:, None], other=0.0)
                z = product(h, z, weight_ptr, place, into, layer, A, 0, DEPTH, TERMS, WIDEN)
            z += tl.load(bias_ptr + layer * A + place)[None, :]
            tl.store(_at(layer_ptr, row, A + place, A), z, mask=inside[:, None])
            mean, square = _moments(mean, square, z, begin, place, WIDTH, TILE)
        norm = norm_ptr + (layer + 1) * 2 * A
        _activate(layer_ptr, norm, mean, square, row, inside, WIDTH, A, RESIDUAL, EPS, TILE)


@triton.jit
def wide_odds(layer_ptr, odds, head, row, inside, A: tl.constexpr, TILE: tl.constexpr):
    """Add the log-odds of the layer in memory."""
    for begin in range(0, A, TILE):
        place = begin + tl.arange(0, TILE)
        h = tl.load(_at(layer_ptr, row, place, A), mask=inside[:, None], other=0.0)
        odds += tl.sum(h * tl.load(head + place)[None, :], 1)
    return odds


@triton.jit
def wide_logits(
    layer_ptr,
    logits,
    head,
    token,
    row,
    inside,
    A: tl.constexpr,
    STATES: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Add the logits of the layer in memory."""
    for begin in range(0, A, CHUNK):
        place = begin + tl.arange(0, CHUNK)
        h = tl.load(_at(layer_ptr, row, place, A), mask=inside[:, None], other=0.0)
        logits = logits_of(h, logits, head, token, place, A, STATES, WIDEN)
    return logits


@triton.jit
def _at(layer_ptr, row, place, A: tl.constexpr):
    """Where some columns of the block are, (rows, columns): the layer's first, then those of the sums."""
    return layer_ptr + row[:, None] * (2 * A) + place[None, :]


@triton.jit
def _moments(mean, square, z, begin, place, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """Take a tile into the mean and the sum of squared deviations of the columns before it, each (rows,)."""
    count = tl.minimum(WIDTH - begin, TILE) * 1.0
    own = tl.sum(z, 1) / count  # what lies beyond the width is zero
    off = tl.where((place < WIDTH)[None, :], z - own[:, None], 0.0)
    share = count / (begin + count)
    gap = own - mean
    return mean + gap * share, square + tl.sum(off * off, 1) + gap * gap * share * begin


@triton.jit
def _activate(
    layer_ptr,
    norm,
    mean,
    square,
    row,
    inside,
    WIDTH: tl.constexpr,
    A: tl.constexpr,
    RESIDUAL: tl.constexpr,
    EPS: tl.constexpr,
    TILE: tl.constexpr,
):
    """LayerNorm → SiLU of the sums, and what entered the block where it is kept: the next layer."""
    tl.debug_barrier()
    scale = (1 / tl.sqrt(square / WIDTH + EPS))[:, None]
    for begin in range(0, A, TILE):
        place = begin + tl.arange(0, TILE)
        z = tl.load(_at(layer_ptr, row, A + place, A), mask=inside[:, None], other=0.0) - mean[:, None]
        z = z * scale * tl.load(norm + place)[None, :] + tl.load(norm + A + place)[None, :]
        z = z / (1 + tl.exp(-z))
        where = _at(layer_ptr, row, place, A)
        if RESIDUAL:
            z += tl.load(where, mask=inside[:, None], other=0.0)
        tl.store(where, z, mask=inside[:, None])
    tl.debug_barrier()
