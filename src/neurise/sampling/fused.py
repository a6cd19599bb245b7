"""The incremental reverse chain as one kernel a cycle (Triton), which keeps a block of rows on the chip for all its steps."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Generator, Tensor
from torch.nn import functional

from neurise.categorical import uniforms
from neurise.conditionals import Conditionals, NetworkConditionals
from neurise.networks.parts.layers import terms
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.sampling import _plan
from neurise.sampling._plan import Plan
from neurise.sampling.incremental import Walk
from neurise.space import Space

MAX_WIDTH = 256
"""Wider layers leave no room on the chip for a block of rows and a tile of weights."""
MAX_STATES = 64
TERMS = {"float32": 3, "bfloat16": 1}
"""Of how many bfloat16 a factor of a hidden layer is made up."""


@dataclass(frozen=True)
class Launch:
    """How the work is cut up; changes nothing but the speed."""

    rows: int = 128  # of a block: 64 for each group of four warps, so that a norm stays within a warp
    warps: int = 8
    held: int = 150_000  # bytes of weights that may stay on the chip


LAUNCH = Launch()


def available(device: torch.device) -> bool:
    """Whether the kernel can run here: a CUDA device that multiplies bfloat16, and Triton."""
    return (
        device.type == "cuda" and find_spec("triton") is not None and torch.cuda.get_device_capability(device) >= (8, 0)
    )


def fits(conditionals: Conditionals, precision: str = "float32") -> bool:
    """Whether the kernel serves this network: no pairwise terms, and layers that fit on the chip."""
    if not _plan.supports(conditionals) or not isinstance(conditionals, NetworkConditionals):
        return False
    network, noise = conditionals.network, conditionals.noise
    if not isinstance(network, SiteMLP) or network.pair is not None or network.token.dtype != torch.float32:
        return False
    width, states = network.token.shape[1], network.space.states
    if width > MAX_WIDTH or states > MAX_STATES:
        return False
    hard = noise.is_hard and conditionals.hide_noised
    residual, depth = network.hidden.residual, len(network.hidden.norms)
    return _compiles(conditionals.device, width, depth, states, residual, hard, precision, LAUNCH)


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
    (plan,) = _plan.make(conditionals)
    state = x.T.clone(memory_format=torch.contiguous_format)
    packed = pack(plan, precision)
    for cycle in reversed(range(plan.noise.cycles)):
        level = uniforms(state.numel(), generator=generator).view(state.shape)
        if cycle < plan.cycles:  # the others are forgotten: see Plan
            run_cycle(plan, packed, cycle, state, y, level, launch or LAUNCH)
    return state.T.contiguous()


def run_cycle(
    plan: Plan, packed: dict[str, Tensor], cycle: int, x: Tensor, y: Tensor | None, level: Tensor, launch: Launch
) -> None:
    """Run one cycle in place on x, (sites, n)."""
    from neurise.sampling._kernel import cycle_kernel

    sites, n = x.shape
    states, width, depth = plan.noise.space.states, plan.context.shape[-1], len(plan.scales)
    first, second = tiles(width)
    columns, terms = first + second, len(packed["weight"])
    start = Walk(plan, plan.context[cycle], plan.known[cycle], x, y).sum
    layer = 2 * columns**2
    cycle_kernel[(-(-n // launch.rows),)](
        x,
        level,
        functional.pad(start, (0, columns - width)),
        packed["context"][cycle],
        packed["columns"],
        packed["norm"],
        packed["weight"],
        packed["bias"],
        packed["head"],
        packed["offset"],
        packed["known"][cycle].clone(),  # at an address of its own: a kernel is compiled anew for an uneven one
        packed["constant"],
        n,
        sites,
        packed["head"][0].numel() if len(plan.head) > 1 else 0,
        plan.bonus,
        WIDTH=width,
        A=first,
        B=second,
        DEPTH=depth,
        STATES=states,
        LOGITS=max(16, power_of_two(states)),
        GROWS=plan.grows,
        RESIDUAL=plan.residual,
        TERMS=terms,
        HELD=min(depth - 1, 2, launch.held // layer) if terms == 1 else 0,
        EPS=plan.eps,
        ROWS=launch.rows,
        WIDEN=not x.is_cuda,
        num_warps=launch.warps,
        num_stages=1,  # to fetch the weights of later steps ahead would fill the chip with copies of them
    )


def pack(plan: Plan, precision: str) -> dict[str, Tensor]:
    """Lay the plan out as the kernel reads it: padded to the tiles, and the weights cut into terms."""
    extra = sum(tiles(plan.context.shape[-1])) - plan.context.shape[-1]

    def padded(tensor: Tensor) -> Tensor:
        return functional.pad(tensor, (0, extra)).contiguous()

    empty = plan.context.new_zeros(1, *plan.context.shape[-1:])  # a kernel takes no null pointer
    weights = torch.stack(plan.weights) if plan.weights else empty[None]
    norm = torch.stack([torch.stack(plan.scales), torch.stack(plan.shifts)], dim=1)
    square = functional.pad(weights, (0, extra, 0, extra))
    return {
        "context": padded(plan.context),
        "columns": padded(plan.columns),
        "norm": padded(norm),
        "weight": torch.stack(terms(square, TERMS[precision])),
        "bias": padded(torch.stack(plan.biases) if plan.biases else empty),
        "head": padded(plan.head),
        "offset": plan.offset,
        "known": plan.known.float(),
        "constant": torch.tensor(plan.constant, dtype=torch.int32, device=plan.context.device),
    }


def tiles(width: int) -> tuple[int, int]:
    """Cut a width into one or two powers of two, at least 16, of which the first is at most 128 if the width allows."""
    first = max(16, power_of_two(width))
    if first <= 128:
        return first, 0
    first //= 2
    return first, max(16, power_of_two(width - first))


def power_of_two(number: int) -> int:
    """Return the least power of two that is not below the number."""
    return 1 << (number - 1).bit_length()


@lru_cache
def _compiles(
    device: torch.device,
    width: int,
    depth: int,
    states: int,
    residual: bool,
    hard: bool,
    precision: str,
    launch: Launch,
) -> bool:
    """Try the kernel on one row of one site: what does not fit on this chip is left to the other forms.

    The very kernel that the rows will need: nothing is compiled for the trial alone. Compiling takes more than Triton, a C
    compiler for one; where something is missing the other forms do the work, and a warning says why.
    """
    from triton.runtime.errors import OutOfResources  # type: ignore[import-untyped]

    noise = RoundRobin(Space(1, states), 0.0 if hard else 0.5, 1)
    network = SiteMLP(noise.space, 1, width=width, depth=depth, residual=residual)
    network.reset(torch.Generator().manual_seed(0))
    constant = torch.full((1,), -1, device=device)
    probe = NetworkConditionals(network.to(device), noise, constant, hide_noised=True, width=width)
    generator = torch.Generator(device).manual_seed(0)
    try:
        reverse(probe, noise.start(1, generator=generator), generator=generator, precision=precision, launch=launch)
    except OutOfResources:
        return False
    except Exception as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        warnings.warn(f"the fused kernel cannot be compiled here ({why}); sampling goes on without it", stacklevel=2)
        return False
    return True
