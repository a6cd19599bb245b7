"""The reverse chain as Triton kernels, which keep a block of rows on the chip for many steps.

One narrow network without pairwise terms is one kernel per cycle, with its first layer in registers (:mod:`._kernel`).
Several networks, pairwise terms and wide layers take another, with their first layers in the cache (:mod:`._members`).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from neurise.categorical import uniforms
from neurise.conditionals.base import Conditionals
from neurise.networks.parts.plan import Plan, View
from neurise.sampling._cycle import run_cycle
from neurise.sampling._kind import Kind, kind_of
from neurise.sampling._launch import Launch
from neurise.sampling._packing import pack
from neurise.sampling._probe import launch_for
from neurise.sampling.incremental import forgotten, transposed


def available(device: torch.device) -> bool:
    """Whether the kernels can run here: a CUDA device that multiplies bfloat16, and Triton."""
    return (
        device.type == "cuda" and find_spec("triton") is not None and torch.cuda.get_device_capability(device) >= (8, 0)
    )


class Served(NamedTuple):
    """A plan that a kernel serves."""

    plan: Plan
    view: View
    kind: Kind


def served(conditionals: Conditionals) -> Served | None:
    """Find the plan of the chain and what kind of kernel it needs; None where no kernel serves it."""
    view = conditionals.view(sweep=False)
    plan = None if view is None else conditionals.planned(view)
    if view is None or plan is None:
        return None
    kind = kind_of(plan, view)
    return None if kind is None else Served(plan, view, kind)


def fits(conditionals: Conditionals, precision: str = "float32") -> bool:
    """Whether a kernel serves the plan of these conditionals, and the chip has room for it."""
    found = served(conditionals)
    return found is not None and launch_for(conditionals.device, found.kind, precision) is not None


@torch.no_grad()
def reverse(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    precision: str = "float32",
    launch: Launch | None = None,
) -> Tensor:
    """Run the chain from X_T = x back to X_0, (n, sites) tokens, as :func:`neurise.sampling.reverse.reverse` does."""
    found = served(conditionals)
    if found is None:
        raise ValueError(f"no fused kernel serves these {type(conditionals).__name__} with this chain")
    launch = launch or launch_for(x.device, found.kind, precision) or Launch()
    packed = pack(found.plan, found.view, conditionals.certain(found.view), precision=precision, launch=launch)
    noise, state = conditionals.noise, transposed(x)
    for cycle in reversed(range(noise.cycles)):
        top = noise.top(cycle)
        level = uniforms(top * len(x), generator=generator).view(top, len(x))
        if not forgotten(conditionals, cycle):
            run_cycle(packed, cycle, state, y, level, launch)
    return state.T.contiguous()
