"""The page and the figures of ``benchmarks/surface.py``."""

from __future__ import annotations

import json
import textwrap
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
PEERS = ("ggm", "sedd", "d3pm", "dfm", "md4", "udlm", "ddpd")
PANEL = 3.3
"""Inches of a panel."""
INTRODUCTION = """# Which error is due to the rows, and which to the training

Total variation on Edwards–Anderson instances of the paper as a surface over rows and compute: every method learns from the
same rows of the same instances, and is looked at after more and more examples. Where a line is level, more training does
not help: what is left is due to the rows, or to the method. The dashed lines are what maximum likelihood reaches on
average from N rows if it knows that the law is pairwise (*all pairs*), and if it knows the graph, too (*true graph*):

> TV ≈ ½ √(2/π) E_x √(s(x)ᵀ F⁻¹ s(x) / N) ≤ 0.4 √(d/N)

with the score s, the Fisher information F and d parameters. They are computed exactly, for each instance
(`neurise.theory.likelihood_limit`), as the leading term for many rows: at 100 rows they are no more than an indication.

```python
from neurise import datasets, theory

data = datasets.edwards_anderson(side=3, seed=0)
limit = theory.likelihood_limit(data.pmf, theory.pairs_family(9, data.edges))
limit.parameters, limit.tv(1000), limit.ceiling(1000)            # 27 parameters; the limit; 0.4 √(d/N)
```

| limit over memorising, 5×5, instances 0–4 | 10² | 10³ | 10⁴ | 10⁵ |
|---|---|---|---|---|
| all pairs, 325 parameters | 1.08 | .58 | .45 | .33 |
| true graph, 75 parameters | .66 | .35 | .27 | .20 |

(`python benchmarks/surface.py limits --side 5 --instances 0 1 2 3 4`, over the rows that [quality](quality.md) is measured on.)
"""


def write_page(files: list[Path], docs: Path) -> None:
    """Write docs/evidence/surface.md, and a figure for every file of measurements."""
    parts = [INTRODUCTION]
    for path in files:
        found = json.loads(path.read_text(encoding="utf-8"))
        figure = docs / "figures" / f"{path.stem}.png"
        figure.parent.mkdir(parents=True, exist_ok=True)
        draw(found, figure)
        parts.append(section(found, path, figure))
    page = docs / "evidence" / "surface.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, "\n".join(parts))


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


def told(found: dict[str, Any]) -> str:
    """Say how the distances were taken."""
    by: dict[str, set[str]] = {"law": set(), "likelihoods": set(), "draws": set()}
    for point in found["points"]:
        by[point["by"]].add(LABELS[point["method"]])
    words = {
        "law": "of the whole law",
        "likelihoods": "by the likelihoods of a million fresh rows",
        "draws": f"of {found['scale']['draws']:,} draws",
    }
    parts = [f"{words[kind]} for {', '.join(sorted(names))}" for kind, names in by.items() if names]
    floors = [point["floor"] for point in found["points"] if point["by"] == "draws"]
    floor = f" As many exact rows show {np.mean(floors):.3f}." if floors else ""
    return f"Distances are those {'; '.join(parts)}.{floor}"


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


def section(found: dict[str, Any], path: Path, figure: Path) -> str:
    """Write the tables of one file."""
    scale, instances = found["scale"], instances_of(found)
    sizes = sorted({point["rows"] for point in found["points"]})
    side, last = scale["side"], scale["steps"][-1] * scale["batch"]
    how = told(found)
    where = found["runs"][-1]["machine"]
    header = "| rows | " + " | ".join(f"{rows:,}" for rows in sizes) + " |"
    lines = [
        f"## {side}×{side}, {where['device_name']}",
        "",
        f"![Total variation against examples](../figures/{figure.name})",
        "",
        *textwrap.wrap(
            f"*Instances {', '.join(map(str, instances))}; bars are standard errors over them. Batches of {scale['batch']:,}, "
            f"width {scale['width']} (NeurISE: its own), {scale['chain']} steps of the chains that move several sites at once. "
            f"`{found['runs'][0]['command']}`*",
            100,
            break_on_hyphens=False,
        ),
        "",
        *textwrap.wrap(
            f"{how} At the largest budget, {last:,} examples, over the distance of memorising (ratio of means):", 100
        ),
        "",
        header,
        "|---|" + "---|" * len(sizes),
    ]
    memorised = {rows: means(found, "memorize", rows)[1][:, -1] for rows in sizes}
    own = {rows: means(found, "neurise", rows)[1][:, -1] for rows in sizes}
    for method, label in LABELS.items():
        if not measured(found, method):
            continue
        cells = [means(found, method, rows)[1][:, -1] for rows in sizes]
        ratios = [f"{cell.sum() / memorised[rows].sum():.2f}" for cell, rows in zip(cells, sizes, strict=True)]
        lines.append(f"| {label} | " + " | ".join(ratios) + " |")
    for name, label in (("dense", "limit, all pairs"), ("sparse", "limit, true graph")):
        cells = [limit_at(found, name, rows) / memorised[rows].mean() for rows in sizes]
        lines.append(f"| *{label}* | " + " | ".join(f"*{cell:.2f}*" for cell in cells) + " |")
    best = []
    for rows in sizes:
        every = {method: means(found, method, rows)[1][:, -1].mean() for method in PEERS if measured(found, method)}
        winner = min(every, key=lambda method: every[method])
        best.append(f"{every[winner] / own[rows].mean():.2f} ({LABELS[winner]})")
    lines += ["| *best peer over NeurISE()* | " + " | ".join(best) + " |"]
    lines += [
        "",
        "Error over that of NeurISE, paired: geometric mean over the instances, × or ÷ one standard error:",
        "",
    ]
    lines += [header, "|---|" + "---|" * len(sizes)]
    for method, label in LABELS.items():
        if method == "neurise" or not measured(found, method):
            continue
        cells = []
        for rows in sizes:
            ratio = np.log(means(found, method, rows)[1][:, -1] / own[rows])
            spread = f" (× {np.exp(ratio.std(ddof=1) / len(ratio) ** 0.5):.2f})" if len(ratio) > 1 else ""
            cells.append(f"{np.exp(ratio.mean()):.2f}{spread}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])
