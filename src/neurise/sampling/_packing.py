"""Plans laid out as the fused kernels read them: padded to whole tiles, and weights cut into terms."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from neurise.conditionals.base import Certain
from neurise.networks.parts.layers import one_hot, terms
from neurise.networks.parts.plan import Plan, View
from neurise.sampling._launch import Launch
from neurise.sampling.incremental import kept_bonus

TERMS = {"float32": 3, "bfloat16": 1}
"""Of how many bfloat16 a factor of a hidden layer is made up."""


@dataclass(frozen=True)
class Packed:
    """The networks of a plan, its one pairwise term and its one offset, and the sites whose answer is certain."""

    view: View
    bonus: float  # what Bayes' rule adds to the logit of the present token
    width: int
    depth: int
    residual: bool
    eps: float
    tiles: tuple[int, int]  # columns of a layer, in one or two powers of two; in one multiple of them if it is wide
    wide: bool  # a hidden layer does not fit in registers
    context: Tensor  # (cycles, members, sites, columns)
    columns: Tensor  # (members, sites, features, columns)
    label: Tensor  # (members, classes, columns)
    norm: Tensor  # (members, depth, 2, columns): scale and shift
    weight: Tensor  # (members, terms, layers, columns, columns) bfloat16
    bias: Tensor  # (members, layers, columns)
    head: Tensor  # (members, 1 or sites, outputs, columns), times the member's weight
    offset: Tensor  # (sites, outputs)
    pair: Tensor | None  # (sites, features, sites, outputs)
    known: Tensor  # (cycles, sites, outputs)
    constant: Tensor  # (sites,) int32

    @property
    def simple(self) -> bool:
        """Whether there is one narrow network alone, whose first layer can stay in registers."""
        return len(self.columns) == 1 and self.pair is None and not self.wide

    @property
    def head_stride(self) -> int:
        """Numbers from the head of a site to that of the next."""
        return self.head[0, 0].numel() if self.head.shape[1] > 1 else 0


def pack(plan: Plan, view: View, certain: Certain | None, *, precision: str, launch: Launch) -> Packed:
    """Lay out a plan whose networks have one shape."""
    members = [layers for _, layers in plan.layers]
    first, width = members[0], members[0].columns.shape[-1]
    wide = width > launch.narrow
    cut = (-(-width // launch.tile) * launch.tile, 0) if wide else tiles(width)
    extra = sum(cut) - width

    def padded(tensors: list[Tensor], dim: int = 0) -> Tensor:
        return functional.pad(torch.stack(tensors, dim), (0, extra)).contiguous()

    empty = first.columns.new_zeros(1, width)  # a kernel takes no null pointer
    square = torch.stack([torch.stack(one.weights) if one.weights else empty[None] for one in members])
    square = functional.pad(square, (0, extra, 0, sum(cut) - square.shape[-2]))
    sites, known = (False,) * len(plan.offset), plan.offset.new_zeros(view.cycles, *plan.offset.shape)
    if certain is not None:
        sites, known = certain.sites, certain.logits.float().contiguous()
    return Packed(
        view=view,
        bonus=kept_bonus(view.noise),
        width=width,
        depth=len(first.scales),
        residual=first.residual,
        eps=first.eps,
        tiles=cut,
        wide=wide,
        context=padded([one.context for one in members], 1),
        columns=padded([one.columns for one in members]),
        label=padded([one.label for one in members]),
        norm=padded([torch.stack([torch.stack(one.scales), torch.stack(one.shifts)], 1) for one in members]),
        weight=torch.stack(terms(square, TERMS[precision]), 1),
        bias=padded([torch.stack(one.biases) if one.biases else empty for one in members]),
        head=padded([weight * one.head for weight, one in plan.layers]),
        offset=plan.offset.contiguous(),
        pair=None if plan.pair is None else plan.pair.permute(2, 3, 0, 1).contiguous(),
        known=known,
        constant=torch.tensor(sites, dtype=torch.int32, device=plan.offset.device),
    )


def features(x: Tensor, states: int) -> Tensor:
    """Tokens as the columns take them, (sites, n) → (n, sites · features)."""
    return x.T.float() if states == 2 else one_hot(x.T, states, torch.float32).flatten(1)


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
