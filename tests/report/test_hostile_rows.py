"""Rows of any kind at all: no traceback, no text of theirs that is not escaped, and every line left out is named."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import report_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from neurise.cli import app
from neurise.experiments import store
from neurise.report import build

SCRIPT = "</pre></title>'\"><script>alert(1)</script>&[/nothing]\x1b[2J"
HOSTILE = [
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    1e308,
    5e-324,
    -(2**70),
    float("nan"),
    float("inf"),
    "",
    SCRIPT,
    "\ud800",
    [],
    [None],
    {},
    {"a": {"b": []}},
    {"shape": [10**9] * 4, "bits": ""},
    {"shape": [1, 2], "bits": "gA=="},
    [SCRIPT],
    {SCRIPT: SCRIPT},
    {"\ud800": 1},
    {"digest": SCRIPT, "neurise": SCRIPT},
]
GOOD = report_rows.rows("ising_curves", methods=["neurise", "ggm"])
DIGITS = report_rows.rows("mnist", trials=1, methods=["neurise"])[0]
OPEN = {
    *(
        "html",
        "head",
        "meta",
        "link",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "p",
        "nav",
        "h2",
        "ol",
        "li",
        "a",
        "main",
    ),
    *("span", "section", "div", "h3", "figure", "figcaption", "svg", "path", "text", "g", "circle", "table", "caption"),
    *(
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "strong",
        "br",
        "ul",
        "dl",
        "dt",
        "dd",
        "pre",
        "code",
        "img",
        "polyline",
        "rect",
    ),
}


class Tags(HTMLParser):
    """All tags and names of attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen, self.handlers = set[str](), set[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.handlers |= {name for name, _ in attrs if name.startswith("on")}


def places(row: dict[str, Any]) -> list[tuple[str, ...]]:
    """Every field of a row, and every entry of those that are objects."""
    inner = [(name, entry) for name, value in row.items() if isinstance(value, dict) for entry in value]
    return [*((name,) for name in (*row, "command", "warnings") if name != "format"), *inner]


def replaced(row: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(row)
    holder = changed
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    return changed


def written(path: Path, *rows: dict[str, Any]) -> Path:
    """Write rows without the checks and conversions of the store."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def shown(path: Path) -> str:
    """Make the page, and look for anything of a row that is more than text there."""
    html = build([path]).html
    html.encode()
    found = Tags(html)
    assert found.seen <= OPEN
    assert found.handlers == set()
    assert "alert(1)</" not in html
    return html


def see_no_traceback(path: Path) -> None:
    page = path.with_suffix(".html")
    for words in (["experiment", "show"], ["experiment", "show", "--json"], ["report", "--force", "-o", str(page)]):
        done = CliRunner().invoke(app, [*words, str(path)])
        assert done.exception is None, done.exception
        assert "\x1b" not in done.stdout + done.stderr  # what a terminal would obey


@pytest.mark.parametrize("kind", ["done", "failed"])
def test_no_value_in_any_field_breaks_the_page_or_is_written_as_it_stands(tmp_path: Path, kind: str) -> None:
    base = GOOD[0] | {"status": kind, "error": SCRIPT}
    for place in places(base):
        wrong = [replaced(base | {"key": f"k{number}"}, place, value) for number, value in enumerate(HOSTILE)]
        path = written(tmp_path / "r.jsonl", *wrong, *GOOD[1:3])
        left_out, html = store.read(path).left_out, shown(path)
        assert all(number <= len(HOSTILE) and place[0] in why for number, why in left_out.items())
        for number in list(left_out)[: store.MOST_LINES]:
            assert html.count(f"{path}, line {number} was left out: {place[0]}") == 1


def test_wrong_pictures_are_left_out_and_named(tmp_path: Path) -> None:
    for place in (("arrays",), ("arrays", "digits"), ("arrays", "digits", "shape"), ("arrays", "digits", "bits")):
        wrong = [replaced(DIGITS | {"key": f"k{number}"}, place, value) for number, value in enumerate(HOSTILE)]
        path = written(tmp_path / "r.jsonl", *wrong, GOOD[0])
        assert all(why.startswith("arrays") for why in store.read(path).left_out.values())
        assert store.read(path).left_out
        shown(path)


def test_the_commands_show_no_traceback(tmp_path: Path) -> None:
    values = [None, 10**400, float("nan"), SCRIPT, "\ud800", [], {SCRIPT: SCRIPT}]
    rows = [GOOD[0] | {"status": "failed", "error": SCRIPT, "key": "k"}]
    for number, place in enumerate(places(GOOD[0])):
        rows.append(replaced(GOOD[0] | {"key": f"k{number}"}, place, values[number % len(values)]))
        rows.append(replaced(GOOD[0] | {"key": f"s{number}"}, place, SCRIPT))
    see_no_traceback(written(tmp_path / "r.jsonl", *rows, *GOOD[1:3]))


@pytest.mark.parametrize("line", ["[" * 100_000, "1" * 5000, '{"format": {}}', '{"format": true}', '"\\ud800"', "\x00"])
def test_lines_that_are_no_rows_are_named_with_a_reason(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(f"{line}\n{json.dumps(GOOD[0])}\n", encoding="utf-8")
    (reason,) = store.read(path).left_out.values()
    assert f"{path}, line 1 was left out: {reason}" in re.sub("&#x27;", "'", shown(path))
    see_no_traceback(path)


def test_a_scale_that_there_is_not_is_left_out_and_named(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", GOOD[0] | {"scale": SCRIPT, "key": "other"}, *GOOD[1:3])
    assert "no such experiment: ising_curves, scale &lt;/pre&gt;" in shown(path)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(places(GOOD[0])), values), min_size=1, max_size=3))
def test_any_change_of_any_fields_is_survived(tmp_path_factory: pytest.TempPathFactory, changes: Any) -> None:
    row = GOOD[0]
    for place, value in changes:
        if len(place) == 1 or isinstance(row.get(place[0]), dict):
            row = replaced(row, place, value)
    shown(written(tmp_path_factory.getbasetemp() / "any.jsonl", row, *GOOD[1:3]))
