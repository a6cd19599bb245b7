"""The figures of ``benchmarks/surface.py``, and what its files say when methods are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from neurise import drawing
from neurise.files import write_text

LABELS = {
    "neurise": "NeurISE()",
    "networks": "NeurISE, networks only",
    "ggm": "GGM",
    "sedd": "SEDD",
    "d3pm": "D3PM",
    "dfm": "DFM",
    "md4": "MD4",
    "udlm": "UDLM",
    "ddpd": "DDPD",
    "pairwise": "Pairwise",
    "memorize": "memorising",
}
STYLES = {"neurise": (drawing.COLOURS[0], "-"), "pairwise": ("#555555", "-."), "memorize": ("#555555", ":")}
MARKERS = ("o", "s")
PANEL = 3.3
"""Inches of a panel."""
FEWEST = 3
"""Instances below which nothing is compared."""


def write(path: Path, docs: Path) -> None:
    """Draw the figure of a file of measurements, and add what its methods reach, compared, to the file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    figure = docs / "figures" / f"{path.stem}.png"
    figure.parent.mkdir(parents=True, exist_ok=True)
    draw(found, figure)
    found["compared"] = compared(found)
    write_text(path, json.dumps(found, indent=1))


def compared(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare methods at their largest budget: over memorising (ratio of means), and over NeurISE, paired over instances.

    The second is a geometric mean, and ``factor`` one standard error of it, × or ÷. Nothing is said of fewer than three
    instances.
    """
    instances, rows = instances_of(found), []
    if len(instances) < FEWEST:
        return []
    for size in sorted({point["rows"] for point in found["points"]}):
        memorised = means(found, "memorize", size)[1][:, -1]
        own = means(found, "neurise", size)[1][:, -1]
        for method in filter(lambda name: measured(found, name), LABELS):
            reached = means(found, method, size)[1][:, -1]
            ratio = np.log(reached / own)
            row = {"method": method, "size": size, "instances": len(instances)}
            row["over_memorising"] = float(reached.sum() / memorised.sum())
            row["over_neurise"] = float(np.exp(ratio.mean()))
            rows.append(row | {"factor": float(np.exp(ratio.std(ddof=1) / len(ratio) ** 0.5))})
        for name in ("dense", "sparse"):
            over = limit_at(found, name, size) / float(memorised.mean())
            rows.append({"method": name, "size": size, "instances": len(instances), "over_memorising": over})
    return rows


def means(found: dict[str, Any], method: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples, (budgets,), and distances, (instances, budgets), of a method."""
    here = [point for point in found["points"] if point["method"] == method and point["rows"] == rows]
    if not here:
        return np.array([]), np.empty((0, 0))
    lines = [[point for point in here if point["instance"] == one] for one in instances_of(found)]
    return np.array([point["examples"] for point in lines[0]]), np.array(
        [[point["tv"] for point in line] for line in lines]
    )


def measured(found: dict[str, Any], method: str) -> bool:
    """Whether a file has anything of a method."""
    return any(point["method"] == method for point in found["points"])


def instances_of(found: dict[str, Any]) -> list[int]:
    """List the instances of which every method has been measured at every size: what is compared must be paired."""
    cells = {(point["method"], point["rows"], point["instance"]) for point in found["points"]}
    kinds = {cell[:2] for cell in cells}
    complete = [one for one in sorted({cell[2] for cell in cells}) if all((*kind, one) in cells for kind in kinds)]
    if not complete:
        raise ValueError(
            "there is no instance yet of which every method was measured at every size: measure more first"
        )
    return complete


def limit_at(found: dict[str, Any], name: str, rows: int) -> float:
    """Mean limit over the instances."""
    return float(np.mean([min(1.0, limit[name]["rate"] / rows**0.5) for limit in found["limits"].values()]))


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw a panel for every number of rows: distance against examples."""
    sizes = sorted({point["rows"] for point in found["points"]})
    figure = drawing.new_figure(PANEL * len(sizes) + 1.9, PANEL + 0.5)
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for panel, rows in zip(panels, sizes, strict=True):
        for number, method in enumerate(LABELS):
            examples, table = means(found, method, rows)
            if not len(examples):
                continue
            centre, error = table.mean(0), table.std(0, ddof=1) / len(table) ** 0.5 if len(table) > 1 else None
            if len(examples) == 1 and not examples[0]:
                colour, line = STYLES[method]
                panel.axhline(centre[0], color=colour, linestyle=line, linewidth=1.1, label=LABELS[method])
            else:
                colour = drawing.COLOURS[number % len(drawing.COLOURS)]
                marker = MARKERS[number // len(drawing.COLOURS)]
                style = {"marker": marker, "markersize": 3.5, "capsize": 2, "linewidth": 1.4}
                panel.errorbar(examples, centre, error, color=colour, label=LABELS[method], **style)
        for name, shade, words in (("dense", "#999999", "limit, all pairs"), ("sparse", "black", "limit, true graph")):
            panel.axhline(limit_at(found, name, rows), color=shade, linestyle="--", linewidth=1.0, label=words)
        panel.set(xscale="log", yscale="log", xlabel="examples seen")
        _few_ticks(panel, [steps * found["scale"]["batch"] for steps in found["scale"]["steps"]])
        drawing.title(panel, f"{rows:,} rows")
    panels[0].set_ylabel("total variation")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", **drawing.LEGEND)
    drawing.save(figure, path)


def _few_ticks(panel: Any, budgets: list[int]) -> None:
    """Mark the budgets, and 1, 2 and 5 in every decade of distances."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.set_xticks(budgets, [f"{budget / 1000:,.0f}k" if budget >= 1000 else str(budget) for budget in budgets])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())
