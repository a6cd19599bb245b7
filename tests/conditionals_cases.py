"""Conditionals of every kind whose weights are drawn, so that every context has an answer of its own, and ways to ask them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.base import SiteNetwork
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACES = {"bits": Space(sites=3, states=2), "four": Space(sites=2, states=4)}
"""Sites and states differ in both."""
KINDS = ("site_mlp", "local_mlp", "pairwise sum")


def frame(
    space: Space, keep_prob: float = 0.0, cycles: int = 1, *, constant: Sequence[int] = (), classes: int = 0
) -> Frame:
    """A frame whose sites vary, except for those that ``constant`` gives a token, −1 for none."""
    only = torch.tensor(list(constant)) if constant else torch.full((space.sites,), -1)
    return Frame(RoundRobin(space, keep_prob, cycles), classes, only)


def network(kind: str, where: Frame, seed: int = 0, *, clean: bool = False) -> SiteNetwork:
    """A network in float64, all of whose weights are drawn."""
    space, steps, size = where.noise.space, where.noise.num_steps, {"width": 5, "depth": 2, "classes": where.classes}
    if kind == "local_mlp":
        made: SiteNetwork = LocalMLP(space, steps, **size)
    else:
        made = SiteMLP(space, steps, **size, heads="site", residual=True)
    if kind == "pairwise sum":
        made = Sum([PairwiseTerms(space, steps, classes=where.classes, clean=clean), made])
    generator = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.7, generator=generator)
    made.double().requires_grad_(False)
    if kind == "pairwise sum" and clean:
        meet(made)
    return made


def meet(made: SiteNetwork) -> None:
    """Let the chain and the clean conditionals have the same terms where they meet, at site 0 of time 0."""
    terms = made.get_submodule("parts.0")
    for name in ("pair", "bias"):
        terms.get_parameter(name)[0] = terms.get_parameter(f"clean_{name}")[0]


def single(
    kind: str, where: Frame, seed: int = 0, *, clean: bool = False, hide_noised: bool = True
) -> NetworkConditionals:
    """Conditionals of one network."""
    return NetworkConditionals(network(kind, where, seed, clean=clean), where, hide_noised=hide_noised)


def questions(asked: Conditionals) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Every step of the chain at its own site, with every configuration: t, u, x."""
    noise = asked.noise
    for t in range(noise.num_steps):
        yield torch.tensor([t]), torch.tensor([t % noise.space.sites]), noise.space.configurations()


def walked(asked: Conditionals, x: Tensor, y: Tensor | None, cycle: int, *, sweep: bool = False) -> Tensor:
    """What a walk answers when it is told every token of rows (n, sites), and then others: (2, n, sites, outputs).

    The second half has other tokens put where the walk has passed, so that it must follow what is put, not what was there.
    """
    found = []
    for moved in (x, (x + 1) % asked.noise.space.states):
        walk = asked.walk(x.T.contiguous(), y, torch.tensor([cycle]), sweep=sweep)
        answers = []
        for u in reversed(range(x.shape[1])):
            answers.append(walk.logits(u).double())
            walk.put(u, moved[:, u])
        found.append(torch.stack(answers[::-1], dim=1))
    return torch.stack(found)


def recomputed(asked: Conditionals, x: Tensor, y: Tensor | None, cycle: int, *, sweep: bool = False) -> Tensor:
    """The same from the reference form, up to a constant per row: relative to the first token, (2, n, sites, states)."""
    sites, found = x.shape[1], []
    for moved in (x, (x + 1) % asked.noise.space.states):
        answers = []
        for u in reversed(range(sites)):
            here = torch.cat([x[:, : u + 1], moved[:, u + 1 :]], dim=1)
            t = torch.tensor([0 if sweep else cycle * sites + u])
            answers.append(asked.log_conditional(t, torch.tensor([u]), here, y))
        found.append(torch.stack(answers[::-1], dim=1))
    return torch.stack(found)


def as_log_law(logits: Tensor, states: int) -> Tensor:
    """Normalise what a walk gives: log-odds where there are two states."""
    if states == 2:
        return nn.functional.logsigmoid(torch.cat([-logits, logits], dim=-1))  # also where one of them is certain
    return torch.log_softmax(logits, dim=-1)
