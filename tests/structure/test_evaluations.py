"""A recovery that takes long says so early, and shows how far it is."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from neurise.space import Space
from neurise.structure import evaluations, recover
from neurise.structure.evaluations import Evaluations
from neurise.structure.sources import Likelihood, SiteConditionals


class Clock:
    """Time that passes only when somebody looks at it."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


def test_what_takes_long_is_said_early_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluations, "time", Clock(3.0))
    counted = Evaluations(1000, verbose=None)
    counted.count(4)  # too few to say anything
    assert capsys.readouterr().err == ""
    counted.count(6)
    said = capsys.readouterr().err
    assert "1,000 evaluations of the model will take about 5 min" in said
    assert "--contexts 1" in said
    assert "--model pairwise" in said
    counted.count(10)
    assert capsys.readouterr().err == ""


def test_what_is_short_is_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(evaluations, "time", Clock(0.01))
    Evaluations(1000, verbose=None).count(500)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("sites", [3, 20])
def test_a_likelihood_is_counted_as_it_is_asked(sites: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty sites are too many for a table of all configurations: progress is seen within one row."""
    monkeypatch.setattr("neurise.structure.sources.TOKENS", 200)
    seen: list[int] = []
    source = Likelihood(lambda tokens: np.zeros(len(tokens)), Space(sites, 2))
    source.count = seen.append
    source.tables(np.zeros((1, sites), np.uint8))
    assert sum(seen) == (source.evaluations(1) if sites == 20 else 8)
    assert max(seen) <= 200 // sites
    assert sites == 3 or len(seen) > 10


def test_conditionals_are_counted_site_by_site() -> None:
    seen: list[int] = []
    source = SiteConditionals(lambda tokens, site: np.full((len(tokens), 3), 1 / 3), Space(4, 3))
    source.count = seen.append
    source.tables(np.zeros((2, 4), np.uint8))
    assert len(seen) == 4
    assert sum(seen) == source.evaluations(2)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tiny.spins(40, 20)
    model = tiny.model("independent").fit(rows)
    whole = recover(model, rows, rows=1).tables
    monkeypatch.setattr("neurise.structure.sources.TOKENS", 100)
    np.testing.assert_allclose(recover(model, rows, rows=1).tables, whole, rtol=0, atol=1e-12)
