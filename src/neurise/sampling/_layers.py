"""What the fused kernels share of a layer: the column of a token, the norm, and what follows a product.

A layer is cut into one or two tiles, of A and B columns; what lies beyond its width is zero.
"""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def column(columns_ptr, u, token, place, all_columns: tl.constexpr, STATES: tl.constexpr):
    """First-layer column of each row's token, (rows, columns of the tile)."""
    if STATES == 2:
        column = token.to(tl.float32)[:, None] * tl.load(columns_ptr + u * all_columns + place)[None, :]
    else:
        column = tl.load(columns_ptr + (u * STATES + token)[:, None] * all_columns + place[None, :])
    return column


@triton.jit
def first_layer(
    total,
    context,
    columns,
    u,
    latest,
    moved,
    old,
    new,
    present,
    row,
    inside,
    place,
    all_columns: tl.constexpr,
    STATES: tl.constexpr,
    GROWS: tl.constexpr,
):
    """Bring a tile of a sum up to date, and return the first layer of site u, (rows, columns of the tile)."""
    where = total + row[:, None] * all_columns + place[None, :]
    h = tl.load(where, mask=inside[:, None], other=0.0)
    h += moved * column(columns, latest, new, place, all_columns, STATES)
    if not GROWS:
        h -= moved * column(columns, latest, old, place, all_columns, STATES)
    tl.store(where, h, mask=inside[:, None])
    h += tl.load(context + place)[None, :]
    if not GROWS:
        h -= column(columns, u, present, place, all_columns, STATES)
    return h


@triton.jit
def norm(h_a, h_b, norm_ptr, layer, a, b, WIDTH: tl.constexpr, A: tl.constexpr, B: tl.constexpr, EPS: tl.constexpr):
    """LayerNorm → SiLU over both tiles; what lies beyond the width stays zero."""
    total = tl.sum(h_a, 1)
    if B:
        total += tl.sum(h_b, 1)
    mean = (total / WIDTH)[:, None]
    h_a = h_a - mean
    if A > WIDTH:
        h_a = tl.where((a < WIDTH)[None, :], h_a, 0.0)
    square = tl.sum(h_a * h_a, 1)
    if B:
        h_b = h_b - mean
        if A + B > WIDTH:
            h_b = tl.where((b < WIDTH)[None, :], h_b, 0.0)
        square += tl.sum(h_b * h_b, 1)
    scale = (1 / tl.sqrt(square / WIDTH + EPS))[:, None]
    norm = norm_ptr + layer * 2 * (A + B)
    h_a = h_a * scale * tl.load(norm + a)[None, :] + tl.load(norm + A + B + a)[None, :]
    h_a = h_a / (1 + tl.exp(-h_a))
    if B:
        h_b = h_b * scale * tl.load(norm + b)[None, :] + tl.load(norm + A + B + b)[None, :]
        h_b = h_b / (1 + tl.exp(-h_b))
    else:
        h_b = h_a
    return h_a, h_b


@triton.jit
def block(
    h_a,
    h_b,
    z_a,
    z_b,
    bias_ptr,
    norm_ptr,
    layer,
    a,
    b,
    WIDTH: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    RESIDUAL: tl.constexpr,
    EPS: tl.constexpr,
):
    """What follows a layer's product: bias, norm, SiLU, and what entered the block where it is kept."""
    z_a += tl.load(bias_ptr + layer * (A + B) + a)[None, :]
    if B:
        z_b += tl.load(bias_ptr + layer * (A + B) + b)[None, :]
    z_a, z_b = norm(z_a, z_b, norm_ptr, layer + 1, a, b, WIDTH, A, B, EPS)
    if RESIDUAL:
        z_a += h_a
        z_b += h_b
    return z_a, z_b
