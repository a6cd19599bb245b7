"""Tables on the page: columns that have symbols of their own."""

from __future__ import annotations

import pages
import pytest

from neurise.player.couplings import couplings
from neurise.player.watching import watch
from neurise.player.wishes import Wish


def test_bars_show_the_symbols_of_their_own_column() -> None:
    stage = pages.labelled()  # columns of two and of three symbols
    parts = list(watch(Wish(stage, {})))
    steps = [step for part in parts if part["kind"] == "steps" for step in part["steps"]]
    assert {step["s"][0]: len(step["p"][0]) for step in steps} == {0: 2, 1: 3}


def test_couplings_of_a_table_are_refused_before_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pages.labelled().actors[0].model
    monkeypatch.setattr(type(model), "sample", lambda *_, **__: pytest.fail("rows were drawn"))
    with pytest.raises(NotImplementedError, match="columns of one alphabet"):
        list(couplings(Wish(pages.labelled(), {})))
