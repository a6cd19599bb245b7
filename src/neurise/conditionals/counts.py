"""Conditionals from counts, which fall back on shorter contexts where a longer one was seldom seen."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from neurise.conditionals import _tries
from neurise.conditionals.base import Conditionals, Frame
from neurise.deadline import Work
from neurise.fields import Field
from neurise.networks.parts.plan import View
from neurise.rows import Rows
from neurise.space import possible

MOST_NODES = 2**31 - 1
"""Nodes are numbered by 32 bits."""


class Counts(Conditionals):
    r"""How often a site held each token where the sites generated before it were as they are now, :math:`\mu(x_u \mid x_{>u}, y)`.

    Each site has a tree of contexts (:mod:`neurise.conditionals._tries`). A row is followed from its root as far as its context
    was seen, and the law of the node where it ends is the answer: counts, which lean on those of shorter contexts. The sites of
    a context are ordered by what they say of the site, and the label is one of them. With many rows for the size of the space
    this is the empirical law; with few it is that of few sites. It is for hard noise of one cycle, and cannot sweep: it knows
    the sites after a site alone.

    >>> import torch
    >>> from neurise.conditionals.base import Frame
    >>> from neurise.noise.round_robin import RoundRobin
    >>> from neurise.rows import Rows
    >>> from neurise.space import Space
    >>> noise = RoundRobin(Space(sites=2, states=3), keep_prob=0.0, cycles=1)
    >>> frame = Frame(noise, classes=0, constant=torch.tensor([-1, -1]))
    >>> equal = torch.arange(3, dtype=torch.uint8).repeat(100)[:, None].expand(-1, 2)  # both sites hold the same
    >>> counts = Counts.of_rows(Rows(equal), frame)
    >>> counts.log_conditionals(torch.tensor([[0, 2]])).exp()[0, 0].round(decimals=2).tolist()
    [0.0, 0.0, 1.0]
    """

    hide_noised, can_sweep = True, False
    asks: Tensor
    first: Tensor
    branches: Tensor
    laws: Tensor

    def __init__(self, frame: Frame, *, nodes: int, slots: int, depth: int) -> None:
        super().__init__()
        self.noise, self.classes, self.depth = frame.noise, frame.classes, depth
        if not (self.is_autoregressive and self.noise.num_steps == self.noise.space.sites):
            raise ValueError("counts are of rows before any noise: they need hard noise that goes round the sites once")
        self.register_buffer("ignored", frame.constant >= 0, persistent=False)
        for name, count in (("asks", nodes), ("first", nodes), ("branches", slots)):
            self.register_buffer(name, torch.empty(count, dtype=torch.int32))
        self.register_buffer("laws", torch.empty(nodes, self.noise.space.states))
        self.bytes_per_row = self.noise.space.sites * (48 + 8 * self.noise.space.states)
        self.register_load_state_dict_post_hook(_check)  # type: ignore[no-untyped-call]

    @classmethod
    def of_rows(cls, rows: Rows, frame: Frame, *, work: Work | None = None) -> Self:
        """Count rows, whose sites are in the order of the chain; what is found is on the CPU, or where ``frame`` is."""
        ignored = frame.constant >= 0
        trees = _tries.grow(rows, frame.noise.space, classes=frame.classes, ignored=ignored, work=work)
        made = cls(frame, nodes=len(trees.asks), slots=len(trees.branches), depth=trees.depth)
        made.asks, made.first, made.branches, made.laws = trees.asks, trees.first, trees.branches, trees.laws
        return made.to(frame.constant.device)

    @property
    def free(self) -> int:
        """How many numbers are free: one less than there are states, per node."""
        return len(self.asks) * (self.noise.space.states - 1)

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Follow the rows through the trees of the sites u, (..., states); the step says nothing more."""
        leading = (t + u + x[..., 0]).shape
        labels = None if y is None else y.expand(leading)
        return self._answers(u.expand(leading), x.expand(*leading, -1), labels)

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Follow the rows through all trees at once, (n, sites, states)."""
        sites = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
        labels = None if y is None else y.expand(len(x))[:, None].expand_as(sites)
        return self._answers(sites, x[:, None].expand(-1, x.shape[1], -1), labels)

    def _answers(self, u: Tensor, x: Tensor, y: Tensor | None) -> Tensor:
        """Follow (..., sites) rows from the roots of sites u (...); where there is no child, a row stays where it is."""
        node, sites = u.long(), x.shape[-1]
        for _ in range(self.depth):
            site = self.asks[node].long()
            value = x.gather(-1, site.clamp(0, sites - 1)[..., None]).squeeze(-1).long()
            if self.classes:
                value = torch.where(site == sites, -1 if y is None else y.long(), value)
            place = self.first[node] + value.clamp(min=0)
            child = self.branches[place.clamp(max=len(self.branches) - 1)]
            node = torch.where((site >= 0) & (value >= 0) & (child >= 0), child, node)
        return torch.log_softmax(possible(self.laws[node], self.noise.space, u), dim=-1)

    def view(self, *, sweep: bool) -> View | None:
        """Return None: there is no first layer that follows one token."""
        return None

    def description(self) -> dict[str, Any]:
        """Tell the sizes of the trees."""
        return {"answers": "counts", "nodes": len(self.asks), "slots": len(self.branches), "depth": self.depth}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> Counts:
        """Make trees of these sizes."""
        field, sites = Field(description, "learnt.conditionals"), frame.noise.space.sites
        nodes, slots = field["nodes"].whole(sites, MOST_NODES), field["slots"].whole(0, MOST_NODES)
        return cls(frame, nodes=nodes, slots=slots, depth=field["depth"].whole(0, sites))


def _check(counts: nn.Module, _: Any) -> None:
    """Raise ValueError for trees, read from a file, that lead out of themselves."""
    assert isinstance(counts, Counts)
    digits = torch.tensor((*counts.noise.space.digits, counts.classes, 0))
    asks, first, branches = counts.asks.cpu().long(), counts.first.cpu().long(), counts.branches.cpu()
    most = counts.noise.space.sites - (counts.classes == 0)
    for name, tensor, limit in (("asks", asks, most), ("branches", branches, len(asks) - 1)):
        if len(tensor) and not -1 <= int(tensor.min()) <= int(tensor.max()) <= limit:
            raise ValueError(f"the tensor {name} of counts must hold numbers from -1 to {limit}")
    ends = first + digits[asks]  # a leaf asks −1, and has none
    if int(first.min()) < 0 or int(ends.max()) > len(branches):
        raise ValueError(f"the tensor first of counts must hold places of {len(branches)} branches")
