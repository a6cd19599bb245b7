"""The map of errors over rows and compute: cells of a small scale, resuming, and the page."""

import json
import sys
from pathlib import Path
from typing import Any

import figure_checks
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from surface import METHODS, SCALES, WITHOUT_BUDGET, main  # noqa: E402
from surface_page import LABELS, compared, instances_of, means  # noqa: E402


def measured(methods: list[str], instances: list[int]) -> dict[str, Any]:
    """Distances that are known: 0.1 · (instance + 1) · (place of the method + 1), halved by the second budget."""
    found: dict[str, Any] = {"scale": SCALES["smoke"], "limits": {}, "points": []}
    found["runs"] = [{"command": "measure", "machine": {"device_name": "some processor"}}]
    for instance in instances:
        found["limits"][str(instance)] = {name: {"parameters": 3, "rate": 0.5} for name in ("dense", "sparse")}
        for place, method in enumerate(methods):
            cell = {
                "method": method,
                "rows": 100,
                "instance": instance,
                "floor": 0.01,
                "by": "draws" if method == "dfm" else "law",
            }
            tv = 0.1 * (instance + 1) * (place + 1)
            budgets = [(0, tv)] if method in WITHOUT_BUDGET else [(128, tv), (256, tv / 2)]
            found["points"] += [{**cell, "examples": examples, "tv": value} for examples, value in budgets]
    return found


@pytest.mark.slow
def test_cells_are_measured_once_and_the_file_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "surface.json"
    words = ["measure", "--scale", "smoke", "--json", str(path), "--methods"]
    main([*words, "networks", "memorize"])
    first = json.loads(path.read_text(encoding="utf-8"))
    assert [point["examples"] for point in first["points"]] == [10 * 32, 20 * 32, 0]
    assert all(point["by"] == "law" and 0 < point["tv"] < 1 for point in first["points"])
    assert first["limits"]["0"]["sparse"]["parameters"] == 8
    main([*words, "memorize", "dfm"])
    second = json.loads(path.read_text(encoding="utf-8"))
    assert second["points"][:3] == first["points"]
    assert [point["method"] for point in second["points"][3:]] == ["dfm", "dfm"]
    assert len(second["runs"]) == 2
    with pytest.raises(SystemExit, match="other settings"):
        main([*words, "memorize", "--draws", "7"])


def test_methods_are_compared_over_three_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps(measured(list(METHODS), [0, 1, 2])), encoding="utf-8")
    words = ["page", str(path), "--docs", str(tmp_path)]
    figure_checks.check(figure_checks.drawn_figure(monkeypatch, lambda: main(words)))
    assert (tmp_path / "figures" / "map.png").read_bytes()[:4] == b"\x89PNG"
    found = json.loads(path.read_text(encoding="utf-8"))["compared"]
    (ggm,) = (row for row in found if row["method"] == "ggm")
    assert ggm["instances"] == 3
    assert ggm["over_memorising"] == pytest.approx(0.15 / 1.1)
    assert ggm["over_neurise"] == pytest.approx(0.15 / 0.1)  # at every instance
    assert ggm["factor"] == pytest.approx(1.0)
    (limit,) = (row for row in found if row["method"] == "sparse")
    assert limit["over_memorising"] == pytest.approx(0.05 / 2.2)
    assert list(LABELS) == list(METHODS)


def test_two_instances_are_not_compared() -> None:
    assert compared(measured(["neurise", "memorize"], [0, 1])) == []


def test_only_complete_instances_are_compared() -> None:
    found = measured(["neurise", "memorize"], [0, 1])
    found["points"] = [point for point in found["points"] if (point["method"], point["instance"]) != ("memorize", 1)]
    assert instances_of(found) == [0]
    np.testing.assert_allclose(means(found, "neurise", 100)[1], [[0.1]])
    with pytest.raises(ValueError, match="no instance yet"):
        instances_of({"points": []})
