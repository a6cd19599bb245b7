"""LayerNorm → SiLU as two Triton kernels, there and back: every number is read once and written once.

Rows come in groups with a weight, a shift and a bias of their own, (groups, rows, WIDTH). A program holds a few whole rows in
registers, so that mean and spread are found again on the way back and nothing but z is kept. Sums are in float32.
"""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "blocks"])  # one compilation serves every size
def forward_kernel(
    z_ptr,  # (groups, rows, WIDTH)
    bias_ptr,  # (groups, WIDTH), like weight and shift
    weight_ptr,
    shift_ptr,
    added_ptr,  # (groups, rows, WIDTH)
    y_ptr,  # (groups, rows, WIDTH)
    rows,
    blocks,  # programs a group
    eps,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,  # the width padded to a power of two
    ROWS: tl.constexpr,
    BIAS: tl.constexpr,
    ADDED: tl.constexpr,
):
    group, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    column = tl.arange(0, COLUMNS)
    row = block * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
    place = (group.to(tl.int64) * rows + row)[:, None] * WIDTH + column[None, :]
    bias = _vector(bias_ptr, group, column, WIDTH, BIAS)
    weight = _vector(weight_ptr, group, column, WIDTH, True)
    shift = _vector(shift_ptr, group, column, WIDTH, True)
    z = tl.load(z_ptr + place, mask=inside, other=0.0).to(tl.float32) + bias[None, :]
    unit, _ = _standardised(z, column, eps, WIDTH)
    y = unit * weight[None, :] + shift[None, :]
    y = y / (1 + tl.exp(-y))
    if ADDED:
        y += tl.load(added_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["rows", "blocks", "chunk"])
def backward_kernel(
    z_ptr,
    bias_ptr,
    weight_ptr,
    shift_ptr,
    dy_ptr,  # (groups, rows, WIDTH)
    dz_ptr,  # (groups, rows, WIDTH)
    sums_ptr,  # (2 or 3, groups, blocks, WIDTH): of weight, shift and bias, over the rows of a program
    rows,
    blocks,
    chunk,  # rows a program
    eps,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BIAS: tl.constexpr,
):
    group, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    column = tl.arange(0, COLUMNS)
    bias = _vector(bias_ptr, group, column, WIDTH, BIAS)
    weight = _vector(weight_ptr, group, column, WIDTH, True)
    shift = _vector(shift_ptr, group, column, WIDTH, True)
    weight_sum = tl.zeros([COLUMNS], tl.float32)
    shift_sum = tl.zeros([COLUMNS], tl.float32)
    bias_sum = tl.zeros([COLUMNS], tl.float32)
    for start in range(0, chunk, ROWS):
        row = block * chunk + start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        place = (group.to(tl.int64) * rows + row)[:, None] * WIDTH + column[None, :]
        z = tl.load(z_ptr + place, mask=inside, other=0.0).to(tl.float32) + bias[None, :]
        dy = tl.load(dy_ptr + place, mask=inside, other=0.0).to(tl.float32)
        unit, scale = _standardised(z, column, eps, WIDTH)
        y = unit * weight[None, :] + shift[None, :]
        gate = 1 / (1 + tl.exp(-y))
        dy = dy * gate * (1 + y * (1 - gate))  # through SiLU; rows beyond the last have none
        slope = dy * weight[None, :]
        along = tl.sum(slope * unit, 1) / WIDTH
        dz = scale[:, None] * (slope - (tl.sum(slope, 1) / WIDTH)[:, None] - unit * along[:, None])
        tl.store(dz_ptr + place, dz.to(dz_ptr.dtype.element_ty), mask=inside)
        weight_sum += tl.sum(dy * unit, 0)
        shift_sum += tl.sum(dy, 0)
        if BIAS:
            bias_sum += tl.sum(dz, 0)
    programs = tl.num_programs(0).to(tl.int64)
    own = sums_ptr + tl.program_id(0) * WIDTH + column
    tl.store(own, weight_sum, mask=column < WIDTH)
    tl.store(own + programs * WIDTH, shift_sum, mask=column < WIDTH)
    if BIAS:
        tl.store(own + 2 * programs * WIDTH, bias_sum, mask=column < WIDTH)


@triton.jit
def _vector(pointer, group, column, WIDTH: tl.constexpr, THERE: tl.constexpr):
    """A group's own numbers, one a column, or zeros."""
    if THERE:
        found = tl.load(pointer + group * WIDTH + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    else:
        found = tl.zeros(column.shape, tl.float32)
    return found


@triton.jit
def _standardised(z, column, eps, WIDTH: tl.constexpr):
    """Rows of mean 0 and variance 1, zero beyond the width, and what they were multiplied by."""
    z = z - (tl.sum(z, 1) / WIDTH)[:, None]
    z = tl.where((column < WIDTH)[None, :], z, 0.0)
    scale = 1 / tl.sqrt(tl.sum(z * z, 1) / WIDTH + eps)
    return z * scale[:, None], scale
