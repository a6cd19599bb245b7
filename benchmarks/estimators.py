"""Which loss makes the most of N rows? The tables and figures of docs/evidence/estimators.md, exact wherever they can be.

    python benchmarks/estimators.py                      # everything: three minutes on one core
    python benchmarks/estimators.py --part efficiency    # or scan, noise, misspecified, finite
    python benchmarks/estimators.py --json benchmarks/measured/estimators.json

Tables go to the terminal, figures to docs/figures (--figures elsewhere). ``gamma 0`` is screening, ``gamma 1`` cross-entropy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from neurise import losses
from neurise.experiments._code import machine, script_version
from neurise.files import write_atomically, write_text
from neurise.space import Space
from neurise.theory import estimators
from neurise.theory.estimators import ConditionalFamily

COLOURS = ("#30475e", "#f2a154", "#4f9d69", "#b5446e", "#7a6fb0", "#111111")
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
BETAS = (0.2, 0.5, 1.0, 1.5)
SMOOTHING = (0.3, 1.0, 3.0, 10.0, 30.0)
WEAK = 1.0

Row = dict[str, Any]


def autoregressive(sites: int, states: int) -> tuple[str, ConditionalFamily]:
    return f"autoregressive, {sites} sites, p = {states}", estimators.autoregressive(Space(sites, states))


def all_pairs(sites: int, states: int) -> tuple[str, ConditionalFamily]:
    edges = list(combinations(range(sites), 2))
    return f"all conditionals, {sites} sites, p = {states}", estimators.pseudolikelihood(Space(sites, states), edges)


def tempered(gamma: float) -> losses.Loss:
    return losses.tempered_screening(gamma)


def under(values: Sequence[float], gammas: Sequence[float] = GAMMAS, what: str = "") -> Row:
    """Name a value for every γ."""
    return {f"gamma {gamma:g}{what}": float(value) for gamma, value in zip(gammas, values, strict=True)}


def show(rows: Sequence[Row]) -> None:
    """Print rows that have the same fields as one table."""
    for fields in dict.fromkeys(tuple(row) for row in rows):
        print("\n| " + " | ".join(fields) + " |\n|" + "---|" * len(fields))
        for row in rows:
            if tuple(row) == fields:
                cells = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
                print("| " + " | ".join(cells) + " |", flush=True)


def save(figure: Figure, path: Path) -> None:
    for panel in figure.axes:
        panel.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda place: figure.savefig(place, format="png"))
    print(f"\nwritten: {path}")


def efficiency(folder: Path) -> list[Row]:
    """Efficiency against Cramér–Rao, for weights, references, temperatures and numbers of states."""
    families = [autoregressive(5, 2), autoregressive(3, 3), autoregressive(3, 5), all_pairs(5, 2), all_pairs(4, 3)]
    kinds: list[tuple[str, Callable[[float], losses.Loss], Sequence[float]]] = [
        ("gamma", tempered, GAMMAS),
        ("alpha", losses.weighted_screening, (0.5, 1.0)),
        ("order", estimators.pseudospherical, (0.25, 0.5, 0.75)),
    ]
    rows = []
    for name, family in families:
        for beta in BETAS:
            theta, row = estimators.spin_glass(family, beta), {"family": name, "beta": beta}
            for kind, make, values in kinds:
                row |= {f"{kind} {value:g}": estimators.efficiency(family, theta, make(value)) for value in values}
            rows.append(row)
    figure = Figure(figsize=(12, 3.6), layout="constrained", dpi=90)
    line = [i / 20 for i in range(33)]
    for panel, (name, family) in zip(figure.subplots(1, 4), [families[i] for i in (0, 1, 3, 4)], strict=True):
        for colour, beta in zip(COLOURS, BETAS, strict=False):
            theta = estimators.spin_glass(family, beta)
            curve = [estimators.efficiency(family, theta, tempered(gamma)) for gamma in line]
            panel.plot(line, curve, color=colour, label=f"β = {beta:g}")
            if family.space.states > 2:
                weighted = [estimators.efficiency(family, theta, losses.weighted_screening(a)) for a in line]
                panel.plot(line, weighted, color=colour, linestyle=":")
        panel.set(title=name, xlabel="γ (dotted: α)", ylim=(0, 1.03))
        panel.title.set_fontsize(9)
        panel.axvline(1, color="#cccccc", zorder=0)
    figure.axes[0].set_ylabel("efficiency against Cramér–Rao")
    figure.axes[0].legend(frameon=False)
    save(figure, folder / "estimators_efficiency.png")
    return rows


def scan(folder: Path, instances: int = 40) -> list[Row]:
    """Where the best γ lies for random pairwise laws that are learnt from all of their conditionals."""
    line = [i / 20 for i in range(41)]
    rows = []
    for name, family in (all_pairs(5, 2), all_pairs(3, 3), all_pairs(4, 3)):
        for beta in (0.2, 0.5, 1.0):
            best, gain = [], []
            for seed in range(instances):
                generator = torch.Generator().manual_seed(seed)
                draw = torch.randn(family.parameters, generator=generator, dtype=torch.float64)
                theta = 2 * beta / family.space.states * draw
                curve = [estimators.efficiency(family, theta, tempered(gamma)) for gamma in line]
                best.append(line[max(range(len(line)), key=curve.__getitem__)])
                gain.append(max(curve) / curve[20] - 1)
            low, middle, high = (sorted(best)[i] for i in (0, instances // 2, -1))
            at_more = max((one for one, place in zip(gain, best, strict=True) if place < 1), default=0.0)
            row = {"family": name, "beta": beta, "laws": instances, "least": low, "median": middle, "most": high}
            rows.append({**row, "gain": sorted(gain)[instances // 2], "most gain": max(gain), "gain below 1": at_more})
    return rows


def noise(folder: Path) -> list[Row]:
    """What one example's gradient tells and how loud it is."""
    rows: list[Row] = []
    for states in (2, 3):
        for rare in (0.5, 0.1, 1e-2, 1e-3, 1e-4):
            if rare == 0.5 and states > 2:
                continue
            conditional = torch.tensor([1 - rare, *[rare / (states - 1)] * (states - 1)], dtype=torch.float64)
            found = [estimators.context_noise(tempered(gamma), conditional) for gamma in GAMMAS]
            row = {"of": "one context", "states": states, "rare": rare, "information": float(found[0].information)}
            rows.append(row | under([float(one.variance) for one in found]))
    conditionals = torch.tensor([[0.5, 0.5], [0.999, 0.001]], dtype=torch.float64)
    for blank in (0.0, 0.5, 0.8, 0.95):
        shares = torch.tensor([1 - blank, blank], dtype=torch.float64)
        values = [estimators.pooled_efficiency(tempered(gamma), conditionals, shares) for gamma in GAMMAS]
        rows.append({"of": "blank contexts", "blank": blank} | under(values))
    for name, family in (autoregressive(3, 3), autoregressive(5, 2)):
        theta = estimators.spin_glass(family, 1.0, seed=1)
        for place in (0.0, 0.5, 0.9, 1.0, 1.5):
            values = [estimators.gain_of_whole_rows(family, theta, place * theta, tempered(g)) for g in GAMMAS]
            rows.append({"of": "whole rows", "family": name, "couplings": place} | under(values))
    figure = Figure(figsize=(10, 3.6), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    rare = torch.logspace(-5, -0.31, 60, dtype=torch.float64)
    theta = estimators.spin_glass(family, 1.0, seed=1)
    places = [i / 40 for i in range(1, 81) if i != 40]
    unit = [estimators.path_signal(family, theta, s * theta, losses.cross_entropy) for s in places]
    ratios: list[list[float]] = []
    for colour, gamma in zip(COLOURS, GAMMAS, strict=True):
        found = [estimators.context_noise(tempered(gamma), torch.stack([1 - r, r])) for r in rare]
        left.loglog(rare, [f.variance for f in found], color=colour, label=f"γ = {gamma:g}")
        ratio = [
            estimators.path_signal(family, theta, s * theta, tempered(gamma)) / one
            for s, one in zip(places, unit, strict=True)
        ]
        right.plot(places, ratio, color=colour)
        ratios.append(ratio)
    left.set(xlabel="probability of the rarer state", ylabel="variance of one gradient", title="a context, p = 2")
    left.legend(frameon=False)
    right.set(xlabel="couplings over the true ones", ylabel="signal to noise², γ = 1 is 1", title="5 spins, β = 1")
    right.axvline(1, color="#cccccc", zorder=0)
    save(figure, folder / "estimators_noise.png")
    for place, *values in zip(places, *ratios, strict=True):
        side = "not sure enough" if place < 1 else "too sure"
        rows.append({"of": "signal", "couplings": place, "model": side} | under(values))
    return rows


def misspecified(folder: Path, instances: int = 10) -> list[Row]:
    """Where endless data, and few, lead when the family is too small: random energies, pairwise conditionals."""
    rows = []
    for name, family in (autoregressive(5, 2), autoregressive(3, 3), all_pairs(5, 2), all_pairs(3, 3)):
        for beta in (1.0, 2.0):
            laws = [_random_energies(family.space, beta, seed) for seed in range(instances)]
            found = torch.zeros(instances, len(GAMMAS), 2)
            for law, place in zip(laws, found, strict=True):
                start = estimators.limit(family, law, losses.cross_entropy).theta
                reached = [estimators.limit(family, law, tempered(gamma), start) for gamma in GAMMAS]
                place.copy_(torch.tensor([[one.kl, one.tv] for one in reached]))
            cases = {"∞": (found.mean(0).T.tolist(), 0)}
            for size in (100, 1000):
                learnt, lost = zip(*(_learn(family, law, size, WEAK, 20, GAMMAS) for law in laws), strict=True)
                medians = torch.stack([torch.stack(one).median(2).values for one in learnt])
                cases[f"{size:,}"] = medians.mean(0).tolist(), max(map(max, lost))
            for size, (pair, most) in cases.items():
                for what, values in zip(("KL", "TV"), pair, strict=True):
                    row = {"family": name, "beta": beta, "rows": size, "of": what}
                    rows.append(row | under(values) | {"most not found": most})
    return rows


def _random_energies(space: Space, beta: float, seed: int) -> Tensor:
    energies = torch.randn(space.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (beta * energies).softmax(0)


def finite(folder: Path, repeats: int = 100) -> list[Row]:
    """Estimates from 30 … 10,000 rows, minimised to the end, beside the formula."""
    gammas, rows = GAMMAS[:5], []
    figure = Figure(figsize=(12, 3.6), layout="constrained", dpi=90)
    cases = [
        (autoregressive(5, 2), 1.0),
        (autoregressive(3, 3), 0.6),
        (autoregressive(3, 3), 1.0),
        (all_pairs(5, 2), 1.0),
    ]
    for panel, ((name, family), beta) in zip(figure.subplots(1, 4), cases, strict=True):
        theta = estimators.spin_glass(family, beta, seed=1)
        law = family.log_law(theta).exp()
        formula = [estimators.asymptotics(family, theta, tempered(gamma)) for gamma in gammas]
        for colour, size in zip(COLOURS, (30, 100, 1000, 10_000), strict=False):
            found = {kappa: _learn(family, law, size, kappa, repeats, gammas)[0] for kappa in SMOOTHING}
            means = torch.stack([kl.mean(1) for kl, _ in found.values()])  # (smoothing, γ)
            best = torch.stack([found[SMOOTHING[k]][0][i] for i, k in enumerate(means.argmin(0).tolist())])
            weak, tv = found[WEAK]
            cases = {"formula": torch.tensor([[one.nll / size] for one in formula]), "weak": weak, "best": best}
            for what, values in cases.items():
                row = {"family": name, "beta": beta, "rows": size, "smoothing": what}
                rows.append(row | _compared(values, gammas))
            distances = {"formula": torch.tensor([one.tv / size**0.5 for one in formula]), "weak": tv.mean(1)}
            for what, means in distances.items():
                row = {"family": name, "beta": beta, "rows": size, "smoothing": what, "of": "TV"}
                rows.append(row | under(means.tolist(), gammas))
            scale = size / (family.parameters / 2)
            panel.plot(gammas, scale * weak.mean(1), "o-", color=colour, label=f"N = {size:,}")
            panel.plot(gammas, scale * best.mean(1), "o:", color=colour, markersize=3)
        panel.plot(gammas, [one.nll / (family.parameters / 2) for one in formula], color="#111111", label="formula")
        panel.set(title=f"{name}, β = {beta:g}", xlabel="γ", ylim=(0, None))
        panel.title.set_fontsize(8)
    figure.axes[0].set_ylabel("excess NLL over Cramér–Rao")
    figure.axes[0].legend(frameon=False, fontsize=8)
    save(figure, folder / "estimators_finite.png")
    return rows


def _learn(
    family: ConditionalFamily, law: Tensor, size: int, kappa: float, repeats: int, gammas: Sequence[float]
) -> tuple[tuple[Tensor, Tensor], list[int]]:
    """Excess NLL and TV, (γ, repeats), and for each γ how many minima were not found.

    To the rows κ more are added, spread evenly over the space so that every minimum is finite.
    """
    counts = np.random.default_rng(size).multinomial(size, law.numpy() / float(law.sum()), size=repeats)
    rows = torch.from_numpy((counts + kappa / len(law)) / (size + kappa))
    start, _ = estimators.solve(family, rows, losses.cross_entropy)
    found, lost = [], []
    for gamma in gammas:
        theta, converged = estimators.solve(family, rows, tempered(gamma), start)
        lost.append(int((~converged).sum()))
        found.append(estimators.errors(family, theta, law))
    return (torch.stack([kl for kl, _ in found]), torch.stack([tv for _, tv in found])), lost


def _compared(values: Tensor, gammas: Sequence[float]) -> Row:
    """Compare each mean with the last: the ratio less one, its standard error over paired rows, and the last in nats."""
    means = values.mean(1)
    ratio = means / means[-1]
    differences = values - ratio[:, None] * values[-1]
    error = differences.square().mean(1).sqrt() / values.shape[1] ** 0.5 / means[-1]
    row = under((ratio - 1).tolist()[:-1], gammas[:-1])
    if values.shape[1] > 1:
        row |= under(error.tolist()[:-1], gammas[:-1], " error")
    return row | {"nats": float(means[-1])}


def main() -> None:
    parts: dict[str, Any] = {part.__name__: part for part in (efficiency, scan, noise, misspecified, finite)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=list(parts), action="append", help="only this; may be repeated")
    parser.add_argument("--figures", type=Path, default=Path(__file__).parents[1] / "docs" / "figures")
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    made: Row = {
        "command": " ".join(["python benchmarks/estimators.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine("cpu"),
        "rows": list[Row](),
    }
    for name in arguments.part or parts:
        print(f"\n## {name}")
        rows = parts[name](arguments.figures)
        show(rows)
        made["rows"] += [{"part": name, **row} for row in rows]
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
