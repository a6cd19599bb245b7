"""Several conditionals that answer together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from neurise import conditionals, losses
from neurise.conditionals.base import Conditionals, Frame
from neurise.fields import Field
from neurise.networks.pairwise_terms import added
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk

SHARES = 21
"""Weights from 0 to 1 that are tried."""
IMPOSSIBLE = -1e9
"""Nats: as good as −∞, of which there is no mean."""
TIE = 1e-12
"""Nats. Scores that differ by less are equal: other machines round differently."""


class Committee(Conditionals):
    r"""Weighted geometric mean of several conditionals, :math:`\log \mu = \sum_k w_k \log \mu_k - \log Z` for each site.

    What each member has learnt by heart averages out. Members may be of any kind.
    """

    def __init__(self, members: Sequence[Conditionals], weights: Sequence[float]) -> None:
        super().__init__()
        self.noise, self.members = members[0].noise, nn.ModuleList(members)
        self.hide_noised = all(member.hide_noised for member in members)
        self.register_buffer("ignored", members[0].ignored, persistent=False)
        self.bytes_per_row = max(member.bytes_per_row for member in members)  # they are asked one after another
        self.bytes_per_walk = sum(member.bytes_per_walk for member in members)
        self.in_one_pass = any(member.in_one_pass for member in members)
        self.can_sweep = all(member.can_sweep for member in members)
        numbers = {member.walks_in for member in members}
        self.walks_in = numbers.pop() if len(numbers) == 1 else "float32"  # what suits all of them
        self.weights = list(map(float, weights))

    def __iter__(self) -> Iterator[Conditionals]:
        return iter(self.members)  # type: ignore[arg-type]

    @property
    def clean(self) -> Conditionals:
        """Ask the clean conditionals of every member."""
        members = [member.clean for member in self]
        return self if members == list(self) else Committee(members, self.weights)

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Average the logarithms, and normalise, (..., states)."""
        # What has no weight is not asked: 0 · ∞ is no number.
        shares = [(weight, member) for weight, member in zip(self.weights, self, strict=True) if weight]
        answers = (weight * member.log_conditional(t, u, x, y) for weight, member in shares)
        return torch.log_softmax(sum(answers), dim=-1)  # type: ignore[arg-type]

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Average what each member says of all sites, (n, sites, states): those that answer in one pass do so."""
        if not self.in_one_pass:
            return super().log_conditionals(x, y)
        shares = [(weight, member) for weight, member in zip(self.weights, self, strict=True) if weight]
        answers = (weight * member.log_conditionals(x, y) for weight, member in shares)
        return torch.log_softmax(sum(answers), dim=-1)  # type: ignore[arg-type]

    def log_partial(self, u: Tensor, x: Tensor, missing: Tensor, y: Tensor | None = None) -> Tensor | None:
        """Average the logarithms where every member that has a weight knows them, (n, states)."""
        total = torch.zeros((), device=x.device)
        for weight, member in zip(self.weights, self, strict=True):
            if weight:
                own = member.log_partial(u, x, missing, y)
                if own is None:
                    return None
                total = total + weight * own
        return torch.log_softmax(total, dim=-1)

    def plan(self, view: View) -> Plan | None:
        """Add the members' plans: a softmax does not see the constants that each of them lacks."""
        plans = list[Plan]()
        for member in self:
            plan = member.plan(view)
            # A plan knows nothing of what is certain, and is made for what the whole committee looks at.
            if plan is None or member.is_certain or member.hide_noised != self.hide_noised:
                return None
            plans.append(plan)
        return added(plans, self.weights)

    def looked_at(self) -> Tensor:
        """Return what any member's terms look at."""
        return torch.stack([member.looked_at() for member in self]).any(0)

    def _walk_without_plan(
        self, x: Tensor, y: Tensor | None, cycle: Tensor, *, top: int, sweep: bool, precision: str
    ) -> Walk:
        walks = [member.walk(x, y, cycle, top=top, sweep=sweep, precision=precision) for member in self]
        return Together(self.weights, walks)

    def description(self) -> dict[str, Any]:
        """Describe every member and its weight."""
        return {
            "answers": "committee",
            "weights": self.weights,
            "members": [member.description() for member in self],
        }

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> Committee:
        """Make the members again."""
        field = Field(description, "learnt.conditionals")
        weights = [entry.number(0, 1) for entry in field["weights"]]
        if len(weights) != len(list(field["members"])) or abs(sum(weights) - 1) > 1e-6:
            raise field["weights"].wrong("one weight per member, which sum to 1")
        return cls([conditionals.build(member, frame) for member in description["members"]], weights)


class Together(Walk):
    """A walk per member, whose logits are added with the members' weights."""

    def __init__(self, weights: Sequence[float], walks: Sequence[Walk]) -> None:
        self.weights, self.walks = weights, walks

    def logits(self, u: int) -> Tensor:
        """Add up."""
        # What has no weight is followed, and not asked: 0 · ∞ is no number.
        return sum(w * walk.logits(u) for w, walk in zip(self.weights, self.walks, strict=True) if w)  # type: ignore[return-value]

    def put(self, u: int, token: Tensor) -> None:
        """Let every member follow."""
        for walk in self.walks:
            walk.put(u, token)


@torch.no_grad()
def find_shares(answers: Sequence[Tensor], observed: Tensor, parameters: Sequence[int]) -> list[float]:
    r"""Find how much of a committee's answer should come from each kind of member; the shares sum to 1.

    ``answers`` holds the log-conditionals of each kind, (n, states), for examples that it has not learnt from, and
    ``observed`` (n,) the tokens. Kinds are added one after another, each with the share w of a grid that says most,

    .. math:: \log \mu = w \log \mu_{\mathrm{new}} + (1 - w) \log \mu_{\mathrm{so\ far}} - \log Z .

    Shares that cannot be told from the best, within the standard error of the difference or :data:`TIE`, are as good; of
    these the one nearest to an equal share is taken, and of two equally near the one that gives more to the kind with
    fewer ``parameters``.
    """
    so_far, shares, size = answers[0].double().clamp(min=IMPOSSIBLE), [1.0], parameters[0]
    for number, (answer, own) in enumerate(zip(answers[1:], parameters[1:], strict=True), 2):
        grid = torch.linspace(0, 1, SHARES, dtype=torch.float64, device=so_far.device)
        new = answer.double().clamp(min=IMPOSSIBLE)
        mixed = torch.lerp(so_far, new, grid[:, None, None])
        scores = losses.cross_entropy(mixed, observed.expand(SHARES, -1))  # (shares, n)
        worse = scores - scores[scores.mean(1).argmin()]
        as_good = worse.mean(1) <= worse.std(1) / worse.shape[1] ** 0.5 + TIE
        equal, fewer = 1 / number, own < size
        kept = grid[as_good].tolist()
        best = min(kept, key=lambda share: (round(abs(share - equal), 9), -share if fewer else share))
        shares = [share * (1 - best) for share in shares] + [best]
        so_far, size = torch.log_softmax(torch.lerp(so_far, new, best), dim=-1), size + own
    return shares
