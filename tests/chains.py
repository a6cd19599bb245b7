"""Reverse chains of every kind, and what ties a fast form of the loop to the plain one."""

from __future__ import annotations

import copy

import torch

from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.base import SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

KINDS: dict[str, dict] = {
    "hard": {},
    "hard, three states": {"states": 3},
    "hard, three cycles": {"cycles": 3},
    "hard, nothing hidden": {"hide_noised": False, "cycles": 2},
    "hard, nothing hidden, three states": {"hide_noised": False, "states": 3},
    "soft": {"keep_prob": 0.4, "cycles": 3},
    "soft, three states": {"keep_prob": 0.4, "cycles": 2, "states": 3},
    "soft, seventeen states": {"keep_prob": 0.4, "states": 17},
    "heat bath": {"keep_prob": 0.4, "cycles": 2, "heat_bath": True, "states": 3},
    "constant sites": {"constant": {0: 1, 4: 0}},
    "soft, constant sites": {"constant": {0: 1, 4: 0}, "keep_prob": 0.4, "cycles": 2, "states": 3},
    "unseen symbols": {"constant": {0: 1, 4: 0}, "unseen": 0.05},
    "unseen symbols, three states": {"constant": {0: 1, 4: 2}, "unseen": 0.05, "states": 3, "cycles": 2},
    "soft, unseen symbols": {"constant": {0: 1, 4: 0}, "unseen": 0.05, "keep_prob": 0.4, "cycles": 2},
    "soft, unseen symbols, three states": {
        "constant": {0: 1, 4: 2},
        "unseen": 0.05,
        "keep_prob": 0.4,
        "cycles": 2,
        "states": 3,
    },
    "labels": {"classes": 3},
    "soft, labels": {"classes": 3, "keep_prob": 0.4, "states": 3},
    "a head per site": {"heads": "site"},
    "residual": {"residual": True, "states": 3},
    "site as a number": {"site_input": "number", "keep_prob": 0.4, "cycles": 2},
    "depth 1": {"depth": 1},
    "depth 5": {"depth": 5},
    "width 24": {"width": 24, "keep_prob": 0.4},
    "one site": {"sites": 1, "keep_prob": 0.4},
    "own alphabets": {"states": 4, "sizes": (3, 2, 4, 2, 1, 3)},
    "own alphabets, heat bath": {
        "states": 4,
        "sizes": (3, 2, 4, 2, 1, 3),
        "keep_prob": 0.4,
        "cycles": 2,
        "heat_bath": True,
    },
}
PAIRWISE: dict[str, dict] = {
    "pairwise terms": {"pairwise": True, "sites": 40},
    "pairwise terms, three states": {"pairwise": True, "sites": 35, "states": 3},
    "pairwise terms, own alphabets": {"pairwise": True, "sites": 35, "states": 4, "sizes": (3, 2, 4, 2, 1) * 7},
    "soft, pairwise terms": {"pairwise": True, "sites": 40, "keep_prob": 0.4, "constant": {39: 1}, "unseen": 0.05},
    "soft, pairwise terms, three states": {
        "pairwise": True,
        "sites": 35,
        "states": 3,
        "keep_prob": 0.4,
        "heads": "site",
    },
}


PARTIAL: dict[str, dict] = {
    "hard, the last cycle cut short": {"steps": 9},
    "hard, the last cycle cut short, three states": {"steps": 9, "states": 3},
    "hard, sites that are never noised": {"steps": 4},
    "hard, sites that are never noised, three states": {"steps": 4, "states": 3, "constant": {1: 2, 5: 0}},
    "hard, never noised, nothing hidden": {"steps": 4, "hide_noised": False},
    "soft, the last cycle cut short": {"steps": 9, "keep_prob": 0.4},
    "soft, the last cycle cut short, three states": {"steps": 9, "keep_prob": 0.4, "states": 3, "classes": 2},
    "soft, sites that are never noised": {"steps": 4, "keep_prob": 0.4, "constant": {0: 1, 5: 0}, "unseen": 0.05},
    "soft, never noised, pairwise terms": {"steps": 33, "sites": 40, "keep_prob": 0.4, "pairwise": True},
    "hard, never noised, pairwise terms": {"steps": 33, "sites": 40, "pairwise": True},
}
"""T that is no multiple of the number of sites."""


def make(
    *,
    sites: int = 6,
    states: int = 2,
    sizes: tuple[int, ...] | None = None,
    keep_prob: float = 0.0,
    cycles: int = 1,
    steps: int | None = None,
    heat_bath: bool = False,
    hide_noised: bool = True,
    constant: dict[int, int] | None = None,
    width: int = 16,
    depth: int = 3,
    unseen: float = 0.0,
    pairwise: bool = False,
    classes: int = 0,
    **network: object,
) -> Conditionals:
    """Conditionals in float32 with weights of the size that training gives: every context has its own answer."""
    noise = RoundRobin(Space(sites, states, sizes), keep_prob, cycles, steps, heat_bath=heat_bath)
    module = SiteMLP(noise.space, noise.num_steps, width=width, depth=depth, classes=classes, **network)
    generator = torch.Generator().manual_seed(7)
    module.reset(generator)
    terms = PairwiseTerms(noise.space, noise.num_steps, classes=classes)
    terms.reset(generator)
    for drawn in (module.bias, module.head, module.head_bias, *([terms.pair] if pairwise else [])):
        torch.nn.init.normal_(drawn, std=0.5, generator=generator)
    for norm in module.hidden.norms:
        torch.nn.init.normal_(norm.weight, mean=1.0, std=0.3, generator=generator)
        torch.nn.init.normal_(norm.bias, std=0.3, generator=generator)
    only = torch.full((sites,), -1)
    for site, token in (constant or {}).items():
        only[site] = token
    whole = Sum([terms, module]) if pairwise else module
    learnt = NetworkConditionals(whole, Frame(noise, classes, only), hide_noised=hide_noised)
    return KnownSites(learnt, only, unseen=unseen) if constant else learnt


