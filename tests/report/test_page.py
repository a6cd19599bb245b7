"""The page: everything that was declared is there, beside what is missing, failed or damaged."""

from __future__ import annotations

import base64
import csv
import io
import re
import struct
import zlib
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import report_rows

from neurise import experiments
from neurise.report import build
from neurise.report._pictures import _tiled, png

NAMES = experiments.names()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "all.jsonl"
    for name in NAMES:
        report_rows.write(path, report_rows.rows(name))
    return build([path]).html


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_table_and_grid_of_an_experiment_is_there(everything: str, name: str) -> None:
    experiment = experiments.find(name)
    for part in (*experiment.figures, *experiment.tables, *experiment.grids):
        assert f'id="{name}-smoke-{part.name}"' in everything
    assert f"neurise experiment run {name} --scale smoke" in everything
    assert experiment.reduced("smoke").replace("&", "&amp;")[:20] in everything


def test_the_papers_numbers_stand_beside_ours(everything: str) -> None:
    table = everything[everything.index('id="mnist-smoke-') : everything.index('id="dwave-smoke"')]
    line = re.search(r'<tr><th scope="row">SEDD</th>(.*?)</tr>', table).group(1)
    assert re.findall(r'<td class="paper">(.*?)</td>', line) == ["0.41", "7.1×10⁻⁶"]
    dwave = everything[everything.index('id="dwave-smoke"') :]
    assert '<td class="paper">65.03</td>' in dwave


def test_the_page_asks_for_nothing_from_elsewhere(everything: str) -> None:
    links = re.findall(r'(?:src|href)="([^"]*)"', everything)
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)
    assert "<script" not in everything
    assert not re.search(r"url\(|@import|@font-face", everything)
    assert "default-src 'none'" in everything


