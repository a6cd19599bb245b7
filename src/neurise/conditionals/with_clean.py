"""Conditionals of a chain, beside which others know the data's own."""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor

from neurise import conditionals
from neurise.conditionals.base import Certain, Conditionals, Frame
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk


class WithClean(Conditionals):
    r"""The chain of one, and the clean conditionals :math:`\mu_0(x_u \mid x_{-u})` of another, which sweeps are drawn from.

    A network that answers for a whole row knows the sites after a site alone. ``part`` looks at both sides of it.
    """

    can_sweep = False  # of itself: the part can
    has_clean = True

    def __init__(self, inner: Conditionals, part: Conditionals) -> None:
        super().__init__()
        self.inner, self.part, self.noise = inner, part, inner.noise
        self.hide_noised, self.bytes_per_row = inner.hide_noised, inner.bytes_per_row
        self.bytes_per_walk, self.in_one_pass, self.walks_in = inner.bytes_per_walk, inner.in_one_pass, inner.walks_in
        self.is_certain = inner.is_certain
        self.register_buffer("ignored", inner.ignored, persistent=False)

    @property
    def clean(self) -> Conditionals:
        """Return the part that knows them."""
        return self.part

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Answer for the chain, (..., states)."""
        return self.inner.log_conditional(t, u, x, y)

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Answer for all sites of the chain, (n, sites, states)."""
        return self.inner.log_conditionals(x, y)

    def lay_out(self) -> Self:
        """Lay the chain out, which walks by itself."""
        self.inner.lay_out()
        return self

    def view(self, *, sweep: bool) -> View | None:
        """Return what steps of the chain look at."""
        return self.inner.view(sweep=sweep)

    def plan(self, view: View) -> Plan | None:
        """Plan the chain."""
        return self.inner.plan(view)

    def planned(self, view: View) -> Plan | None:
        """Return the plan of the chain."""
        return self.inner.planned(view)

    def certain(self, view: View) -> Certain | None:
        """Return what the chain knows beforehand."""
        return self.inner.certain(view)

    def looked_at(self) -> Tensor:
        """Return what the chain looks at."""
        return self.inner.looked_at()

    def walk(
        self,
        x: Tensor,
        y: Tensor | None,
        cycle: Tensor,
        *,
        top: int | None = None,
        sweep: bool = False,
        precision: str = "float32",
    ) -> Walk:
        """Walk along the chain."""
        return self.inner.walk(x, y, cycle, top=top, sweep=sweep, precision=precision)

    def description(self) -> dict[str, Any]:
        """Describe both."""
        return {"answers": "with_clean", "inner": self.inner.description(), "part": self.part.description()}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> WithClean:
        """Make both again."""
        inner, part = (conditionals.build(description[name], frame) for name in ("inner", "part"))
        if part.clean is not part or not part.can_sweep:
            raise ValueError("learnt.conditionals.part must answer from both sides of a site")
        return cls(inner, part)
