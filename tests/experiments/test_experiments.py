"""What every experiment keeps: declared fields exist, small runs work, and the same cell gives the same numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from real_data import real_file

from neurise import experiments, presets
from neurise.experiments import SCALES, Cell, Experiment, grid, store
from neurise.experiments._laws import LawExperiment
from neurise.experiments._methods import build, parameters_of
from neurise.experiments.parts.summary import blocks, entry
from neurise.modeling.groups import Architecture
from neurise.models.neurise import NeurISE

NAMES = experiments.names()
FILES = {"mnist": "mnist/train-images-idx3-ubyte.gz", "dwave": "dwave/advantage41_q263.npz"}
SECONDS = {"mnist", "dwave", "ising_curves"}
"""Experiments whose small run takes more than a few of them."""
QUICK = {"ising_curves": ["neurise", "ggm", "sedd", "d3pm", "dfm"]}
"""Methods with which such a run takes a moment, for `make test` to see something of it: all but the committee."""
SMALLEST = [pytest.param(name, [], id=name, marks=pytest.mark.slow if name in SECONDS else ()) for name in NAMES]
SMALLEST += [pytest.param(name, methods, id=f"{name}-quick") for name, methods in QUICK.items()]


def test_all_of_the_paper_is_there() -> None:
    wanted = {"ising_curves", "mnist", "dwave", "potts", "ghz", "noise_levels", "local_global", "theory"}
    wanted |= {"sedd_scores", "site_input"}
    assert wanted <= set(NAMES)
    assert not {"grid", "store", "base"} & set(NAMES)


def test_an_unknown_experiment_is_refused_with_near_names() -> None:
    with pytest.raises(ValueError, match="unknown experiment 'ising_curve'; did you mean ising_curves"):
        experiments.find("ising_curve")
    with pytest.raises(ValueError, match="unknown experiment 'grid'"):
        experiments.find("grid")


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_says_what_it_is(name: str) -> None:
    one = experiments.find(name)
    assert one.name == name
    assert one.title
    assert one.reproduces
    assert tuple(one.scales) == SCALES
    assert one.tables
    for scale in ("smoke", "laptop"):
        assert one.reduced(scale)
    sizes = [sum(len(unit.cells) for unit in grid.plan(one, scale)) for scale in SCALES]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_plain_and_differ(name: str) -> None:
    one = experiments.find(name)
    for scale in SCALES:
        cells = [cell for unit in grid.plan(one, scale, grouped=False) for cell in unit.cells]
        assert len({cell.key for cell in cells}) == len(cells)
        for cell in cells[:50]:
            assert all(isinstance(value, str | int | float | bool | None) for value in cell.parameters.values())


@pytest.mark.parametrize(("name", "methods"), SMALLEST)
def test_the_smallest_scale_runs_and_holds_every_declared_field(name: str, methods: list[str], tmp_path: Path) -> None:
    if name in FILES:
        real_file(FILES[name])
    one = experiments.find(name)
    summary = grid.run(one, "smoke", tmp_path / "r.jsonl", executor="serial", methods=methods)
    assert (summary.done, summary.failed) == (summary.cells, 0), [row["error"] for row in summary.rows]
    for row in summary.rows:
        assert all(value is None or math.isfinite(value) for value in row["metrics"].values())
        assert not set(row["metrics"]) & set(row["parameters"])
    _check_figures(one, summary.rows)
    for table in one.tables:
        for block in blocks(one, table, summary.rows):
            assert block.labels
            assert any(found.mean is not None for line in block.entries for found in line)
        assert table.published is None or table.published in experiments.PUBLISHED
    for grid_of_samples in one.grids:
        pictures = store.unpack(summary.rows[0]["arrays"][grid_of_samples.array])
        assert pictures.ndim == 4


def _check_figures(one: Experiment, rows: list[store.Row]) -> None:
    for figure in one.figures:
        own = [row for row in rows if all(store.value(row, k) == v for k, v in figure.where.items())]
        assert own
        for field in (figure.x, *figure.y, *figure.floors):
            assert any(isinstance(store.value(row, field.name), int | float) for row in own), field
        for part in (figure.series, figure.panel):
            assert part is None or all(store.value(row, part) is not None for row in own)


def test_a_cell_is_a_pure_function_of_its_parameters_and_seed() -> None:
    one = experiments.find("ising_curves")
    unit = grid.plan(one, "smoke", methods=["neurise"])[0]
    (cell,) = unit.cells
    first, second = (one.run(cell, "cpu").metrics for _ in range(2))
    assert first == second
    other = one.run(Cell(cell.experiment, cell.scale, cell.parameters, 1), "cpu").metrics
    assert other["tv"] != first["tv"]


def test_methods_share_their_rows_and_trials_and_instances_do_not() -> None:
    one = experiments.find("ising_curves")
    cells = [unit.cells[0] for unit in grid.plan(one, "smoke", methods=["neurise", "dfm"])[:2]]
    assert isinstance(one, LawExperiment)
    (_, first, _), (_, second, _) = (one._prepared(cell) for cell in cells)
    np.testing.assert_array_equal(first, second)
    base = cells[0]
    for other in (
        Cell(base.experiment, base.scale, base.parameters, 1),
        Cell(base.experiment, base.scale, {**base.parameters, "instance": 1}, 0),
    ):
        assert (one._prepared(other)[1] != first).any()


def test_a_group_trains_the_models_that_its_cells_name() -> None:
    one = experiments.find("ising_curves")
    units = grid.plan(one, "paper", methods=["neurise", "memorize"])
    sizes = {unit.cells[0].parameters["method"]: len(unit.cells) for unit in units}
    assert sizes == {"neurise": 50, "memorize": 1}  # five instances, ten trials; what trains nothing stays alone
    first = grid.plan(one, "smoke", methods=["neurise"])[0].cells[0]
    small = [Cell(first.experiment, "smoke", {**first.parameters, "instance": k}, 2 - k) for k in range(2)]
    outcomes = one.run_group(small, "cpu")
    alone = [one.run(cell, "cpu") for cell in small]
    for together, single in zip(outcomes, alone, strict=True):
        for exact in ("tv_floor", "memorised_tv", "correlation_floor", "parameters"):
            assert together.metrics[exact] == single.metrics[exact]  # what depends on the data alone
        assert together.times["train_seconds"] > 0


def test_methods_have_equally_many_parameters() -> None:
    from neurise.comparison import count_parameters
    from neurise.experiments._laws import spin_glass
    from neurise.experiments._method_table import COMPARED

    data = spin_glass(5, 0)
    given = {"width": 128, "depth": 2, "batch_size": 64}
    target = count_parameters(
        NeurISE(width=128, depth=2, members=1, architecture=Architecture(pairwise=False)), data.space
    )
    assert parameters_of(128, 2, data.space) == target
    for method in (*COMPARED, "neurise_committee", "neurise_paper"):
        model = build({**given, "method": method}, data)
        assert abs(count_parameters(model, data.space) / target - 1) < 0.1
        assert model.training.batch_size == 64
    assert build({**given, "method": "d3pm_published"}, data).posterior == "published"


def test_a_shipped_configuration_is_a_method() -> None:
    found = presets.load("ising_4x4")
    experiment = experiments.find("ising_curves")
    (unit,) = grid.plan(experiment, "smoke", methods=["preset:ising_4x4"], only={"rows": ["100"]})
    cell = unit.cells[0]
    data = experiment.law(cell.parameters)  # type: ignore[attr-defined]
    model = build(cell.parameters, data)
    assert type(model).__name__ == "NeurISE"
    wanted = {name: value for name, value in found.params.items() if name != "steps"}
    assert {name: model.get_params()[name] for name in wanted} == wanted
    assert experiment.label("preset:ising_4x4") == "preset ising_4x4"
    assert experiment.run(cell, "cpu").metrics["tv"] is not None


def test_published_tables_are_those_of_the_paper() -> None:
    assert experiments.PUBLISHED["mnist"].rows["neurise"] == (1.0e-2, 1.5e-6)
    assert experiments.PUBLISHED["dwave"].rows["ggm"] == (96.4, 6.56e-5)
    assert all(len(table.rows) == 5 for table in experiments.PUBLISHED.values())
    for table in experiments.PUBLISHED.values():
        assert all(len(values) == len(table.columns) for values in table.rows.values())


def test_tables_average_over_seeds_and_leave_out_what_is_missing() -> None:
    rows = [
        {
            "status": "done",
            "metrics": {"tv": value, "floor": 1.0},
            "times": {},
            "parameters": {"method": "a"},
            "seed": k,
        }
        for k, value in enumerate([1.0, 3.0, None])
    ]
    found = entry(rows, "tv", "floor")
    assert found.mean == 2.0
    assert found.spread == pytest.approx(math.sqrt(2))  # of two values that differ by two
    assert found.floor == 1.0
    assert entry(rows, "absent") == (None, None, None, 0, None, {})


def test_missing_data_fail_their_cells_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neurise.experiments import dwave

    monkeypatch.setenv("NEURISE_DATA", str(tmp_path / "nowhere"))
    dwave._reads.cache_clear()
    summary = grid.run(experiments.find("dwave"), "smoke", tmp_path / "r.jsonl", executor="serial", methods=["neurise"])
    assert (summary.done, summary.failed) == (0, 1)
    assert "NEURISE_DATA" in summary.rows[0]["error"]
