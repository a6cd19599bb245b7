r"""One cycle of the reverse chain as one Triton kernel: a block of rows stays on the chip from its first step to its last.

The first layer of the block, (rows, width), lives in registers. A width that is no power of two is cut into two tiles, A and
B columns (192 = 128 + 64): padding it would cost (256/192)² as many multiplications, and the weights would no longer fit.
"""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl

from neurise.sampling._draws import one_of_many, one_of_two
from neurise.sampling._layers import block, column, norm
from neurise.sampling._products import held, logits_of, streamed, weights_of


@triton.jit(do_not_specialize=["n", "sites", "head_stride"])  # one compilation serves every size
def cycle_kernel(
    x_ptr,  # (sites, n) uint8
    level_ptr,  # (sites, n) float64
    start_ptr,  # (n, A + B): first layer before the first step, without its context
    context_ptr,  # (sites, A + B)
    columns_ptr,  # (sites, FEATURES, A + B)
    norm_ptr,  # (DEPTH, 2, A + B): scale and shift
    weight_ptr,  # (TERMS, DEPTH − 1, A + B, A + B) bfloat16, out × in
    bias_ptr,  # (DEPTH − 1, A + B)
    head_ptr,  # (1 or sites, OUTPUTS, A + B)
    offset_ptr,  # (sites, OUTPUTS)
    known_ptr,  # (sites, OUTPUTS)
    constant_ptr,  # (sites,) int32
    n,
    sites,
    head_stride,  # 0 for one head, OUTPUTS · (A + B) for a head per site
    bonus,
    WIDTH: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    DEPTH: tl.constexpr,
    STATES: tl.constexpr,
    LOGITS: tl.constexpr,  # states padded to a power of two, at least 16
    GROWS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    TERMS: tl.constexpr,
    HELD: tl.constexpr,  # layers whose weights stay on the chip
    EPS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDEN: tl.constexpr,  # the interpreter cannot multiply bfloat16; widened to float32 the products are the same
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < n
    a = tl.arange(0, A)
    b = A + tl.arange(0, B if B else 16)
    all_columns: tl.constexpr = A + B
    sum_a = tl.load(start_ptr + row[:, None] * all_columns + a[None, :], mask=inside[:, None], other=0.0)
    sum_b = sum_a
    if B:
        sum_b = tl.load(start_ptr + row[:, None] * all_columns + b[None, :], mask=inside[:, None], other=0.0)
    if HELD > 0:
        aa1, ab1, ba1, bb1 = weights_of(weight_ptr, a, b, 0, 0, A, B, DEPTH)
    if HELD > 1:
        aa2, ab2, ba2, bb2 = weights_of(weight_ptr, a, b, 0, 1, A, B, DEPTH)

    for step in range(0, sites):
        u = sites - 1 - step
        old = tl.load(x_ptr + u * n + row, mask=inside, other=0).to(tl.int32)
        h_a = sum_a + tl.load(context_ptr + u * all_columns + a)[None, :]
        h_b = h_a
        if B:
            h_b = sum_b + tl.load(context_ptr + u * all_columns + b)[None, :]
        if not GROWS:
            h_a -= column(columns_ptr, u, old, a, all_columns, STATES)
            if B:
                h_b -= column(columns_ptr, u, old, b, all_columns, STATES)

        h_a, h_b = norm(h_a, h_b, norm_ptr, 0, a, b, WIDTH, A, B, EPS)
        if HELD > 0:
            z_a, z_b = held(h_a, h_b, aa1, ab1, ba1, bb1, B, WIDEN)
            h_a, h_b = block(h_a, h_b, z_a, z_b, bias_ptr, norm_ptr, 0, a, b, WIDTH, A, B, RESIDUAL, EPS)
        if HELD > 1:
            z_a, z_b = held(h_a, h_b, aa2, ab2, ba2, bb2, B, WIDEN)
            h_a, h_b = block(h_a, h_b, z_a, z_b, bias_ptr, norm_ptr, 1, a, b, WIDTH, A, B, RESIDUAL, EPS)
        for layer in range(HELD, DEPTH - 1):
            z_a, z_b = streamed(h_a, h_b, weight_ptr, a, b, layer, A, B, DEPTH, TERMS, WIDEN)
            h_a, h_b = block(h_a, h_b, z_a, z_b, bias_ptr, norm_ptr, layer, a, b, WIDTH, A, B, RESIDUAL, EPS)

        level = tl.load(level_ptr + step * n + row, mask=inside, other=0.0)
        head = head_ptr + u * head_stride
        if STATES == 2:
            odds = tl.sum(h_a * tl.load(head + a)[None, :], 1)
            if B:
                odds += tl.sum(h_b * tl.load(head + b)[None, :], 1)
            new = one_of_two(odds + tl.load(offset_ptr + u), known_ptr + u, constant_ptr + u, old, level, bonus)
        else:
            token = tl.arange(0, LOGITS)
            logits = tl.zeros([ROWS, LOGITS], tl.float32)
            logits = logits_of(h_a, logits, head, token, a, all_columns, STATES, WIDEN)
            if B:
                logits = logits_of(h_b, logits, head, token, b, all_columns, STATES, WIDEN)
            offset = tl.load(offset_ptr + u * STATES + token, mask=token < STATES, other=0.0)
            known = known_ptr + u * STATES
            new = one_of_many(logits + offset[None, :], known, constant_ptr + u, old, level, bonus, STATES, LOGITS)

        sum_a += column(columns_ptr, u, new, a, all_columns, STATES)
        if B:
            sum_b += column(columns_ptr, u, new, b, all_columns, STATES)
        if not GROWS:
            sum_a -= column(columns_ptr, u, old, a, all_columns, STATES)
            if B:
                sum_b -= column(columns_ptr, u, old, b, all_columns, STATES)
        tl.store(x_ptr + u * n + row, new.to(tl.uint8), mask=inside)