def test_every_tag_is_closed_and_every_id_is_one(everything: str) -> None:
    class Checker(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open_tags, self.ids = list[str](), list[str]()

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.ids += [value for key, value in attrs if key == "id" and value]
            if tag not in ("meta", "link", "img", "br"):
                self.open_tags.append(tag)

        def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert self.open_tags.pop() == tag

    checker = Checker()
    checker.feed(everything)
    assert checker.open_tags == []
    assert len(checker.ids) == len(set(checker.ids))
    assert set(re.findall(r'href="#([^"]*)"', everything)) <= set(checker.ids)


def test_tables_to_download_hold_the_numbers(everything: str) -> None:
    found = dict(re.findall(r'download="([^"]*)" href="data:[^,"]*;base64,([^"]*)"', everything))
    assert "ising_curves-smoke-tv.svg" in found
    lines = list(csv.reader(io.StringIO(base64.b64decode(found["ising_curves-smoke-tv.csv"]).decode())))
    assert lines[0] == ["series", "rows", "mean", "standard_deviation", "cells"]
    assert {line[0] for line in lines[1:]} >= {f"{name}, its law" for name in ("NeurISE", "GGM", "SEDD", "D3PM", "DFM")}


def test_failed_and_missing_cells_are_told(tmp_path: Path) -> None:
    rows = report_rows.rows("potts", trials=1)
    failure = {"status": "failed", "metrics": {}, "times": {}, "arrays": {}, "error": "ValueError: <b>no</b>"}
    made = build([report_rows.write(tmp_path / "r.jsonl", [rows[0] | failure, *rows[2:]])])
    assert f"Missing: 2 of {len(rows)} cells; 1 failed." in made.html
    assert "ValueError: &lt;b&gt;no&lt;/b&gt;" in made.html
    assert made.gathered.sections[0].cells == (len(rows) - 2, len(rows))


def labels_without(*methods: str) -> str:
    """The labels of all methods of figure 1 but some, as the page writes them."""
    every = experiments.find("ising_curves").methods
    return escape(", ".join(label for name, label in every.items() if name not in methods))


def test_methods_that_were_not_run_are_named(tmp_path: Path) -> None:
    rows = report_rows.rows("ising_curves", methods=["neurise", "ggm"])
    made = build([report_rows.write(tmp_path / "r.jsonl", rows)])
    assert f"Not run here: {labels_without('neurise', 'ggm')}." in made.html
    assert "--methods neurise,ggm" in made.html


PARTS = ("100, 10000", "1000 in 2 of 3 trials")


def test_what_was_never_begun_is_named_with_its_values_and_trials(tmp_path: Path) -> None:
    rows = report_rows.rows("ising_curves", "laptop", trials=1, methods=["neurise", "memorize"])
    begun = [row for row in rows if row["parameters"]["rows"] == 1000 and row["seed"] == 0]
    html = build([report_rows.write(tmp_path / "r.jsonl", begun)]).html
    named = labels_without("neurise") + "; " + "; ".join(f"NeurISE, memorised rows rows {part}" for part in PARTS)
    assert f"Not run here: {named}." in html
    whole = build([report_rows.write(tmp_path / "all.jsonl", report_rows.rows("ghz", trials=1))]).html
    assert "Not run here" not in whole


def test_every_command_that_made_rows_is_shown(tmp_path: Path) -> None:
    first, second, *others = report_rows.rows("potts", trials=1)
    typed = [first | {"command": "neurise experiment run potts --only 'side=2'"}, second | {"command": "neurise b"}]
    html = build([report_rows.write(tmp_path / "some.jsonl", typed)]).html
    shown = re.findall(r"<dt>command</dt><dd>(.*?)</dd>", html)
    assert shown == [
        "<p>1 cell:</p><pre><code>neurise experiment run potts --only &#x27;side=2&#x27;</code></pre>"
        "<p>1 cell:</p><pre><code>neurise b</code></pre>"
    ]
    older = build([report_rows.write(tmp_path / "older.jsonl", others)]).html
    assert "<p>not recorded; put together from the rows:</p>" in older
    assert "<pre><code>neurise experiment run potts --scale smoke</code></pre>" in older
    together = [row | {"cells": 2} for row in others]
    assert "potts --scale smoke --grouped</code>" in build([report_rows.write(tmp_path / "t.jsonl", together)]).html
    both = build([tmp_path / "some.jsonl", tmp_path / "older.jsonl"]).html
    assert f"<p>{len(others)} cells, not recorded" in both


def test_methods_stand_in_their_order_whichever_was_finished_first(tmp_path: Path) -> None:
    rows = report_rows.rows("ising_curves")
    html = build([report_rows.write(tmp_path / "r.jsonl", rows[::-1])]).html
    table = html[html.index('id="ising_curves-smoke-summary"') :]
    heads = re.findall(r'<th scope="row">(.*?)</th>', table)
    assert heads[:6] == ["NeurISE", "NeurISE, the paper&#x27;s form", "GGM", "SEDD", "D3PM", "DFM"]


def test_columns_that_nobody_measured_are_left_out_and_a_common_floor_stands_once(tmp_path: Path) -> None:
    rows = report_rows.rows("ising_curves", trials=1)
    for row in rows:
        row["metrics"] |= {"law_tv": None, "tv_floor": 0.125}
    html = build([report_rows.write(tmp_path / "r.jsonl", rows)]).html
    table = html[html.index('id="ising_curves-smoke-summary"') :]
    assert "TV of the law</th>" not in table
    assert table.count("floor 0.125</span>") == 2  # one for each number of rows
    assert re.search(r'<th scope="col">total variation<br><span class="floor">floor 0.125</span></th>', table)
    rows[0]["metrics"]["tv_floor"] = 0.5
    html = build([report_rows.write(tmp_path / "r2.jsonl", rows)]).html
    assert html.count("floor 0.5</span></td>") == 1


def test_the_last_row_of_a_cell_counts_and_a_finished_one_above_a_failed_one(tmp_path: Path) -> None:
    (cell, *_) = report_rows.rows("potts", trials=1)
    newer = cell | {"code": {"neurise": "0.2.0", "digest": "f" * 12}, "metrics": {"tv": 0.123}}
    broken = cell | {"code": {"neurise": "0.3.0", "digest": "e" * 12}, "status": "failed", "error": "E"}
    first = report_rows.write(tmp_path / "a.jsonl", [cell])
    second = report_rows.write(tmp_path / "b.jsonl", [newer, broken])
    (section,) = build([first, second]).gathered.sections
    assert [row["metrics"] for row in section.done] == [{"tv": 0.123}]
    assert not section.failed


def test_a_damaged_line_and_an_unknown_experiment_are_told(tmp_path: Path) -> None:
    path = report_rows.write(tmp_path / "r.jsonl", report_rows.rows("potts", trials=1))
    report_rows.write(path, [report_rows.rows("ghz", trials=1)[0] | {"experiment": "future"}])
    with path.open("a") as file:
        file.write('{"format": 1, "status": "do')
    html = build([path]).html
    assert f"{path}, line {len(path.read_text().splitlines())} was left out: it is no JSON" in html
    assert "no such experiment: future (1 row)" in html


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "there are no results"), ("not json\n", "is no results file"), ('{"format": 99}\n', "has format 99")],
    ids=["empty", "other", "version"],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "r.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        build([tmp_path / "r.jsonl"])


def test_a_picture_is_a_whole_png_with_the_pixels_it_was_given() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (5, 11)).astype(np.uint8)
    data = png(bits)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    assert (width, height, depth, colour) == (11, 5, 1, 0)
    start = data.index(b"IDAT")
    length = struct.unpack(">I", data[start - 4 : start])[0]
    lines = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + length]), dtype=np.uint8).reshape(5, 3)
    np.testing.assert_array_equal(np.unpackbits(lines[:, 1:], axis=1)[:, :11], bits)


def test_samples_stand_row_by_row() -> None:
    array = np.zeros((2, 3, 4, 5), dtype=np.uint8)
    array[1, 2, 3, 4] = 1
    tiled = _tiled(array)
    assert tiled.shape == (2 * (2 * 4 + 2), 2 * (3 * 5 + 2 * 2))
    assert (tiled[-2:, -2:] == 0).all()  # the last pixel of the last picture, in black
    assert tiled.sum() == tiled.size - 4