def learnt(conditionals: Conditionals) -> NetworkConditionals:
    """Return the part of one that a network answers for."""
    inner = conditionals.inner if isinstance(conditionals, KnownSites) else conditionals
    assert isinstance(inner, NetworkConditionals)
    return inner


def site_mlp(conditionals: Conditionals) -> SiteMLP:
    """Return its multilayer perceptron."""
    network = learnt(conditionals).network
    found = network.parts[1] if isinstance(network, Sum) else network
    assert isinstance(found, SiteMLP)
    return found


def committee(members: int, **kind: object) -> Conditionals:
    """The same, with a committee of networks; each has weights of its own."""
    one = make(**kind)
    generator = torch.Generator().manual_seed(8)

    def member() -> SiteNetwork:
        network = copy.deepcopy(learnt(one).network)
        with torch.no_grad():
            for weight in network.parameters():
                weight += 0.3 * torch.randn(weight.shape, generator=generator)
        return network

    only = one.constant if isinstance(one, KnownSites) else torch.full((one.noise.space.sites,), -1)
    frame, hide = Frame(one.noise, learnt(one).network.classes, only), learnt(one).hide_noised
    found = Committee(
        [NetworkConditionals(member(), frame, hide_noised=hide) for _ in range(members)], [1 / members] * members
    )
    return KnownSites(found, only, unseen=one.unseen) if isinstance(one, KnownSites) else found


def labels(conditionals: Conditionals, n: int) -> torch.Tensor | None:
    inner = conditionals.inner if isinstance(conditionals, KnownSites) else conditionals
    classes = learnt(next(iter(inner)) if isinstance(inner, Committee) else inner).network.classes
    return torch.arange(n) % classes if classes else None


@torch.no_grad()
def thresholds(
    conditionals: Conditionals, x: torch.Tensor, y: torch.Tensor | None, seed: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Run the plain loop; for each step the tokens drawn, (n,), and how far the uniform was from a threshold, (n,)."""
    noise, generator = conditionals.noise, torch.Generator().manual_seed(seed)
    x, tokens, margins = x.clone(), [], []
    for t in reversed(range(noise.num_steps)):
        step = torch.tensor([t])
        log_conditional = conditionals.log_conditional(step, noise.site(step), x, y)
        probability = noise.reverse(log_conditional, x[:, t % noise.space.sites], step).double().exp()
        edge = probability.cumsum(-1)[:, :-1] / probability.sum(-1, keepdim=True)
        level = torch.rand(len(x), generator=generator, dtype=torch.float64)[:, None]
        tokens.append((level >= edge).sum(-1))
        margins.append((level - edge).abs().amin(-1) if edge.shape[1] else torch.ones(len(x)))
        x[:, t % noise.space.sites] = tokens[-1].to(x.dtype)
    return tokens, margins


def assert_same_rows(conditionals: Conditionals, drawn: torch.Tensor, x: torch.Tensor, seed: int) -> None:
    """Check that at least 99 % of the rows are those of the plain loop, and the others parted ways at a threshold.

    Where a row parts in an earlier cycle, the token it drew there is lost; the smallest margin of the row speaks for it.
    """
    noise = conditionals.noise
    tokens, margins = thresholds(conditionals, x, labels(conditionals, len(x)), seed)
    last = x.long().clone()  # sites that no step touches stay
    drawn_last = torch.stack(tokens[-noise.space.sites :], dim=-1).flip(-1)  # (n, sites), or fewer
    last[:, : drawn_last.shape[1]] = drawn_last
    other = (drawn != last).any(-1)
    assert other.double().mean() <= 0.01
    assert (torch.stack(margins).amin(0)[other] <= 1e-5).all()


@torch.no_grad()
def close_calls(
    conditionals: Conditionals, x: torch.Tensor, y: torch.Tensor | None, gap: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Uniforms of one cycle that miss a threshold of the plain loop by a hair, and the rows that the plain loop makes of them.

    A loop that returns the same rows has the same probabilities up to the gap, at every step and for every row.
    """
    noise, generator = conditionals.noise, torch.Generator().manual_seed(5)
    sites, n, x = noise.space.sites, len(x), x.clone()
    levels = torch.empty(sites, n, dtype=torch.float64)
    for step, t in enumerate(reversed(range(sites))):
        time = torch.tensor([t])
        log_step = noise.reverse(conditionals.log_conditional(time, noise.site(time), x, y), x[:, t], time)
        edge = log_step.double().softmax(-1).cumsum(-1)[:, :-1]
        which = torch.randint(edge.shape[1], (n, 1), generator=generator)
        side = 2 * torch.randint(2, (n,), generator=generator) - 1
        levels[step] = (edge.gather(-1, which).squeeze(-1) + side * gap).clamp(0, 1 - 2**-53)
        x[:, t] = (levels[step][:, None] >= edge).sum(-1).to(x.dtype)
    return levels, x
