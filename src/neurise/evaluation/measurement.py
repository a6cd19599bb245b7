"""One measured number with what is needed to read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from neurise.estimate import Estimate
from neurise.evaluation.case import Case


@dataclass(frozen=True)
class Measurement:
    """One number, its standard error, and its floor: what a perfect model would score under the same conditions.

    ``baselines`` are the scores of models that any other should beat.
    """

    name: str
    value: float | None  # None where it could not be measured; the note says why
    error: float | None = None
    floor: float | None = None
    units: str = ""
    note: str = ""
    baselines: Mapping[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, estimate: Estimate, note: str = "") -> Measurement:
        """Make a measurement from an estimate: its value, error, floor and units."""
        return cls(name, float(estimate), estimate.error, estimate.floor, estimate.units, note)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in JSON's types; an infinite value becomes None, and the note says so."""
        fields = {key: _finite(value) for key, value in asdict(self).items()}
        return {**fields, "baselines": {name: _finite(value) for name, value in self.baselines.items()}}


Measure = Callable[[Case], Iterator[Measurement]]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
