"""The figure of ``neurise theory``: mixing, bounds, starts and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from neurise.cli._theory_tables import Study, mean
from neurise.files import write_atomically
from neurise.noise.round_robin import RoundRobin
from neurise.theory.bounds import Terms
from neurise.theory.curves import delta_ceiling
from neurise.theory.kernels import Comparison
from neurise.theory.learning import UNIFORM, Learnt

COLOURS = ("#30475e", "#f2a154", "#4f9d69", "#b5446e", "#7a6fb0", "#111111")
PALETTE = 160
SMALLEST, ZERO = 1e-4, 1e-12
"""The end of the logarithmic axis of δ, and what stands for zero far below it."""


def draw(path: Path, study: Study) -> None:
    """Draw the four panels."""
    noise = study.noise
    figure = Figure(figsize=(11, 8), layout="constrained", dpi=90)
    figure.suptitle(f"{study.data}, learnt with ε = {noise.keep_prob:g} and T = {noise.num_steps} steps", fontsize=12)
    panels = figure.subplots(2, 2)
    _mixing(panels[0, 0], noise, study.deltas)
    _bounds(panels[0, 1], study)
    _starts(panels[1, 0], study)
    _kernels(panels[1, 1], study.kernels)
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
    write_atomically(path, lambda place: _save(figure, place))


def _save(figure: Figure, path: Path) -> None:
    """Write the figure; a picture in so few colours needs no more of them than a palette holds."""
    figure.savefig(path)
    if path.suffix.lower() == ".png":
        from PIL import Image

        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(PALETTE)
        small.save(path, optimize=True)


def _mixing(panel: Any, noise: RoundRobin, deltas: Mapping[float, Sequence[float]]) -> None:
    sites = noise.space.sites
    for colour, (strength, curve) in zip(_colours(len(deltas)), deltas.items(), strict=True):
        panel.plot(_visible(curve), color=colour, label=f"ε = {strength:g}")
        if strength == noise.keep_prob:
            ceiling = delta_ceiling(noise.space, strength, (len(curve) - 1) // sites).tolist()
            panel.plot(_visible(ceiling), color=colour, linestyle=":", label=f"ε = {strength:g}, any data")
    panel.set_yscale("log")
    panel.set_ylim(SMALLEST, 1.3)
    panel.set_xticks(range(0, max(map(len, deltas.values())), sites))
    panel.set_xlabel("steps of noise $t$")
    panel.set_ylabel(r"$\delta_t$ = TV($\mu_t$, uniform)")
    panel.set_title("How fast the noise forgets the data", fontsize=11)
    panel.legend(frameon=False, fontsize=8)


def _bounds(panel: Any, study: Study) -> None:
    lines: dict[str, Callable[[Learnt], float]] = {
        r"the paper's bound $\delta_T + T\eta$": lambda model: model.starts[UNIFORM].paper.bound,
        r"$\delta_T + \sum_t \max\,\eta_t$": lambda model: _loose(model.starts[UNIFORM]),
        r"$\delta_T + \sum_t \mathrm{mean}\,\eta_t$": lambda model: model.starts[UNIFORM].sharp,
        "TV of the model": lambda model: model.starts[UNIFORM].paper.tv,
        "TV of the rows": lambda model: model.memorised,
        r"$\eta$": lambda model: model.starts[UNIFORM].paper.eta,
    }
    for colour, (label, value) in zip(COLOURS, lines.items(), strict=True):
        style = "--" if label in ("TV of the rows", r"$\eta$") else "-"
        _with_range(panel, study, value, color=colour, linestyle=style, label=label)
    panel.axhline(1, color="#cccccc", linewidth=0.8, zorder=0)
    panel.set_yscale("log")
    panel.set_ylim(bottom=panel.get_ylim()[0] / 30)  # room for the legend
    panel.set_title("Bounds and truth: a bound above 1 says nothing", fontsize=11)
    panel.legend(frameon=False, fontsize=8, ncols=2, loc="lower left")


def _loose(terms: Terms) -> float:
    return terms.mismatch + terms.sum_largest


def _starts(panel: Any, study: Study) -> None:
    for colour, start in zip(COLOURS, study.learnt[0].starts, strict=False):

        def distance(model: Learnt, start: str = start) -> float:
            return model.starts[start].paper.tv

        def mismatch(model: Learnt, start: str = start) -> float:
            return model.starts[start].mismatch

        _with_range(panel, study, distance, color=colour, label=f"{start}: TV of the model")
        _with_range(panel, study, mismatch, color=colour, linestyle=":")
    panel.plot([], [], ":", color="black", marker="o", markersize=3, label=r"dotted: TV(start, $\mu_T$)")
    panel.set_yscale("log")
    panel.set_ylim(bottom=panel.get_ylim()[0] / 10)
    panel.set_ylabel("total variation")
    panel.set_title("Where the reverse chain starts", fontsize=11)
    panel.legend(frameon=False, fontsize=8, loc="lower left")


def _kernels(panel: Any, kernels: Sequence[Comparison]) -> None:
    places = list(range(len(kernels)))[::-1]
    at_site = [kernel.hamming - kernel.elsewhere for kernel in kernels]
    elsewhere = [kernel.elsewhere for kernel in kernels]
    panel.barh(places, at_site, 0.5, color=COLOURS[0], label="the site of the step")
    panel.barh(places, elsewhere, 0.5, left=at_site, color=COLOURS[1], label="other sites")
    widest = max(kernel.hamming for kernel in kernels)
    for place, kernel in zip(places, kernels, strict=True):
        facts = f"{kernel.reach:,} states in reach, TV from uniform {kernel.from_uniform:.4f}"
        panel.text(0.01 * widest, place + 0.27, facts, fontsize=8, va="bottom")
    panel.set_yticks(places, [kernel.name for kernel in kernels], fontsize=8)
    panel.set_ylim(-0.6, len(kernels) - 0.2)
    panel.set_xlabel("sites that a step changes, expected")
    panel.set_title("Kernels with the same marginals", fontsize=11)
    panel.legend(frameon=False, fontsize=8, loc="center right")


def _with_range(panel: Any, study: Study, value: Callable[[Learnt], float], **style: Any) -> None:
    """Draw the mean over seeds, with the smallest and the largest value as a bar."""
    groups = [[value(model) for model in models] for models in study.by_size.values()]
    means = [mean(group) for group in groups]
    below = [middle - min(group) for middle, group in zip(means, groups, strict=True)]
    above = [max(group) - middle for middle, group in zip(means, groups, strict=True)]
    panel.errorbar(list(study.by_size), means, yerr=[below, above], marker="o", markersize=3, capsize=2, **style)
    panel.set_xscale("log")
    panel.set_xlabel("rows learnt from")


def _visible(curve: Sequence[float]) -> list[float]:
    return [max(value, ZERO) for value in curve]


def _colours(number: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(number)]
