"""Figures: points are the means of the rows, and lie where their numbers say."""

from __future__ import annotations

import itertools
import re
import statistics
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
import report_rows

from neurise import experiments
from neurise.experiments import Field, Figure
from neurise.report._palette import look
from neurise.report._plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, hidden, plot
from neurise.report._points import Panel, Point, Series, csv_rows, panels

SVG = "{http://www.w3.org/2000/svg}"
FIGURE = Figure(
    "f", "An <error>", Field("rows", "N & more"), (Field("tv", "TV"),), floors=(Field("tv_floor", "floor"),)
)
ISING = experiments.find("ising_curves")


def rows(values: list[tuple[str, int, float | None]]) -> list[dict[str, Any]]:
    made = []
    for seed, (method, size, tv) in enumerate(values):
        cell = experiments.Cell("ising_curves", "smoke", {"method": method, "rows": size}, seed)
        made.append(report_rows.row(cell, {"tv": tv, "tv_floor": 0.01 * (seed + 1)}))
    return made


def test_points_are_means_and_bars_standard_deviations() -> None:
    made = rows(
        [("neurise", 1000, 0.1), ("neurise", 100, 0.5), ("neurise", 100, 0.7), ("ggm", 100, 0.9), ("ggm", 1000, None)]
    )
    (panel,) = panels(ISING, FIGURE, made)
    neurise, ggm, floor = panel.series
    assert neurise.label == "NeurISE"
    assert [(point.x, point.mean, point.cells) for point in neurise.points] == [
        (100, pytest.approx(0.6), 2),
        (1000, 0.1, 1),
    ]
    assert neurise.points[0].spread == pytest.approx(statistics.stdev([0.5, 0.7]))
    assert neurise.points[1].spread is None
    assert [point.x for point in ggm.points] == [100]  # what was not measured is no point
    assert floor.floor
    assert floor.points[0].mean == pytest.approx((0.02 + 0.03 + 0.04) / 3)  # over all rows at that x


def test_only_rows_that_belong_to_a_figure_are_in_it() -> None:
    made = rows([("neurise", 100, 0.5), ("ggm", 100, 0.9)])
    one = Figure("f", "t", FIGURE.x, FIGURE.y, where={"method": "ggm"})
    assert [line.label for line in panels(ISING, one, made)[0].series] == ["GGM"]
    split = Figure("f", "t", FIGURE.x, FIGURE.y, None, "method")
    assert [panel.label for panel in panels(ISING, split, made)] == ["method: NeurISE", "method: GGM"]
    assert panels(ISING, Figure("f", "t", FIGURE.x, (Field("none", "n"),)), made) == []


def test_the_table_behind_a_figure_has_every_point() -> None:
    made = panels(ISING, FIGURE, rows([("neurise", 100, 0.5), ("neurise", 100, 0.7)]))
    lines = csv_rows(FIGURE, made)
    assert lines[0] == ["series", "rows", "mean", "standard_deviation", "cells"]
    assert lines[1] == ["NeurISE", 100, pytest.approx(0.6), pytest.approx(0.02**0.5), 2]
    assert len(lines) == 3


def test_markers_lie_where_the_numbers_say() -> None:
    panel = Panel("", [Series("a", [Point(1, 1.0, None, 1), Point(10, 10.0, None, 1), Point(1000, 1000.0, None, 1)])])
    root = ElementTree.fromstring(plot(FIGURE, panel))
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")][:3]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert (x2 - x0) == pytest.approx(3 * (x1 - x0), abs=0.3)  # three decades are three times one
    assert (y0 - y2) == pytest.approx(3 * (y0 - y1), abs=0.3)
    assert all(LEFT <= x <= WIDTH - RIGHT and TOP <= y <= HEIGHT - BOTTOM for x, y in places)


