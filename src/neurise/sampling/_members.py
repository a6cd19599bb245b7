r"""Some steps of a cycle of several networks as one Triton kernel, with pairwise terms and with wide layers.

The first layers of all networks do not fit in registers together. They are kept in global memory, where a block of rows reads
and writes its own stretch alone, which stays in the cache. A step reads each of them once: it adds the change of the step
before it, writes the sum back, and goes on with it.

All pairwise terms are one. Those of the sites at hand, summed over all tokens at the first of these steps, are kept in
global memory, and follow each token that changes.
"""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl

from neurise.sampling._draws import one_of_many, one_of_two
from neurise.sampling._layers import block, first_layer, norm
from neurise.sampling._products import logits_of, streamed
from neurise.sampling._wide import wide_layers, wide_logits, wide_odds


@triton.jit(do_not_specialize=["n", "sites", "members", "first", "last", "head_stride", "heads_stride"])
def members_kernel(
    x_ptr,  # (sites, n) uint8
    level_ptr,  # (sites, n) float64
    sum_ptr,  # (members, n, A + B): first layers without their contexts, before the change of the latest step
    before_ptr,  # (n,) uint8: the token that the latest step replaced
    layer_ptr,  # (n, 2, A) where WIDE: a hidden layer, and the one after it
    near_ptr,  # (n, NEAR) where NEAR > 0: pairwise terms of the sites of these steps, the lowest first
    pair_ptr,  # (sites, FEATURES, sites, OUTPUTS): what a token of one site adds to the logits of another
    context_ptr,  # (members, sites, A + B)
    columns_ptr,  # (members, sites, FEATURES, A + B)
    norm_ptr,  # (members, DEPTH, 2, A + B)
    weight_ptr,  # (members, TERMS, DEPTH − 1, A + B, A + B) bfloat16, out × in
    bias_ptr,  # (members, DEPTH − 1, A + B)
    head_ptr,  # (members, 1 or sites, OUTPUTS, A + B), times the member's weight
    offset_ptr,  # (sites, OUTPUTS): the weighted sum of all members'
    known_ptr,  # (sites, OUTPUTS)
    constant_ptr,  # (sites,) int32
    n,
    sites,
    members,
    first,  # step
    last,  # step, not run any more
    head_stride,  # 0 for one head, OUTPUTS · (A + B) for a head per site
    heads_stride,  # from the heads of a member to those of the next
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
    EPS: tl.constexpr,
    NEAR: tl.constexpr,  # outputs of a block of sites, 0 without pairwise terms
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,  # columns of a wide layer that are made at a time
    CHUNK: tl.constexpr,  # and of those that enter a product at a time
    STAGES: tl.constexpr,  # chunks on their way to a product
    WIDEN: tl.constexpr,  # the interpreter cannot multiply bfloat16; widened to float32 the products are the same
):
    start = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)  # within the block
    inside = row < n - start
    a = tl.arange(0, 16 if WIDE else A)
    b = A + tl.arange(0, B if B else 16)
    token = tl.arange(0, LOGITS)
    all_columns: tl.constexpr = A + B
    features: tl.constexpr = 1 if STATES == 2 else STATES
    layers: tl.constexpr = DEPTH - 1
    x_ptr += start
    level_ptr += start
    before_ptr += start
    sum_ptr += start * all_columns
    layer_ptr += start * 2 * A
    near_ptr += start * NEAR
    low = sites - last  # the lowest site of these steps

    wide_n = start * 0 + n  # 64 bits: sites · n may not fit into 32
    # The latest step of the kernel before this one; where there was none, nothing has moved, and any token will do.
    new = tl.load(x_ptr + tl.minimum(sites - first, sites - 1) * wide_n + row, mask=inside, other=0).to(tl.int32)
    old = tl.load(before_ptr + row, mask=inside, other=0).to(tl.int32)
    for step in range(first, last):
        u = sites - 1 - step
        latest = tl.minimum(u + 1, sites - 1)
        moved = tl.where(u + 1 < sites, 1.0, 0.0)
        present = tl.load(x_ptr + u * wide_n + row, mask=inside, other=0).to(tl.int32)
        odds = tl.zeros([ROWS], tl.float32)
        logits = tl.zeros([ROWS, LOGITS], tl.float32)
        for member in range(0, members):
            total = sum_ptr + member * wide_n * all_columns
            context = context_ptr + (member * sites + u) * all_columns
            columns = columns_ptr + member * sites * features * all_columns
            norms = norm_ptr + member * DEPTH * 2 * all_columns
            weight = weight_ptr + member * TERMS * layers * all_columns * all_columns
            bias = bias_ptr + member * layers * all_columns
            head = head_ptr + member * heads_stride + u * head_stride
            if WIDE:
                wide_layers(
                    layer_ptr,
                    total,
                    context,
                    columns,
                    norms,
                    weight,
                    bias,
                    u,
                    latest,
                    moved,
                    old,
                    new,
                    present,
                    row,
                    inside,
                    WIDTH,
                    A,
                    DEPTH,
                    STATES,
                    GROWS,
                    RESIDUAL,
                    TERMS,
                    EPS,
                    ROWS,
                    TILE,
                    CHUNK,
                    STAGES,
                    WIDEN,
                )
                if STATES == 2:
                    odds = wide_odds(layer_ptr, odds, head, row, inside, A, TILE)
                else:
                    logits = wide_logits(layer_ptr, logits, head, token, row, inside, A, STATES, CHUNK, WIDEN)
            else:
                h_a = first_layer(
                    total, context, columns, u, latest, moved, old, new, present, row, inside, a, A + B, STATES, GROWS
                )
                h_b = h_a
                if B:
                    h_b = first_layer(
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
                        b,
                        A + B,
                        STATES,
                        GROWS,
                    )
                h_a, h_b = norm(h_a, h_b, norms, 0, a, b, WIDTH, A, B, EPS)
                for layer in range(0, layers):
                    z_a, z_b = streamed(h_a, h_b, weight, a, b, layer, A, B, DEPTH, TERMS, WIDEN)
                    h_a, h_b = block(h_a, h_b, z_a, z_b, bias, norms, layer, a, b, WIDTH, A, B, RESIDUAL, EPS)
                if STATES == 2:
                    odds += tl.sum(h_a * tl.load(head + a)[None, :], 1)
                    if B:
                        odds += tl.sum(h_b * tl.load(head + b)[None, :], 1)
                else:
                    logits = logits_of(h_a, logits, head, token, a, all_columns, STATES, WIDEN)
                    if B:
                        logits = logits_of(h_b, logits, head, token, b, all_columns, STATES, WIDEN)

        old = present
        level = tl.load(level_ptr + step * wide_n + row, mask=inside, other=0.0)
        if STATES == 2:
            odds += tl.load(offset_ptr + u)
            if NEAR:
                odds += tl.load(near_ptr + row * NEAR + (u - low), mask=inside, other=0.0)
            new = one_of_two(odds, known_ptr + u, constant_ptr + u, old, level, bonus)
        else:
            is_token = (token < STATES)[None, :]
            logits += tl.load(offset_ptr + u * STATES + token[None, :], mask=is_token, other=0.0)
            if NEAR:
                place = row[:, None] * NEAR + (u - low) * STATES + token[None, :]
                logits += tl.load(near_ptr + place, mask=inside[:, None] & is_token, other=0.0)
            new = one_of_many(logits, known_ptr + u * STATES, constant_ptr + u, old, level, bonus, STATES, LOGITS)
        tl.store(x_ptr + u * wide_n + row, new.to(tl.uint8), mask=inside)
        if NEAR:
            _follow(near_ptr, pair_ptr, u, low, sites, old, new, row, inside, start, NEAR, STATES)
        tl.debug_barrier()  # what this step wrote, other threads may read in the next
    tl.store(before_ptr + row, old.to(tl.uint8), mask=inside)


