"""A committee of two kinds of members, with pairwise terms and without: how they are put together, and what each is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from neurise import losses
from neurise.models._round_robin_objective import RoundRobinObjective
from neurise.networks._committee import Committee
from neurise.training.batches import Rows
from neurise.training.judging import examples_at_once, noised

SHARES = 21
"""Weights from 0 to 1 that are tried."""
OUTPUTS = ("head", "head_bias", "pair", "pair_bias", "clean_pair", "clean_pair_bias")
"""Parameters that the logits are proportional to."""


@torch.no_grad()
def join(network: Committee, kinds: Sequence[nn.Module]) -> None:
    """Take over the members of two networks or committees of equal size, in turn; what a kind has none of is zero."""
    own = [kind.members if isinstance(kind, Committee) else _named(kind) for kind in kinds]
    for name, parameter in network.members.items():
        for which, weights in enumerate(own):
            parameter[which :: len(kinds)] = weights[name].to(parameter) if name in weights else 0.0


def _named(network: nn.Module) -> dict[str, Tensor]:
    """Name the parameters of a single network as a committee of one would."""
    return {name.replace(".", "/"): parameter[None] for name, parameter in network.named_parameters()}


@torch.no_grad()
def weigh(objective: RoundRobinObjective, held: Rows, *, generator: Generator) -> float:
    r"""Find the share w of the members with pairwise terms in what the committee says, and write it into their outputs.

    .. math:: \log \mu(a) = w\,\overline{\log \mu_{\mathrm{with}}(a)} + (1-w)\,\overline{\log \mu_{\mathrm{out}}(a)} + \text{const}

    It is the share that says most about the rows held back, each of which is judged by members that have not learnt from it;
    of shares that cannot be told from the best, within the standard error of the difference, the one nearest to a half.
    A member's logits times its share of the committee have the same mean, so nothing but the output layers changes.
    """
    network = objective.network
    assert isinstance(network, Committee)
    device = objective.conditionals.device
    drawn = noised(objective, held.to(device), generator)
    opinions = _opinions(objective, drawn)  # (n, 2, states)
    shares = torch.linspace(0, 1, SHARES, device=device, dtype=torch.float64)
    mixed = shares[:, None, None] * opinions[:, 0] + (1 - shares[:, None, None]) * opinions[:, 1]
    scores = losses.cross_entropy(mixed, drawn.x_u.expand(SHARES, -1))  # (shares, n)
    worse = scores - scores[scores.mean(1).argmin()]
    as_good = worse.mean(1) <= worse.std(1) / worse.shape[1] ** 0.5
    best = float(min(shares[as_good].tolist(), key=lambda share: abs(share - 0.5)))
    factors = torch.tensor([2 * best, 2 - 2 * best], device=device).repeat(network.size // 2)
    for name in OUTPUTS:
        if name in network.members:
            weights = network.members[name]
            weights.mul_(factors.to(weights).reshape(-1, *[1] * (weights.dim() - 1)))
    return best


def _opinions(objective: RoundRobinObjective, drawn: Any) -> Tensor:
    """What the two kinds say about each example, (n, 2, states): the two members of its fold, or all where there are no folds."""
    piece, parts = examples_at_once(objective, drawn.t.device), []
    for start in range(0, len(drawn.t), piece):
        t, u, x, hidden, y, _, fold = (None if part is None else part[start : start + piece] for part in drawn)
        said = torch.log_softmax(objective.network(t, u, x, hidden, y).double(), dim=-1)
        teams = said.reshape(len(said), -1, 2, said.shape[-1])  # (n, teams, 2, states)
        parts.append(teams.mean(1) if fold is None else teams[torch.arange(len(fold), device=fold.device), fold])
    return torch.cat(parts)
