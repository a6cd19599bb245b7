"""What objects say of themselves: one line in a terminal, a table without scripts in a notebook."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import discovery, shown
from neurise.evaluation import Evaluation, Measurement

HOSTILE = "<script>alert('x')</script>&\"'"


class Page(HTMLParser):
    """Insists that every tag is closed in its turn, and collects the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.text, self.tags = list[str](), list[str](), set[str]()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def data() -> Any:
    law = neurise.datasets.edwards_anderson(side=2, J=0.5)
    return replace(law, train=law.sample(60, seed=0), info={"source": HOSTILE})


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    rows = (
        Measurement("kl", 0.25, 0.01, 0.0, "nats", HOSTILE, {"independent": 1.5, "memorize": None}),
        Measurement("copies", None, baselines={"independent": 0.5, "memorize": 1.0}),
    )
    return Evaluation(f"Model({HOSTILE})", "spins", 100, rows, "50 rows", "test rows", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", discovery.names("neurise.models"))
def test_a_model_shows_its_parameters_and_what_was_reached(name: str) -> None:
    model = tiny.model(name, alphabet=[-1, 1])
    before = Page(model._repr_html_())
    assert {type(model).__name__, "not fitted yet", "alphabet", "[-1, 1]", "order"} <= {*map(str.strip, before.text)}
    model.fit(tiny.spins(), max_steps=2)
    after = Page(model._repr_html_())
    assert {"fitted", "60 rows of 3 sites, 2 states", "stopped", model.stopped_} <= {*map(str.strip, after.text)}
    assert before.tags | after.tags == {"div", "span", "table", "tr", "th", "td", "details", "summary"}


def test_text_of_others_is_escaped(data: Any, evaluation: Evaluation) -> None:
    for thing in (data, evaluation, neurise.Independent(alphabet=[HOSTILE])):
        text = thing._repr_html_()
        assert "<script" not in text
        assert any("alert(" in part for part in Page(text).text)


def test_an_evaluation_shows_every_measurement(evaluation: Evaluation) -> None:
    shown_text = Page(evaluation._repr_html_()).text
    assert {"kl", "0.25 ± 0.01 nats", "copies", "–", "1.5", "memorize", "measured on test rows"} <= set(shown_text)


def test_an_evaluation_becomes_a_data_frame(evaluation: Evaluation) -> None:
    pytest.importorskip("pandas")
    frame = evaluation.to_frame()
    assert frame["name"].tolist() == ["kl", "copies"]
    assert frame.columns.tolist() == ["name", "value", "error", "floor", "units", "note", "independent", "memorize"]
    assert frame.loc[0, "value"] == 0.25
    assert np.isnan(frame.loc[1, "value"])


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
def test_it_becomes_a_frame_of_another_library(evaluation: Evaluation, backend: str) -> None:
    pytest.importorskip("narwhals")
    pytest.importorskip(backend)
    found = evaluation.to_frame(backend)
    assert type(found).__module__.startswith(backend)
    assert found["value"].to_numpy()[0] == 0.25


def test_a_kind_of_frame_that_is_none_is_refused(evaluation: Evaluation) -> None:
    pytest.importorskip("narwhals")
    with pytest.raises(ValueError, match=r"Unsupported backend: 'excel'"):
        evaluation.to_frame("excel")


def test_reprs_are_one_short_line(data: Any, evaluation: Evaluation) -> None:
    assert repr(data) == f"Dataset({data.name}: 60 rows of 4 sites, 2 states, law known)"
    assert repr(replace(data, draw=None, law=None, test=data.train)).endswith("60 + 60 test rows of 4 sites, 2 states)")
    assert repr(evaluation) == f"Evaluation({evaluation.model} on spins: kl 0.25 ± 0.01 nats, copies –)"
    long = neurise.Independent(order=np.arange(2000), alphabet=list(range(200)))
    assert repr(long) == "Independent(order=<ndarray of 2,000 int64>, alphabet=[0, 1, 2, … 200 in all])"
    model = neurise.Independent().fit(data.train)
    for thing in (neurise.structure.recover(model, data.train, verbose=False), neurise.povm.TETRAHEDRAL):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 400


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
        (torch.zeros(3, 40, dtype=torch.float16), "<Tensor of 3 × 40 float16>"),
        (range(5), "range(0, 5)"),
        ("x" * 200, "'" + "x" * 79 + "…"),
        ({"a": 1}, "{'a': 1}"),
        (None, "None"),
    ],
)
def test_values_in_one_line(entry: Any, line: str) -> None:
    assert shown.value(entry) == line