def test_bars_reach_from_mean_minus_to_mean_plus_and_stay_in_the_frame() -> None:
    linear = Figure("f", "t", FIGURE.x, FIGURE.y, log_x=False, log_y=False)
    panel = Panel("", [Series("a", [Point(0, 2.0, 1.0, 3), Point(1, 4.0, None, 1)])])
    root = ElementTree.fromstring(plot(linear, panel))
    (bar,) = [path for path in root.iter(f"{SVG}path") if path.get("class") == "bar"]
    low, high = map(float, re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)", bar.get("d")).groups())
    centre = float(next(root.iter(f"{SVG}circle")).get("cy"))
    assert low - centre == pytest.approx(centre - high, abs=0.2)
    log = Panel("", [Series("a", [Point(10, 1.0, 5.0, 3), Point(100, 1.0, 0.1, 3)])])
    bars = re.findall(r'class="bar" d="M[\d.]+ ([\d.]+)V([\d.]+)', plot(FIGURE, log))
    assert len(bars) == 2
    assert float(bars[0][0]) == HEIGHT - BOTTOM  # one minus five has no logarithm: the bar goes to the end
    assert all(TOP <= float(end) <= HEIGHT - BOTTOM for bar in bars for end in bar)


def test_points_without_a_place_are_counted() -> None:
    panel = Panel("", [Series("a", [Point(10, 1.0, None, 1), Point(100, 0.0, None, 1), Point(200, -1.0, None, 1)])])
    assert hidden(FIGURE, panel) == 2
    assert plot(FIGURE, panel).count("<circle") == 2  # one point, and the legend


def test_a_figure_is_well_formed_and_says_in_words_what_it_shows() -> None:
    panel = Panel("p", [Series("a < b", [Point(10, 1.0, None, 1)]), Series("floor", [Point(10, 0.5, None, 1)], True)])
    root = ElementTree.fromstring(plot(FIGURE, panel))
    assert root.get("role") == "img"
    assert (
        root.get("aria-label") == "An <error>, p, against N & more. a < b: 1 at 10; floor (to compare with): 0.5 at 10."
    )
    assert "http" not in plot(FIGURE, panel).replace("http://www.w3.org/2000/svg", "")


def test_lines_differ_in_colour_in_marker_and_in_dash() -> None:
    for part in zip(*(look(number) for number in range(7)), strict=True):
        assert len(set(part)) == 7
    assert len({look(number) for number in range(49)}) == 49
    assert look(0, floor=True).dash


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_the_numbers_of_lines_stand_beside_their_ends_and_do_not_touch(count: int) -> None:
    figure = experiments.Figure("f", "F", experiments.Field("rows", "rows"), (experiments.Field("tv", "TV"),))
    lines = [Series(f"method {n}", [Point(x, 0.5 + n * 1e-4, None, 1) for x in (10, 100)]) for n in range(count)]
    svg = plot(figure, Panel("", lines))
    tags = re.findall(r'<text x="\d+" y="([\d.]+)" font-size="10" fill="([^"]+)">(\d+)</text>', svg)
    assert sorted(int(number) for _, _, number in tags) == (list(range(1, count + 1)) if count > 1 else [])
    heights = sorted(float(height) for height, _, _ in tags)
    assert all(second - first >= 10.9 for first, second in itertools.pairwise(heights))
    assert all(0 < height < HEIGHT for height in heights)
    if count > 1:
        assert "1  method 0" in svg
    looks = [look(number) for number in range(count)]
    assert len(set(looks)) == count


def test_names_on_an_axis_do_not_touch() -> None:
    figure = experiments.Figure("f", "F", experiments.Field("kind", "kind"), (experiments.Field("tv", "TV"),))
    line = Series("m", [Point(f"a long name {n}", 0.5 + n, None, 1) for n in range(12)])
    svg = plot(figure, Panel("", [line]))
    names = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle">(a long[^<]*)</text>', svg)
    ends = [(float(x) - 3.3 * len(name), float(x) + 3.3 * len(name)) for x, name in names]
    assert len(ends) >= 2
    assert all(first[1] < second[0] for first, second in itertools.pairwise(ends))
