"""Kinds of claims, and how rows decide them: by differences on the same cells, or by the shares of runs that fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neurise import experiments
from neurise.experiments import store
from neurise.experiments.base import digest
from neurise.experiments.parts.spread import Difference, Share, Situation, Values, paired, share_of
from neurise.experiments.parts.summary import matches, number
from neurise.report._numbers import readable

CONFIRMED, REFUTED, OPEN = "confirmed", "refuted", "open"
MOST = 0.5
"""Runs that fail in less than this share end well for the most part."""


class Decision(NamedTuple):
    """What rows say of a claim, and the numbers that decide it, in words."""

    word: str
    reason: str


@dataclass(frozen=True)
class Claim(ABC):
    """A claim of the paper, and the experiment whose rows decide it. A kind of claim writes ``decide``."""

    text: str
    place: str
    experiment: str

    @property
    @abstractmethod
    def chosen(self) -> tuple[Mapping[str, Any], ...]:
        """The values by which rows are chosen."""

    @abstractmethod
    def decide(self, rows: Sequence[store.Row]) -> Decision:
        """Decide the claim by finished rows of its experiment, of which there is at least one."""

    def named(self, chosen: Mapping[str, Any]) -> str:
        """Name what rows were chosen by, as the experiment does."""
        experiment = experiments.find(self.experiment)
        return ", ".join(experiment.label(value) for value in chosen.values())


@dataclass(frozen=True)
class Better(Claim):
    """Rows chosen by ``one`` score better in ``metric`` than those of each of ``others``, on the same cells otherwise.

    ``at_least_as_good``: it is enough that none of the others is told to be better. ``other_metric`` is that of the others,
    where it is another one.

    A side whose training was cut off by its number of steps might have won if it had gone on: where it is the worse one in most
    of its runs, the claim stays open.
    """

    metric: str
    one: Mapping[str, Any]
    others: tuple[Mapping[str, Any], ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    lower: bool = True
    at_least_as_good: bool = False
    other_metric: str | None = None

    @property
    def chosen(self) -> tuple[Mapping[str, Any], ...]:
        """The values by which rows are chosen."""
        return (self.one, self.where, *self.others)

    def decide(self, rows: Sequence[store.Row]) -> Decision:
        """Decide by the 95 % intervals of the mean differences."""
        told, undecided, missing, early = list[str](), list[str](), list[str](), list[str]()
        for chosen, difference in self._differences(rows):
            other = self.named(chosen)
            if difference is None:
                missing.append(other)
                continue
            better = difference.mean < 0 if self.lower else difference.mean > 0
            words = (
                f"against {other} {readable(difference.mean)} ± {readable(difference.half, 2)} over {difference.over}"
            )
            if difference.is_told_apart and not better:
                if cut := self._cut_short(rows, self.one):
                    return Decision(OPEN, f"{self.metric}: {words}, but {cut}")
                return Decision(REFUTED, f"{self.metric}: {words}")
            if (difference.is_told_apart or self.at_least_as_good) and (cut := self._cut_short(rows, chosen)):
                early.append(cut)
            (told if difference.is_told_apart else undecided).append(words)
        if missing:
            return Decision(OPEN, f"too few cells to compare with {', '.join(missing)}")
        if undecided and not self.at_least_as_good:
            return Decision(OPEN, f"{self.metric}, not told apart: {'; '.join(undecided)}")
        words = "; ".join([*told, *undecided])
        return (
            Decision(OPEN, f"{self.metric}: {words}, but {'; '.join(early)}")
            if early
            else Decision(CONFIRMED, f"{self.metric}: {words}")
        )

    def _cut_short(self, rows: Sequence[store.Row], chosen: Mapping[str, Any]) -> str | None:
        """Say that most runs of one side were still learning when their steps ended; None where they were not."""
        own = [row for row in rows if matches(row, self.where) and matches(row, chosen)]
        cut = sum((row.get("budget") or {}).get("stopped") == "steps" for row in own)
        if cut <= MOST * len(own):
            return None
        return f"{cut} of {len(own)} runs of {self.named(chosen)} were still learning when their steps ended"

    def _differences(self, rows: Sequence[store.Row]) -> Iterator[tuple[Mapping[str, Any], Difference | None]]:
        own = [row for row in rows if matches(row, self.where)]
        apart = {name for chosen in (self.one, *self.others) for name in chosen}
        first = self._values(self.metric, [row for row in own if matches(row, self.one)], apart)
        for other in self.others:
            theirs = [row for row in own if matches(row, other)]
            second = self._values(self.other_metric or self.metric, theirs, apart)
            yield other, paired(first, second)

    def _values(self, metric: str, rows: Sequence[store.Row], apart: set[str]) -> Values:
        """Return the numbers of rows by what both sides share: instances are those of the data, sizes are averaged over."""
        found: dict[Situation, float] = {}
        for row in rows:
            value = number(store.value(row, metric))
            given = row["parameters"]
            shared = digest({"rows": None if "rows" in apart else given.get("rows"), "seed": row["seed"]})
            if value is not None:
                found[Situation(given.get("instance"), int(shared, 16))] = value
        return found


@dataclass(frozen=True)
class Needed(Claim):
    """Runs chosen by each of ``without`` fail, by a ``metric`` of 0 or 1, where those of each of ``given`` do not.

    Confirmed where the share of runs that fail is told to be greater without it; refuted where it is not, and most runs are told
    to end well without it.
    """

    metric: str
    without: tuple[Mapping[str, Any], ...]
    given: tuple[Mapping[str, Any], ...]

    @property
    def chosen(self) -> tuple[Mapping[str, Any], ...]:
        """The values by which rows are chosen."""
        return (*self.without, *self.given)

    def decide(self, rows: Sequence[store.Row]) -> Decision:
        """Decide by the 95 % intervals of the shares."""
        shares = {self.named(chosen): self._share(rows, chosen) for chosen in self.chosen}
        missing = [name for name, share in shares.items() if share is None]
        if missing:
            return Decision(OPEN, f"no cells of {', '.join(missing)}")
        found = {name: share for name, share in shares.items() if share is not None}
        words = "; ".join(f"{name} {share.hits} of {share.runs}" for name, share in found.items())
        lacking, having = ([found[self.named(chosen)] for chosen in part] for part in (self.without, self.given))
        if all(less.low > more.high for less in lacking for more in having):
            return Decision(CONFIRMED, f"{self.metric}: {words}")
        if all(less.high < MOST for less in lacking):
            return Decision(REFUTED, f"{self.metric}: {words}")
        return Decision(OPEN, f"{self.metric}, not told apart: {words}")

    def _share(self, rows: Sequence[store.Row], chosen: Mapping[str, Any]) -> Share | None:
        values = [number(store.value(row, self.metric)) for row in rows if matches(row, chosen)]
        known = [value for value in values if value is not None]
        return share_of(sum(value > 0 for value in known), len(known)) if known else None
