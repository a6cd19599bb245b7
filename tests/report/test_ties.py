"""Which means of a table are bold: the best and what cannot be told from it, or none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import report_rows

from neurise.experiments.parts.summary import Block, Entry
from neurise.report import build
from neurise.report._table import _best


def block(*columns: tuple[float, float | None, int]) -> Block:
    entries = [[Entry(mean, spread, None, count)] for mean, spread, count in columns]
    names = [f"method {number}" for number in range(len(columns))]
    return Block("t", names, [entry[0].cells for entry in entries], entries)


@pytest.mark.parametrize(
    ("columns", "bold"),
    [
        ([(0.1, 0.01, 4), (0.2, 0.01, 4)], {0}),  # ten standard errors apart
        ([(0.100, 0.01, 4), (0.105, 0.01, 4), (0.2, 0.01, 4)], {0, 1}),  # 0.7 of them
        ([(0.100, 0.01, 400), (0.105, 0.01, 400), (0.2, 0.01, 4)], {0}),  # 7: the error falls with the number of cells
        ([(0.100, 0.01, 4), (0.105, 0.01, 4)], set()),  # all tie
        ([(0.1, None, 1), (0.2, None, 1)], set()),  # no error is known
        (
            [(0.1, None, 1), (0.105, 0.01, 4), (0.3, 0.02, 4)],
            {0, 1},
        ),  # one cell is as uncertain as the others are at most
        ([(0.1, 0.0, 3), (0.2, 0.0, 3)], {0}),
        (
            [(0.1, 0.01, 4), (0.13, 0.01, 4), (0.2, 0.2, 4), (0.9, 0.1, 4)],
            {0, 1, 2},
        ),  # none better than a tied one is left out
        ([(0.1, 0.01, 4)], set()),
    ],
)
def test_what_is_within_two_standard_errors_of_the_best_ties(
    columns: list[tuple[float, float | None, int]], bold: set[int]
) -> None:
    assert _best(block(*columns), 0, True, "real rows") == bold
    mirrored = [(-mean, spread, count) for mean, spread, count in columns]
    assert _best(block(*mirrored), 0, False, "real rows") == bold
    assert _best(block(*columns), 0, None, "real rows") == set()


def test_a_near_tie_has_no_single_winner_on_the_page(tmp_path: Path) -> None:
    rows = [
        row | {"metrics": row["metrics"] | {"tv": tv + 0.01 * row["seed"]}}
        for row in report_rows.rows("ising_curves", trials=3, methods=["neurise", "ggm", "sedd"])
        for tv in [{"neurise": 0.200, "ggm": 0.201, "sedd": 0.4}[row["parameters"]["method"]]]
        if row["parameters"]["rows"] == 100
    ]
    html = build([report_rows.write(tmp_path / "r.jsonl", rows)]).html
    bold = re.findall(r'<th scope="row">([^<]*)</th><td><strong>', html)
    assert bold == ["NeurISE", "GGM"]
    assert "within two standard errors" in html


@pytest.mark.parametrize(("names", "words"), [(["potts"], "1 experiment;"), (["potts", "ghz"], "2 experiments;")])
def test_one_is_one_and_two_are_two(tmp_path: Path, names: list[str], words: str) -> None:
    for name in names:
        report_rows.write(tmp_path / "r.jsonl", report_rows.rows(name, trials=1))
    html = build([tmp_path / "r.jsonl"]).html
    assert words in html
    assert not re.search(r"\b1 (experiments|cells|rows|points|lines)\b", html)
