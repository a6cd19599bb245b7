"""Which kinds of networks may suit the data, where the user names none: the rule, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

from neurise.modeling.groups import SOLVED, Architecture
from neurise.training.settings import Training

FIRST = "site_mlp"
WIDE = 200
"""Sites that vary, from which on other networks than the first are tried. Below, a committee of the first is best."""
MANY_ROWS = 10
"""Rows per site that varies, from which on one large network is better than several kinds that answer together."""

FOR_SITE_MLP: Mapping[str, Any] = {
    "keep_prob": 0.0,
    "cycles": 1,
    "width": None,
    "depth": None,
    "members": None,
    "architecture.heads": "site",
    "architecture.residual": True,
    "architecture.site_input": "one_hot",
    "architecture.pairwise": None,
    "architecture.orders": 1,
    "chain.kind": "round_robin",
    "chain.steps": None,
    "chain.hide_noised": True,
    "chain.stretch": None,
    "corrector.clean": 0.0,
}
"""Parameters that only site_mlp has, or that mean something else for each network, with what they are where nobody sets them."""


FOR_NETWORKS: Mapping[str, Any] = {
    **FOR_SITE_MLP,
    "network": None,
    "steps": None,
    "corrector.anytime": False,
    **{f"training.{own.name}": own.default for own in fields(Training) if own.name != "validation_fraction"},
    **{f"architecture.{own.name}": own.default for own in fields(Architecture) if own.name not in SOLVED},
}
"""Parameters that say how networks are trained: who sets one wants networks, and nothing is solved for unasked."""


class Candidates(NamedTuple):
    """Kinds of networks, in the order in which they are preferred where they cannot be told apart, and why these.

    A single one is taken. Several race (:mod:`neurise.modeling.race`): of those that are left all are trained and answer
    together if ``together``, else the first.
    """

    kinds: tuple[str, ...]
    why: str
    together: bool = False


@lru_cache
def candidates(rows: int, sites: int, asked: tuple[str, ...], near: tuple[str, ...] = (), *, gpu: bool) -> Candidates:
    """Return the kinds that may suit so many rows and sites that vary.

    ``asked`` are parameters that the user has set and that are made for the first kind, ``near`` those that say which sites
    depend on each other, for "sparse".
    """
    if asked:
        return Candidates((FIRST,), f"{', '.join(asked)}: made for {FIRST}")
    if near:
        return Candidates(("sparse",), f"sparse: {', '.join(near)} says which sites it may look at")
    if sites < WIDE:
        return Candidates((FIRST,), f"{FIRST}: fewer than {WIDE} sites vary")
    if rows < MANY_ROWS * sites:
        kinds = (FIRST, "sparse", "causal") if gpu else (FIRST, "sparse")
        return Candidates(kinds, f"{WIDE} sites or more, fewer than {MANY_ROWS} rows each", together=True)
    return Candidates(("causal" if gpu else "masked", "sparse"), f"{WIDE} sites or more, {MANY_ROWS} rows each or more")
