"""The figure of ``neurise theory``: mixing, bounds, starts and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neurise import drawing
from neurise.cli._theory_tables import Study, mean
from neurise.noise.round_robin import RoundRobin
from neurise.theory.bounds import Terms
from neurise.theory.curves import delta_ceiling
from neurise.theory.kernels import Comparison
from neurise.theory.learning import UNIFORM, Learnt

LOOKS = tuple(
    zip(drawing.COLOURS, ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), ":", (0, (8, 2)), "-"), "os^Dv<>", strict=True)
)
"""Colour, dash and marker of each line: any one of the three tells lines apart."""
SMALLEST, ZERO = 1e-4, 1e-12
"""The end of the logarithmic axis of δ, and what stands for zero far below it."""


def draw(path: Path, study: Study) -> None:
    """Draw the four panels."""
    noise = study.noise
    figure = drawing.new_figure(11, 9)
    figure.suptitle(f"{study.data}, learnt with ε = {noise.keep_prob:g} and T = {noise.num_steps} steps", fontsize=12)
    panels = figure.subplots(2, 2)
    _mixing(panels[0, 0], noise, study.deltas)
    _bounds(panels[0, 1], study)
    _starts(panels[1, 0], study)
    _kernels(panels[1, 1], study.kernels)
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
    drawing.save(figure, path)


def _mixing(panel: Any, noise: RoundRobin, deltas: Mapping[float, Sequence[float]]) -> None:
    sites = noise.space.sites
    for number, (strength, curve) in enumerate(deltas.items()):
        colour, dash, _ = LOOKS[number % len(LOOKS)]
        panel.plot(_visible(curve), color=colour, linestyle=dash, label=f"ε = {strength:g}")
        if strength == noise.keep_prob:
            ceiling = delta_ceiling(noise.space, strength, (len(curve) - 1) // sites).tolist()
            panel.plot(_visible(ceiling), color="black", linestyle=":", label=f"ε = {strength:g}, any data")
    panel.set_yscale("log")
    panel.set_ylim(SMALLEST, 1.3)
    cycles = max(map(len, deltas.values())) // sites  # a tick for every cycle, or for every second one, …
    panel.set_xticks(range(0, sites * cycles + 1, sites * max(1, -(-cycles // drawing.MOST_TICKS))))
    panel.set_xlabel("steps of noise $t$")
    panel.set_ylabel(r"$\delta_t$ = TV($\mu_t$, uniform)")
    drawing.title(panel, "How fast the noise forgets the data")
    _legend_below(panel)


def _bounds(panel: Any, study: Study) -> None:
    lines: dict[str, Callable[[Learnt], float]] = {
        r"the paper's bound $\delta_T + T\eta$": lambda model: model.starts[UNIFORM].paper.bound,
        r"$\delta_T + \sum_t \max\,\eta_t$": lambda model: _loose(model.starts[UNIFORM]),
        r"$\delta_T + \sum_t \mathrm{mean}\,\eta_t$": lambda model: model.starts[UNIFORM].sharp,
        "TV of the model": lambda model: model.starts[UNIFORM].paper.tv,
        "TV of the rows": lambda model: model.memorised,
        r"$\eta$": lambda model: model.starts[UNIFORM].paper.eta,
    }
    for look, (label, value) in zip(LOOKS, lines.items(), strict=False):
        _with_range(panel, study, value, look, label=label)
    panel.axhline(1, color="#cccccc", linewidth=0.8, zorder=0)
    panel.set_yscale("log")
    drawing.title(panel, "Bounds and truth: a bound above 1 says nothing")
    _legend_below(panel)


def _loose(terms: Terms) -> float:
    return terms.mismatch + terms.sum_largest


def _starts(panel: Any, study: Study) -> None:
    for (colour, _, marker), start in zip(LOOKS, study.learnt[0].starts, strict=False):

        def distance(model: Learnt, start: str = start) -> float:
            return model.starts[start].paper.tv

        def mismatch(model: Learnt, start: str = start) -> float:
            return model.starts[start].mismatch

        _with_range(panel, study, distance, (colour, "-", marker), label=f"{start}: TV of the model")
        _with_range(panel, study, mismatch, (colour, ":", marker))
    panel.plot([], [], ":", color="black", label=r"dotted: TV(start, $\mu_T$)")
    panel.set_yscale("log")
    panel.set_ylabel("total variation")
    drawing.title(panel, "Where the reverse chain starts")
    _legend_below(panel)


def _kernels(panel: Any, kernels: Sequence[Comparison]) -> None:
    places = list(range(len(kernels)))[::-1]
    at_site = [kernel.hamming - kernel.elsewhere for kernel in kernels]
    elsewhere = [kernel.elsewhere for kernel in kernels]
    panel.barh(places, at_site, 0.5, color=drawing.COLOURS[0], label="the site of the step")
    panel.barh(
        places,
        elsewhere,
        0.5,
        left=at_site,
        color=drawing.COLOURS[1],
        hatch="///",
        edgecolor="white",
        label="other sites",
    )
    widest = max(kernel.hamming for kernel in kernels)
    for place, kernel in zip(places, kernels, strict=True):
        facts = f"{kernel.reach:,} states in reach, TV from uniform {kernel.from_uniform:.4f}"
        panel.text(0.01 * widest, place + 0.27, facts, fontsize=8, va="bottom")
    panel.set_yticks(places, [kernel.name for kernel in kernels], fontsize=8)
    panel.set_ylim(-0.6, len(kernels) - 0.2)
    panel.set_xlabel("sites that a step changes, expected")
    drawing.title(panel, "Kernels with the same marginals")
    _legend_below(panel)


def _with_range(
    panel: Any, study: Study, value: Callable[[Learnt], float], look: tuple[Any, Any, str], **style: Any
) -> None:
    """Draw the mean over seeds, with the smallest and the largest value as a bar."""
    groups = [[value(model) for model in models] for models in study.by_size.values()]
    means = [mean(group) for group in groups]
    below = [middle - min(group) for middle, group in zip(means, groups, strict=True)]
    above = [max(group) - middle for middle, group in zip(means, groups, strict=True)]
    colour, dash, marker = look
    style |= {"color": colour, "linestyle": dash, "marker": marker, "markersize": 4, "capsize": 2}
    panel.errorbar(list(study.by_size), means, yerr=[below, above], **style)
    panel.set_xscale("log")
    panel.set_xlabel("rows learnt from")
    sizes = list(study.by_size)
    shown = sizes[:: max(1, -(-len(sizes) // drawing.MOST_TICKS))]
    panel.set_xticks(shown, [f"{size:,}" for size in shown])
    panel.set_xticks([], minor=True)


def _legend_below(panel: Any) -> None:
    """Put the legend where no line is."""
    panel.legend(**drawing.LEGEND, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _visible(curve: Sequence[float]) -> list[float]:
    return [max(value, ZERO) for value in curve]
