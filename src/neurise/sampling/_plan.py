r"""All that a reverse chain can know before it starts, so that a step is left with O(width) work for the first layer.

With two states the column of a token is :math:`W_{i,x_i} = W_{i,0} + x_i\,(W_{i,1} - W_{i,0})`: the first term does not
depend on x and moves into the context of the step, and what is left is a number times one column. So a site has one
*feature*, its token, and one output, the log-odds of token 1. With more states it has p features and p outputs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from neurise.conditionals import Conditionals, NetworkConditionals
from neurise.networks._committee import Committee
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""In which numbers the hidden layers multiply. Sums, norms and the draw are never shorter than float32."""


@dataclass(frozen=True)
class Plan:
    r"""What step (cycle, u) needs, step by step.

    ``grows`` says that hard noise hides what it erased. Then step u of the last cycle sees the sites after u alone, each of
    which was drawn in this cycle, and the steps of earlier cycles see nothing and are forgotten: they need not be run.
    """

    noise: RoundRobin
    grows: bool
    context: Tensor  # (cycles, sites, width): bias, site and time, and W_{i,0} of the visible sites where states = 2
    columns: Tensor  # (sites, features, width)
    label: Tensor  # (classes, width)
    scales: list[Tensor]  # depth times (width,)
    shifts: list[Tensor]
    weights: list[Tensor]  # depth − 1 times (width, width)
    biases: list[Tensor]
    eps: float
    residual: bool
    head: Tensor  # (1 or sites, outputs, width)
    offset: Tensor  # (sites, outputs)
    pair: Tensor | None  # (sites, outputs, sites, features), zero where a step does not look
    known: Tensor  # (cycles, sites, outputs) float64: the given conditional of constant sites
    constant: list[bool]  # (sites,)

    @property
    def binary(self) -> bool:
        """Whether a site has one feature and one output."""
        return self.noise.space.states == 2

    @property
    def cycles(self) -> int:
        """How many cycles need to be run."""
        return len(self.context)

    @property
    def bonus(self) -> float:
        r"""Logarithm of :math:`k(b \mid b) / k(a \mid b)`, a ≠ b: how much likelier the present token is made by Bayes' rule."""
        keep, states = self.noise.keep_prob, self.noise.space.states
        return 0.0 if self.noise.heat_bath else math.log1p(keep * states / (1 - keep))

    def tensors(self) -> list[Tensor]:
        """List all tensors, in a fixed order."""
        found: list[Tensor] = []
        self.map(lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
        return found

    def map(self, change: Callable[[Tensor], Tensor]) -> Plan:
        """Return the plan with every tensor changed."""
        changed: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changed[field.name] = change(value)
            elif isinstance(value, list):
                changed[field.name] = [change(part) if isinstance(part, Tensor) else part for part in value]
        return replace(self, **changed)

    def copy_(self, other: Plan) -> None:
        """Take over the numbers of another plan of the same shape, in place."""
        for mine, theirs in zip(self.tensors(), other.tensors(), strict=True):
            mine.copy_(theirs)


def supports(conditionals: Conditionals) -> bool:
    """Whether plans can be made: exactly the known conditionals of exactly the known network, or of a committee of such."""
    if type(conditionals) is not NetworkConditionals:
        return False
    network = conditionals.network
    return type(network.pattern if isinstance(network, Committee) else network) is SiteMLP


@torch.no_grad()
def make(conditionals: Conditionals, precision: str = "float32", *, sweep: bool = False) -> list[Plan]:
    r"""Precompute what the steps share, for each member of a committee.

    With ``sweep`` the steps are those of a Glauber sweep at time 0: every step sees all other sites and redraws its own from the
    conditional itself, as after hard noise.

    Cheap beside a single step, so it is made anew for every batch of rows. Up to a constant the members' geometric mean is
    the mean of their logits.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be {' or '.join(map(repr, PRECISIONS))}, got {precision!r}")
    if not isinstance(conditionals, NetworkConditionals) or not supports(conditionals):
        raise ValueError(f"{type(conditionals).__name__} has no first layer to update: only a SiteMLP has")
    return [_make(conditionals, member, precision, sweep=sweep) for member in _members(conditionals.network)]


def _members(network: nn.Module) -> list[SiteMLP]:
    """Take a committee apart; its members share their memory with it."""
    if isinstance(network, SiteMLP):
        return [network]
    if not isinstance(network, Committee) or not isinstance(network.pattern, SiteMLP):
        raise TypeError(f"{type(network).__name__} is neither a SiteMLP nor a committee of them")
    members = []
    for place in range(network.size):
        member = copy.deepcopy(network.pattern)
        weights = {name.replace("/", "."): stacked[place] for name, stacked in network.members.items()}
        member.load_state_dict(weights, assign=True)
        members.append(member)
    return members


def _make(conditionals: NetworkConditionals, network: SiteMLP, precision: str, *, sweep: bool) -> Plan:
    noise, device = conditionals.noise, conditionals.device
    if sweep:
        noise = RoundRobin(noise.space, keep_prob=0.0, cycles=1)
    sites, states = noise.space.sites, noise.space.states
    grows = noise.is_hard and conditionals.hide_noised and not sweep
    cycles = 1 if grows else noise.cycles
    u = torch.arange(sites, device=device)
    cycle = torch.arange(cycles, device=device)[:, None]
    time = cycle * sites + (0 if sweep else u)
    context = network.context(time.expand(cycles, sites), u.expand(cycles, -1), None)
    columns = network.token.view(sites, states, -1)
    head, offset = network.head.detach(), network.head_bias.expand(sites, -1)
    terms, fields = network.pair, network.pair_bias
    if sweep and network.clean_pair is not None:
        terms, fields = network.clean_pair, network.clean_pair_bias
    if fields is not None:
        offset = offset + fields
    pair = None if terms is None else _seen(terms.view(sites, states, sites, states), grows=grows)
    # v_u(t) = cycle at the very site that step t noises.
    known = conditionals.log_known(u.expand(cycles, -1), cycle)
    if states == 2:
        context = context + _others(columns[:, 0], grows=grows)
        columns, head, offset = (
            columns[:, 1:] - columns[:, :1],
            head[:, 1:] - head[:, :1],
            offset[:, 1:] - offset[:, :1],
        )
        known = known[..., 1:] - known[..., :1]
        if pair is not None:
            pair = pair[:, 1:] - pair[:, :1]
            offset = offset + pair[..., 0].sum(-1)
            pair = pair[..., 1:] - pair[..., :1]
    hidden = network.hidden
    norms = [norm for norm in hidden.norms if isinstance(norm, nn.LayerNorm)]  # all of them, with their type
    linears = [linear for linear in hidden.linears if isinstance(linear, nn.Linear)]
    low = network.token.dtype if precision == "float32" else PRECISIONS[precision]
    return Plan(
        noise=noise,
        grows=grows,
        context=context,
        columns=columns.contiguous(),
        label=network.label.detach(),
        scales=[norm.weight.detach() for norm in norms],
        shifts=[norm.bias.detach() for norm in norms],
        weights=[linear.weight.detach().to(low) for linear in linears],
        biases=[linear.bias.detach().to(low) for linear in linears],
        eps=norms[0].eps,
        residual=hidden.residual,
        head=head,
        offset=offset.contiguous(),
        pair=pair,
        known=known,
        constant=(conditionals.constant >= 0).tolist(),
    )


def _others(first: Tensor, *, grows: bool) -> Tensor:
    """Sum over the sites that step u sees, (sites, width); long sums are kept in float64."""
    total = first.double().sum(0)
    seen = total - first.double().cumsum(0) if grows else total - first.double()
    return seen.to(first.dtype)


def _seen(pair: Tensor, *, grows: bool) -> Tensor:
    """Leave the terms of sites that step u sees, all but u itself or those after u."""
    sites = torch.arange(len(pair), device=pair.device)
    sees = sites[:, None] < sites if grows else sites[:, None] != sites
    return pair * sees[:, None, :, None]
