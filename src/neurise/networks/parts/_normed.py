r"""What follows a product in every block, LayerNorm → SiLU, as one operation: fused forward and backward kernels for a GPU.

.. math:: y = \mathrm{SiLU}\bigl(w \odot \hat z + s\bigr) + r, \qquad
    \hat z = \frac{z + b - \mathrm{mean}}{\sqrt{\mathrm{var} + \epsilon}}

A step of many stacked networks does little but move such tensors: apart, its parts would each read and write them all.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

MAX_WIDTH = 1024
"""Wider rows would not stay in registers."""
DTYPES = (torch.float32, torch.bfloat16)
TILE = 1024
"""Numbers that a warp holds on the way there; on the way back, where each has several companions, half as many."""
PROGRAMS = 4096
"""About how many programs share the way back. The fewer, the less is written of sums that are still to be added up."""
LEAST_CHUNK, MOST_CHUNK = 8, 64
"""Rows of a program on the way back."""


def apply(h: Tensor, norm: nn.LayerNorm, linear: nn.Linear | None = None, *, residual: bool = False) -> Tensor:
    """Apply (Linear →) LayerNorm → SiLU by the kernels, and add what entered if asked to, (..., width).

    Under autocast the kernels return its short numbers, as the next product would round to them anyway. The derivative is
    of first order only, for :func:`torch.autograd.grad` of what may be a ``vmap``.
    """
    z, bias = (h, None) if linear is None else (functional.linear(h, linear.weight), linear.bias)
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else z.dtype
    y: Tensor = Normed.apply(z, bias, norm.weight, norm.bias, h if residual else None, norm.eps, dtype)  # type: ignore[no-untyped-call]
    return y


def serves(h: Tensor) -> bool:
    """Whether the kernels can be used for these rows."""
    return h.is_cuda and h.dtype in DTYPES and h.shape[-1] <= MAX_WIDTH and h.numel() > 0 and _compiles(h.device)


class Normed(torch.autograd.Function):
    """The kernels as one operation. Weight, shift and bias are (..., width), and the axes of z begin with theirs."""

    @staticmethod
    def forward(
        z: Tensor,
        bias: Tensor | None,
        weight: Tensor,
        shift: Tensor,
        added: Tensor | None,
        eps: float,
        dtype: torch.dtype,
    ) -> Tensor:
        """Return y, of the shape of z."""
        from neurise.networks.parts._normed_kernel import forward_kernel

        z, weight = z.contiguous(), weight.contiguous()
        y = torch.empty(z.shape, dtype=dtype, device=z.device)
        groups, rows = _cut(z, weight)
        shape = _shape(z.shape[-1], TILE, warps=4)
        blocks = -(-rows // shape["ROWS"])
        with torch.cuda.device_of(z):  # type: ignore[no-untyped-call]
            forward_kernel[(groups * blocks,)](
                z,
                weight if bias is None else bias.contiguous(),  # a kernel takes no null pointer
                weight,
                shift.contiguous(),
                z if added is None else added.contiguous(),
                y,
                rows,
                blocks,
                eps,
                BIAS=bias is not None,
                ADDED=added is not None,
                **shape,
            )
        return y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep z and the parameters: all else is found again."""
        z, bias, weight, shift, added, ctx.eps, _ = inputs
        ctx.save_for_backward(z, bias, weight, shift)
        ctx.added = None if added is None else added.dtype

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients."""
        z, bias, weight, shift = ctx.saved_tensors
        gradients = _back(z, bias, weight, shift, dy, ctx.eps)
        return *gradients, None if ctx.added is None else dy.to(ctx.added), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        """Put the mapped axis in front of everything: the rows of each of its members are a group."""
        tensors = [
            None if tensor is None else _in_front(tensor, axis, info.batch_size)
            for tensor, axis in zip(inputs[:5], in_dims[:5], strict=True)
        ]
        y: Tensor = Normed.apply(*tensors, *inputs[5:])  # type: ignore[no-untyped-call]
        return y, 0


def _back(
    z: Tensor, bias: Tensor | None, weight: Tensor, shift: Tensor, dy: Tensor, eps: float
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Gradients of z, bias, weight and shift. Sums over rows are in a fixed order: the same bits each time."""
    from neurise.networks.parts._normed_kernel import backward_kernel

    z, weight = z.contiguous(), weight.contiguous()
    groups, rows = _cut(z, weight)
    shape = _shape(z.shape[-1], TILE // 2)
    chunk = max(shape["ROWS"], _chunk(groups * rows))  # both powers of two
    blocks = -(-rows // chunk)
    dz = torch.empty_like(z)
    sums = torch.empty((2 if bias is None else 3, groups, blocks, z.shape[-1]), device=z.device, dtype=torch.float32)
    with torch.cuda.device_of(z):  # type: ignore[no-untyped-call]
        backward_kernel[(groups * blocks,)](
            z,
            weight if bias is None else bias.contiguous(),
            weight,
            shift.contiguous(),
            dy.contiguous(),
            dz,
            sums,
            rows,
            blocks,
            chunk,
            eps,
            BIAS=bias is not None,
            **shape,
        )
    found = [total.reshape(weight.shape).to(weight.dtype) for total in sums.sum(2)]
    return dz, None if bias is None else found[2], found[0], found[1]


def _in_front(tensor: Tensor, axis: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)


def _cut(z: Tensor, weight: Tensor) -> tuple[int, int]:
    """How many groups there are, and how many rows in each."""
    groups = weight.numel() // weight.shape[-1]
    return groups, z.numel() // (groups * z.shape[-1])


def _chunk(rows: int) -> int:
    """How many rows a program goes through on the way back: a power of two."""
    wanted: int = 1 << max(0, rows // PROGRAMS).bit_length()
    return min(MOST_CHUNK, max(LEAST_CHUNK, wanted))


def _shape(width: int, tile: int, warps: int = 1) -> dict[str, int]:
    """Lay rows out: up to 256 columns in one warp, which needs no other for its sums, and as many rows as fit a tile."""
    columns = 1 << (width - 1).bit_length()
    warps = max(warps, columns // 256)
    return {"WIDTH": width, "COLUMNS": columns, "ROWS": max(1, warps * tile // columns), "num_warps": warps}


@lru_cache
def _compiles(device: torch.device) -> bool:
    """Try the kernels on one row. They take more than Triton, a C compiler for one: where it is missing plain torch serves."""
    if find_spec("triton") is None or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    one = torch.ones(1, 16, device=device)
    try:
        Normed.forward(one, None, one[0], one[0], None, 1e-5, one.dtype)
        _back(one, None, one[0], one[0], one, 1e-5)
    except Exception as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        warnings.warn(f"the fused norm cannot be compiled here ({why}); plain torch does its work", stacklevel=2)
        return False
    return True
