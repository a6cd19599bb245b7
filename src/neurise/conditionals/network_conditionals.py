"""Conditionals that one network gives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from neurise import checks, networks
from neurise.conditionals.base import Conditionals, Frame
from neurise.networks.base import SiteNetwork
from neurise.networks.parts.plan import Plan, View
from neurise.space import possible


class NetworkConditionals(Conditionals):
    r"""Conditionals learnt by a network, :math:`\mathrm{softmax}\,f(t, u, x_{-u}, y)`.

    Sites that never vary tell nothing of the others: they are ``ignored``, that is, hidden from the network. So a token
    that such a site never held cannot disturb the answers.
    """

    def __init__(self, network: SiteNetwork, frame: Frame, *, hide_noised: bool, ignore_constant: bool = True) -> None:
        super().__init__()
        self.network, self.noise, self.hide_noised, self.ignore_constant = (
            network,
            frame.noise,
            hide_noised,
            ignore_constant,
        )
        constant = frame.constant >= 0
        ignored = constant if ignore_constant else torch.zeros_like(constant)
        self.register_buffer("ignored", ignored, persistent=False)
        # A one-hot, as booleans and as floats, and a few hidden layers.
        self.bytes_per_row = 6 * self.noise.space.sites * self.noise.space.states + 16 * network.width

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the log-softmax of the network, (..., states)."""
        return self._answer(t, u, x, self.hidden(t), y)

    def log_partial(self, u: Tensor, x: Tensor, missing: Tensor, y: Tensor | None = None) -> Tensor:
        """Hide what is missing from the network at time 0, as it was in training."""
        return self._answer(torch.zeros_like(u), u, x, missing | self.ignored, y)

    def _answer(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None) -> Tensor:
        logits = self.network(t, u, x, hidden, y)
        if self.noise.space.sizes is not None:
            logits = possible(logits, self.noise.space, u)
        return torch.log_softmax(logits, dim=-1)

    def plan(self, view: View) -> Plan | None:
        """Return the network's own plan, in which the states that a site does not have are impossible."""
        plan = self.network.plan(view)
        return plan if plan is None or self.noise.space.sizes is None else plan.within(self.noise.space)

    def description(self) -> dict[str, Any]:
        """Describe the network and what it sees."""
        own = {} if self.ignore_constant else {"ignore_constant": False}
        network = self.network.description()
        return {"answers": "network_conditionals", "network": network, "hide_noised": self.hide_noised, **own}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> NetworkConditionals:
        """Make the network again."""
        noise = frame.noise
        network = networks.build(description["network"], noise.space, noise.num_steps, frame.classes)
        return cls(
            network,
            frame,
            hide_noised=checks.flag("learnt.conditionals.hide_noised", description["hide_noised"]),
            ignore_constant=checks.flag(
                "learnt.conditionals.ignore_constant", description.get("ignore_constant", True)
            ),
        )
