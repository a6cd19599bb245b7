"""Races on small data: what makes kinds of networks compete that otherwise do so on wide data alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from neurise.modeling import race
from neurise.modeling.kinds import Candidates

STEPS = 40
"""Of a whole run; each of two kinds then has four in the race."""

ALL = 1e6
"""As ``behind``: nobody is."""


def _uneven(answers: Sequence[Any], *told: Any) -> list[float]:
    """Give every kind a share of its own: kinds that have hardly learnt would have none."""
    shares = [2.0 + number for number in range(len(answers))]
    return [share / sum(shares) for share in shares]


@contextmanager
def on_small_data(*kinds: str, together: bool = True, behind: float = race.BEHIND) -> Iterator[None]:
    """Let these kinds race whatever the data are; ``behind`` says how far behind the others one must be to be left out."""
    found = Candidates(kinds or ("site_mlp", "sparse"), "as the test says", together)
    with (
        mock.patch("neurise.modeling.round_robin.candidates", return_value=found),
        mock.patch.object(race, "LEAST", 1),
        mock.patch.object(race, "SHARE", 0.2),
        mock.patch.object(race, "BEHIND", behind),
        mock.patch("neurise.modeling.round_robin.find_shares", _uneven),
    ):
        yield
