"""Which means of a table are bold: the best and what cannot be told from it, or none."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest
import report_rows

from neurise.experiments.parts.spread import Situation
from neurise.experiments.parts.summary import Block, Entry
from neurise.report import build
from neurise.report._table import _best


def block(*columns: list[float], instances: int = 1) -> Block:
    """Make a table of one column; the numbers of a row are trials of one instance after the other."""
    names = [f"method {number}" for number in range(len(columns))]
    entries = []
    for numbers in columns:
        places = [Situation(number % instances, number // instances) for number in range(len(numbers))]
        values = dict(zip(places, numbers, strict=True))
        entries.append([Entry(statistics.fmean(numbers), None, None, len(numbers), None, values)])
    return Block("t", names, [entry[0].cells for entry in entries], entries)


@pytest.mark.parametrize(
    ("columns", "instances", "bold"),
    [
        ([[0.10, 0.11, 0.12], [0.20, 0.21, 0.23]], 1, {0}),
        ([[0.10, 0.11, 0.12], [0.09, 0.13, 0.12], [0.30, 0.31, 0.33]], 1, {0, 1}),
        (
            [[0.10, 0.30, 0.50], [0.11, 0.312, 0.513]],
            1,
            {0},
        ),  # trials vary more than methods, which are compared in pairs
        ([[0.10, 0.11, 0.12], [0.09, 0.13, 0.13]], 1, set()),  # all tie
        ([[0.1], [0.2]], 1, set()),  # no interval is known
        ([[0.1, 0.2], [0.2, 0.1, 0.9], [0.8, 0.9]], 1, {0, 1}),  # on the two cells that all have
        # Two instances: over trials of both. Four: over instances, of which one prefers the other method.
        ([[0.10, 0.50, 0.11, 0.51], [0.20, 0.60, 0.22, 0.62]], 2, {0}),
        ([[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.3], [0.9, 1.0, 1.2, 1.1]], 4, {0, 1}),
        ([[0.1, 0.2]], 1, set()),
    ],
)
def test_what_cannot_be_told_from_the_best_ties(columns: list[list[float]], instances: int, bold: set[int]) -> None:
    assert _best(block(*columns, instances=instances), 0, True, "real rows") == bold
    mirrored = [[-number for number in numbers] for numbers in columns]
    assert _best(block(*mirrored, instances=instances), 0, False, "real rows") == bold
    assert _best(block(*columns, instances=instances), 0, None, "real rows") == set()


def test_a_near_tie_has_no_single_winner_on_the_page(tmp_path: Path) -> None:
    rows = [
        row | {"metrics": row["metrics"] | {"tv": tv + 0.01 * row["seed"] ** (1 + (tv > 0.2))}}
        for row in report_rows.rows("ising_curves", trials=3, methods=["neurise", "ggm", "sedd"])
        for tv in [{"neurise": 0.200, "ggm": 0.201, "sedd": 0.4}[row["parameters"]["method"]]]
        if row["parameters"]["rows"] == 100
    ]
    html = build([report_rows.write(tmp_path / "r.jsonl", rows)]).html
    table = html[html.index('id="ising_curves-smoke-summary"') : html.index('id="ising_curves-smoke-density"')]
    bold = re.findall(r'<th scope="row">([^<]*)</th><td><strong>', table)
    assert bold == ["NeurISE", "GGM"]
    assert "the 95 % interval of the mean difference" in html


@pytest.mark.parametrize(("names", "words"), [(["potts"], "1 experiment;"), (["potts", "ghz"], "2 experiments;")])
def test_one_is_one_and_two_are_two(tmp_path: Path, names: list[str], words: str) -> None:
    for name in names:
        report_rows.write(tmp_path / "r.jsonl", report_rows.rows(name, trials=1))
    html = build([tmp_path / "r.jsonl"]).html
    assert words in html
    assert not re.search(r"\b1 (experiments|cells|rows|points|lines)\b", html)
