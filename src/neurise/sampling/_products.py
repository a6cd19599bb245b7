"""Matrix products inside the fused kernel.

Numbers of 32 bits are multiplied as three terms of bfloat16, a = a₁ + a₂ + a₃, each with 8 of the 24 bits; of the nine
products of terms the six that reach into those 24 bits are summed. A layer is cut into two tiles, of A and B columns.
"""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_of(weight_ptr, out, into, term, layer, A: tl.constexpr, B: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of a layer's weights, (out, in) bfloat16."""
    first = weight_ptr + (term * (DEPTH - 1) + layer) * (A + B) * (A + B)
    return tl.load(first + out[:, None] * (A + B) + into[None, :])


@triton.jit
def weights_of(weight_ptr, a, b, term, layer, A: tl.constexpr, B: tl.constexpr, DEPTH: tl.constexpr):
    aa = tile_of(weight_ptr, a, a, term, layer, A, B, DEPTH)
    if B:
        ab = tile_of(weight_ptr, a, b, term, layer, A, B, DEPTH)
        ba = tile_of(weight_ptr, b, a, term, layer, A, B, DEPTH)
        bb = tile_of(weight_ptr, b, b, term, layer, A, B, DEPTH)
    else:
        ab = aa
        ba = aa
        bb = aa
    return aa, ab, ba, bb


@triton.jit
def dot(h, weight, z, WIDEN: tl.constexpr):
    """Add h · weightᵀ to z, bfloat16 times bfloat16 in float32."""
    if WIDEN:
        h = h.to(tl.float32)
        weight = weight.to(tl.float32)
    return tl.dot(h, tl.trans(weight), z)


@triton.jit
def held(h_a, h_b, aa, ab, ba, bb, B: tl.constexpr, WIDEN: tl.constexpr):
    """Multiply by weights that are on the chip."""
    low_a = h_a.to(tl.bfloat16)
    z_a = dot(low_a, aa, tl.zeros([h_a.shape[0], aa.shape[0]], tl.float32), WIDEN)
    z_b = z_a
    if B:
        low_b = h_b.to(tl.bfloat16)
        z_a = dot(low_b, ab, z_a, WIDEN)
        z_b = dot(low_a, ba, tl.zeros([h_a.shape[0], ba.shape[0]], tl.float32), WIDEN)
        z_b = dot(low_b, bb, z_b, WIDEN)
    return z_a, z_b


@triton.jit
def streamed(
    h_a,
    h_b,
    weight_ptr,
    a,
    b,
    layer,
    A: tl.constexpr,
    B: tl.constexpr,
    DEPTH: tl.constexpr,
    TERMS: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Multiply by weights that are read again at every step, from the cache that all blocks share."""
    z_a = tl.zeros([h_a.shape[0], A], tl.float32)
    z_a = product(h_a, z_a, weight_ptr, a, a, layer, A, B, DEPTH, TERMS, WIDEN)
    z_b = z_a
    if B:
        z_a = product(h_b, z_a, weight_ptr, a, b, layer, A, B, DEPTH, TERMS, WIDEN)
        z_b = tl.zeros([h_a.shape[0], B], tl.float32)
        z_b = product(h_a, z_b, weight_ptr, b, a, layer, A, B, DEPTH, TERMS, WIDEN)
        z_b = product(h_b, z_b, weight_ptr, b, b, layer, A, B, DEPTH, TERMS, WIDEN)
    return z_a, z_b


@triton.jit
def product(
    h,
    z,
    weight_ptr,
    out,
    into,
    layer,
    A: tl.constexpr,
    B: tl.constexpr,
    DEPTH: tl.constexpr,
    TERMS: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Add the product of a tile with a tile, in as many terms as are asked for."""
    first, second, third = terms(h)
    tile = tile_of(weight_ptr, out, into, 0, layer, A, B, DEPTH)
    z = dot(first, tile, z, WIDEN)
    if TERMS == 3:
        z = dot(second, tile, z, WIDEN)
        z = dot(third, tile, z, WIDEN)
        tile = tile_of(weight_ptr, out, into, 1, layer, A, B, DEPTH)
        z = dot(first, tile, z, WIDEN)
        z = dot(second, tile, z, WIDEN)
        tile = tile_of(weight_ptr, out, into, 2, layer, A, B, DEPTH)
        z = dot(first, tile, z, WIDEN)
    return z


@triton.jit
def terms(h):
    """Write numbers as sums of three bfloat16; those that nobody uses cost nothing."""
    first = h.to(tl.bfloat16)
    rest = h - first.to(tl.float32)
    second = rest.to(tl.bfloat16)
    return first, second, (rest - second.to(tl.float32)).to(tl.bfloat16)


@triton.jit
def logits_of(h, z, head, token, place, all_columns: tl.constexpr, STATES: tl.constexpr, WIDEN: tl.constexpr):
    """Add a tile's part of the logits, in three terms whatever the hidden layers take: a logit is not normed again."""
    weight = tl.load(head + token[:, None] * all_columns + place[None, :], mask=(token < STATES)[:, None], other=0.0)
    first, second, third = terms(h)
    weight_1, weight_2, weight_3 = terms(weight)
    z = dot(first, weight_1, z, WIDEN)
    z = dot(second, weight_1, z, WIDEN)
    z = dot(third, weight_1, z, WIDEN)
    z = dot(first, weight_2, z, WIDEN)
    z = dot(second, weight_2, z, WIDEN)
    return dot(first, weight_3, z, WIDEN)
