"""Tables and alignments on the page: columns that have symbols of their own, and rows as files have them."""

from __future__ import annotations

import numpy as np
import pages
import pandas as pd
import pytest

from neurise import Independent
from neurise.player.couplings import couplings
from neurise.player.open import stage_of
from neurise.player.typed_rows import read_row
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


@pytest.mark.parametrize(
    "text",
    ['"Bonn, Rhine",f\n', 'town,sex\n"Bonn, Rhine",f\nRome,m', '"town";"sex"\n"Bonn, Rhine";f', '["Bonn, Rhine", "f"]'],
)
def test_a_row_is_read_off_a_table_with_a_head_and_quotes(text: str) -> None:
    X = pd.DataFrame({"town": ["Bonn, Rhine", "Rome"] * 4, "sex": ["f", "m"] * 4})
    stage = stage_of(Independent().fit(X))
    row = read_row(stage, text)
    assert [own[token] for own, token in zip(stage.symbols, row, strict=True)] == ["Bonn, Rhine", "f"]


def test_a_row_is_read_off_an_alignment() -> None:
    stage = stage_of(Independent().fit(np.array([list("ACG-"), list("CAGT")])))
    row = read_row(stage, ">one\nAC\nG-\n>two\nCAGT\n")
    assert "".join(own[token] for own, token in zip(stage.symbols, row, strict=True)) == "ACG-"
