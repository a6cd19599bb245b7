"""Which launch of a fused kernel this chip has room for: found by a trial, once for each kind of kernel."""

from __future__ import annotations

import warnings
from functools import lru_cache

import torch

from neurise.conditionals.base import view_of
from neurise.networks.parts.plan import Layers, Plan
from neurise.noise.round_robin import RoundRobin
from neurise.sampling._cycle import run_cycle
from neurise.sampling._kind import Kind
from neurise.sampling._launch import Launch
from neurise.sampling._packing import pack
from neurise.space import Space

NARROW = (Launch(), Launch(rows=64, warps=4), Launch(rows=32, warps=4))
"""Launches to try for one network whose hidden layers stay in registers, the fastest first."""
MEMBERS = NARROW[1:]
"""The same for several such networks, and for pairwise terms. 128 rows are slower here: see docs/evidence/speed.md."""
WIDE = (
    Launch(rows=64, warps=4),
    Launch(rows=64, warps=4, stages=1),
    Launch(rows=32, warps=4, tile=64, chunk=32, stages=1),
)
"""The same where hidden layers are too wide for registers."""


def launches(kind: Kind) -> tuple[Launch, ...]:
    """List the launches that may serve, the fastest first."""
    if kind.wide:
        return WIDE
    return MEMBERS if kind.several or kind.pairs else NARROW


@lru_cache
def launch_for(device: torch.device, kind: Kind, precision: str) -> Launch | None:
    """Try the launches of a kernel on one row of one site, and return the first that the chip has room for.

    The very kernel that the rows will need: nothing is compiled for the trial alone. Compiling takes more than Triton, a C
    compiler for one; where something is missing the other forms do the work, and a warning says why.
    """
    from triton.runtime.errors import OutOfResources  # type: ignore[import-untyped]

    failures: list[Exception] = []
    for launch in launches(kind):
        try:
            attempt(device, kind, precision, launch)
        except OutOfResources:
            continue
        except Exception as error:  # also that of an assembler that has too few registers
            failures.append(error)
        else:
            return launch
    if failures:
        why = (str(failures[0]).strip() or type(failures[0]).__name__).splitlines()[0]
        warnings.warn(f"the fused kernel cannot be compiled here ({why}); sampling goes on without it", stacklevel=2)
    return None


def attempt(device: torch.device, kind: Kind, precision: str, launch: Launch) -> None:
    """Run the kernel on one row of one site."""
    everything = torch.ones(1, dtype=torch.bool, device=device)
    noise = RoundRobin(Space(1, kind.states), 0.0)
    view = view_of(noise, everything, hides_erased=kind.grows, sweep=False)
    packed = pack(_smallest(kind, device), view, None, precision=precision, launch=launch)
    x = torch.zeros(1, 1, dtype=torch.uint8, device=device)
    level = torch.full((1, 1), 0.5, dtype=torch.float64, device=device)
    run_cycle(packed, 0, x, None, level, launch)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # what goes wrong on the chip is told here


def _smallest(kind: Kind, device: torch.device) -> Plan:
    """Make a plan of this kind for one site, all of whose numbers are zero."""
    ports = 1 if kind.states == 2 else kind.states

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, device=device)

    layers = Layers(
        context=zeros(1, 1, kind.width),
        columns=zeros(1, ports, kind.width),
        label=zeros(0, kind.width),
        scales=[zeros(kind.width)] * kind.depth,
        shifts=[zeros(kind.width)] * kind.depth,
        weights=[zeros(kind.width, kind.width)] * (kind.depth - 1),
        biases=[zeros(kind.width)] * (kind.depth - 1),
        eps=kind.eps,
        residual=kind.residual,
        head=zeros(1, ports, kind.width),
    )
    pair = zeros(1, ports, 1, ports) if kind.pairs else None
    return Plan(((1.0, layers),) * (2 if kind.several else 1), zeros(1, ports), pair)