@triton.jit
def _follow(near_ptr, pair_ptr, u, low, sites, old, new, row, inside, start, NEAR: tl.constexpr, STATES: tl.constexpr):
    """Let the pairwise terms of the sites low … u − 1 follow the token of site u."""
    outputs: tl.constexpr = 1 if STATES == 2 else STATES
    tile: tl.constexpr = 32 if STATES == 2 else 128
    features_of = sites * outputs  # terms that one token adds
    pair_ptr += (start * 0 + u) * outputs * features_of + low * outputs  # 64 bits
    count = (u - low) * outputs
    for begin in range(0, count, tile):
        place = begin + tl.arange(0, tile)
        keep = inside[:, None] & (place < count)[None, :]
        near = near_ptr + row[:, None] * NEAR + place[None, :]
        terms = tl.load(near, mask=keep, other=0.0)
        if STATES == 2:
            change = tl.load(pair_ptr + place, mask=place < count, other=0.0)
            terms += (new - old).to(tl.float32)[:, None] * change[None, :]
        else:
            terms += tl.load(pair_ptr + (new * features_of)[:, None] + place[None, :], mask=keep, other=0.0)
            terms -= tl.load(pair_ptr + (old * features_of)[:, None] + place[None, :], mask=keep, other=0.0)
        tl.store(near, terms, mask=keep)
