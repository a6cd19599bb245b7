"""What a page must not do: average what does not compare, join what was measured apart, or leave budgets out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import report_rows

from neurise.experiments import store
from neurise.report import build
from neurise.report._budgets import budget_of

CUDA = report_rows.MACHINE | {"device": "cuda", "device_name": "NVIDIA H200"}
PRESET = "preset:ising_5x5_d3pm"


def page(path: Path, rows: list[store.Row]) -> str:
    path.unlink(missing_ok=True)
    return build([report_rows.write(path, rows)]).html


def part(html: str, name: str) -> str:
    """Return the section of a figure or table."""
    start = html.index(f'id="{name}"')
    return html[start : html.index("</section>", start)]


def laptop(**metrics: Any) -> list[store.Row]:
    rows = report_rows.rows("ising_curves", "laptop", trials=1, methods=["neurise", "d3pm", PRESET])
    return [row | {"metrics": row["metrics"] | metrics} for row in rows if row["parameters"]["rows"] == 1000]


def test_a_preset_with_few_cells_has_its_own_table_floor_and_no_line(tmp_path: Path) -> None:
    rows = [
        row | {"metrics": row["metrics"] | {"tv_floor": 0.125 if row["parameters"]["instance"] == 0 else 0.087}}
        for row in laptop()
        if row["parameters"]["method"] != PRESET or (row["parameters"]["instance"] == 0 and row["seed"] == 0)
    ]
    html = page(tmp_path / "r.jsonl", rows)
    table = part(html, "ising_curves-laptop-summary")
    own = table[table.index("on 1 of 9 cells") :]
    assert "floor 0.125" in own  # and not the mean of both instances
    assert re.findall(r'<th scope="row">([^<]*)</th>', own) == ["NeurISE", "D3PM", "preset ising_5x5_d3pm"]
    assert "preset" not in table[: table.index("on 1 of 9 cells")]
    figure = part(html, "ising_curves-laptop-tv")
    assert "preset ising_5x5_d3pm</text>" not in figure
    assert "Not drawn, for they have less than half of the cells: preset ising_5x5_d3pm." in figure


def test_spread_says_what_it_is_over(tmp_path: Path) -> None:
    table = part(page(tmp_path / "r.jsonl", laptop()), "ising_curves-laptop-summary")
    assert (
        "± is one standard deviation over trials of one instance; below it that over the means of instances." in table
    )
    assert re.search(r"\d over instances</span>", table)
    one = [row for row in laptop() if row["parameters"]["instance"] == 0]
    table = part(page(tmp_path / "one.jsonl", one), "ising_curves-laptop-summary")
    assert "± is one standard deviation over trials." in table
    assert "over instances</span>" not in table


def test_exact_numbers_are_drawn_where_a_method_has_them(tmp_path: Path) -> None:
    rows = laptop(law_tv=None)
    for row in rows:
        if row["parameters"]["method"] == "neurise":
            row["metrics"] |= {"law_tv": 0.0625}
    figure = part(page(tmp_path / "r.jsonl", rows), "ising_curves-laptop-tv")
    assert "NeurISE, its law" in figure
    assert "D3PM, its law" not in figure
    assert "training rows N 1000: 0.0625" in figure
    rows[0]["metrics"] |= {"law_tv": None}  # one cell lacks it: the line is that of samples
    assert "NeurISE, its law" not in part(page(tmp_path / "r2.jsonl", rows), "ising_curves-laptop-tv")


def test_no_line_joins_times_of_two_devices_or_of_cells_that_were_not_alone(tmp_path: Path) -> None:
    rows = report_rows.rows("ising_curves", "laptop", trials=1, methods=["neurise"])
    mixed = [row | {"machine": CUDA} if row["parameters"]["rows"] == 10_000 else row for row in rows]
    html = page(tmp_path / "r.jsonl", mixed)
    figure = part(html, "ising_curves-laptop-training_time")
    assert "NeurISE (x86)" in figure
    assert "NeurISE (NVIDIA H200)" in figure
    shared = [row | {"beside": 3} for row in rows]
    html = page(tmp_path / "r2.jsonl", shared)
    assert "ising_curves-laptop-training_time" not in html
    assert "training time, s</th>" not in part(html, "ising_curves-laptop-summary")
    grouped = [row | {"cells": 4} for row in rows]
    assert "ising_curves-laptop-training_time" not in page(tmp_path / "r3.jsonl", grouped)


def test_missing_cells_are_named_as_combinations(tmp_path: Path) -> None:
    rows = report_rows.rows("ising_curves", "laptop", trials=1)
    gone = [("sedd", 100, 1), ("sedd", 1000, 1), ("ggm", 10_000, 0)]
    kept = [
        row
        for row in rows
        if (row["parameters"]["method"], row["parameters"]["rows"], row["parameters"]["instance"]) not in gone
        and not (row["parameters"]["method"] == "dfm" and row["seed"] == 1)
    ]
    html = page(tmp_path / "r.jsonl", kept)
    told = re.search(r"Not run here: ([^<]*)\.</p>", html)
    assert told is not None
    assert set(told[1].split("; ")) == {
        "SEDD rows 100, 1000 × instance 1",
        "GGM rows 10000 × instance 0",
        "DFM 1 of 3 trials",
    }


def test_a_budget_that_varies_is_told_as_where_it_goes() -> None:
    """A list of numbers with commas in them would be read as a list of more numbers."""
    rows = laptop()[:4]
    for row, steps, width, loss in zip(rows, (1200, 552, 1150, 552), (64, 1024, 64, 64), "baab", strict=True):
        row["budget"] = {"steps": steps, "width": width, "loss": loss, "depth": 2}
    told = budget_of(rows)
    assert (told["steps"], told["width"], told["loss"]) == ("552 … 1,200", "64 and 1,024", "a, b")
    assert told["depth"] == "2"


def test_what_was_not_trained_has_no_steps() -> None:
    rows = laptop(parameters=0, learnt_from=500)[:2]
    assert rows[0]["parameters"]["steps"] == 1200
    assert budget_of(rows) == {"parameters": "0", "learnt_from": "500"}


def test_budgets_stand_beside_the_figures(tmp_path: Path) -> None:
    budget = {"steps": 1200, "batch_size": 512, "width": 128, "depth": 2, "loss": "screening", "learning_rate": 0.002}
    rows = [row | {"budget": budget, "times": {"train_seconds": 7.5}} for row in laptop(learnt_from=1000)]
    html = page(tmp_path / "r.jsonl", rows)
    table = html[html.index("<h3>Budgets</h3>") :]
    table = table[: table.index("</table>")]
    for text in ("1,200", "512", "614,000", "128", "screening", "0.002", "rows learnt from", "(x86)"):
        assert text in table, text
    assert "7.5 (x86)" in table


def test_the_papers_numbers_say_which_convention_they_fit(tmp_path: Path) -> None:
    html = page(tmp_path / "r.jsonl", [*report_rows.rows("dwave", trials=1), *report_rows.rows("mnist", trials=1)])
    assert "fits ‖ΔC‖/q²" in html
    assert "below those of real digits against real digits in every convention" in html
