"""One cycle of the reverse chain by the fused kernels: what they start from, and how they are started."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from neurise.sampling._launch import Launch
from neurise.sampling._packing import Packed, features, power_of_two
from neurise.walks import BLOCK


def run_cycle(packed: Packed, cycle: int, x: Tensor, y: Tensor | None, level: Tensor, launch: Launch) -> None:
    """Run one cycle in place on x, (sites, n); ``level`` holds its uniform numbers in the order of the steps, (sites, n)."""
    if packed.simple:
        _run_one(packed, cycle, x, first_layers(packed, x, y)[0], level, launch)
    else:
        _run_members(packed, cycle, x, first_layers(packed, x, y), level, launch)


def first_layers(packed: Packed, x: Tensor, y: Tensor | None) -> Tensor:
    """Sum what every network sees before the first step, without its context, (members, n, columns)."""
    n = x.shape[1]
    members, columns = len(packed.columns), sum(packed.tiles)
    sums = packed.columns.new_zeros(members, n, columns) if y is None else packed.label[:, y]
    if not packed.view.grows:
        shown = features(x, packed.view.noise.space.states)
        for member in range(members):
            sums[member].addmm_(shown, packed.columns[member].flatten(0, 1))
    return sums


def _run_one(packed: Packed, cycle: int, x: Tensor, start: Tensor, level: Tensor, launch: Launch) -> None:
    """Run a cycle of one narrow network: one kernel."""
    from neurise.sampling._kernel import cycle_kernel

    (sites, n), terms, columns = x.shape, packed.weight.shape[1], sum(packed.tiles)
    cycle_kernel[(-(-n // launch.rows),)](
        x,
        level,
        start,
        packed.context[cycle, 0],
        packed.columns[0],
        packed.norm[0],
        packed.weight[0],
        packed.bias[0],
        packed.head[0],
        packed.offset,
        packed.known[cycle].clone(),  # at an address of its own: a kernel is compiled anew for an uneven one
        packed.constant,
        n,
        sites,
        packed.head_stride,
        packed.bonus,
        HELD=min(packed.depth - 1, 2, launch.held // (2 * columns**2)) if terms == 1 else 0,
        **_constants(packed, x, launch),
    )


def _run_members(packed: Packed, cycle: int, x: Tensor, sums: Tensor, level: Tensor, launch: Launch) -> None:
    """Run a cycle of several networks, of wide ones, or of any with pairwise terms: one kernel for each block of sites."""
    from neurise.sampling._members import members_kernel

    (sites, n), pair = x.shape, packed.pair
    states, outputs = packed.view.noise.space.states, packed.offset.shape[-1]
    before = torch.zeros_like(x[0])
    layer = sums.new_empty(n, 2, sum(packed.tiles)) if packed.wide else sums  # a kernel takes no null pointer
    near = sums if pair is None else sums.new_empty(n, BLOCK * outputs)
    context, known = packed.context[cycle].clone(), packed.known[cycle].clone()  # at even addresses, as above
    for first in range(0, sites, BLOCK if pair is not None else sites):
        last = sites if pair is None else min(first + BLOCK, sites)
        if pair is not None:
            # All tokens, also those that are still noise: to change such a token is to take away its terms.
            terms = pair.flatten(2)[..., (sites - last) * outputs : (sites - first) * outputs].flatten(0, 1)
            near[:, : terms.shape[1]] = features(x, states) @ terms
        members_kernel[(-(-n // launch.rows),)](
            x,
            level,
            sums,
            before,
            layer,
            near,
            sums if pair is None else pair,
            context,
            packed.columns,
            packed.norm,
            packed.weight,
            packed.bias,
            packed.head,
            packed.offset,
            known,
            packed.constant,
            n,
            sites,
            len(sums),
            first,
            last,
            packed.head_stride,
            packed.head[0].numel(),
            packed.bonus,
            NEAR=0 if pair is None else BLOCK * outputs,
            WIDE=packed.wide,
            TILE=launch.tile,
            CHUNK=launch.chunk,
            STAGES=launch.stages,
            **_constants(packed, x, launch),
        )


def _constants(packed: Packed, x: Tensor, launch: Launch) -> dict[str, Any]:
    """List what both kernels are compiled for."""
    states = packed.view.noise.space.states
    return {
        "WIDTH": packed.width,
        "A": packed.tiles[0],
        "B": packed.tiles[1],
        "DEPTH": packed.depth,
        "STATES": states,
        "LOGITS": max(16, power_of_two(states)),
        "GROWS": packed.view.grows,
        "RESIDUAL": packed.residual,
        "TERMS": packed.weight.shape[1],
        "EPS": packed.eps,
        "ROWS": launch.rows,
        "WIDEN": not x.is_cuda,
        "num_warps": launch.warps,
        "num_stages": 1,  # to fetch the weights of later steps ahead would fill the chip with copies of them
    }
