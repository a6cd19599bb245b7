"""Which loss makes the most of N rows? The tables and figures of docs/evidence/estimators.md, exact wherever they can be.

    python benchmarks/estimators.py                      # everything: three minutes on one core
    python benchmarks/estimators.py --part efficiency    # or scan, noise, misspecified, finite

Tables go to the terminal, figures to docs/figures (--figures elsewhere).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from neurise import losses
from neurise.files import write_atomically
from neurise.space import Space
from neurise.theory import estimators
from neurise.theory.estimators import ConditionalFamily

COLOURS = ("#30475e", "#f2a154", "#4f9d69", "#b5446e", "#7a6fb0", "#111111")
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
BETAS = (0.2, 0.5, 1.0, 1.5)
SMOOTHING = (0.3, 1.0, 3.0, 10.0, 30.0)
WEAK = 1.0


def autoregressive(sites: int, states: int) -> tuple[str, ConditionalFamily]:
    return f"autoregressive, {sites} sites, p = {states}", estimators.autoregressive(Space(sites, states))


def all_pairs(sites: int, states: int) -> tuple[str, ConditionalFamily]:
    edges = list(combinations(range(sites), 2))
    return f"all conditionals, {sites} sites, p = {states}", estimators.pseudolikelihood(Space(sites, states), edges)


def tempered(gamma: float) -> losses.Loss:
    return losses.tempered_screening(gamma)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def save(figure: Figure, path: Path) -> None:
    for panel in figure.axes:
        panel.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda place: figure.savefig(place, format="png"))
    print(f"\nwritten: {path}")


def efficiency(folder: Path) -> None:
    """Efficiency against Cramér–Rao, for weights, references, temperatures and numbers of states."""
    families = [autoregressive(5, 2), autoregressive(3, 3), autoregressive(3, 5), all_pairs(5, 2), all_pairs(4, 3)]
    kinds: list[tuple[str, Callable[[float], losses.Loss], Sequence[float]]] = [
        ("γ", tempered, GAMMAS),
        ("α", losses.weighted_screening, (0.5, 1.0)),
        ("order", estimators.pseudospherical, (0.25, 0.5, 0.75)),
    ]
    head = ["family", "β", *(f"{symbol} = {value:g}" for symbol, _, values in kinds for value in values)]
    rows = []
    for name, family in families:
        for beta in BETAS:
            theta = estimators.spin_glass(family, beta)
            found = [estimators.efficiency(family, theta, make(v)) for _, make, values in kinds for v in values]
            rows.append([name, f"{beta:g}", *(f"{value:.3f}" for value in found)])
    table(head, rows)
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


def scan(folder: Path, instances: int = 40) -> None:
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
            typical, largest = sorted(gain)[instances // 2], max(gain)
            rows.append([name, f"{beta:g}", f"{low:g} … {middle:g} … {high:g}", f"{typical:.2%}", f"{largest:.1%}"])
    table(["family", "β", "best γ: least … median … most", "gain over γ = 1: median", "most"], rows)


def noise(folder: Path) -> None:
    """What one example's gradient tells and how loud it is."""
    rows = []
    for states in (2, 3):
        for rare in (0.5, 0.1, 1e-2, 1e-3, 1e-4):
            if rare == 0.5 and states > 2:
                continue
            conditional = torch.tensor([1 - rare, *[rare / (states - 1)] * (states - 1)], dtype=torch.float64)
            found = [estimators.context_noise(tempered(gamma), conditional) for gamma in (0.0, 0.5, 0.75, 1.0)]
            rows.append(
                [f"{states}", f"{rare:g}", f"{found[0].information:.2g}", *(f"{f.variance:.2g}" for f in found)]
            )
    table(["p", "1 − max μ", "information", *(f"variance, γ = {g:g}" for g in (0, 0.5, 0.75, 1))], rows)
    rows = []
    conditionals = torch.tensor([[0.5, 0.5], [0.999, 0.001]], dtype=torch.float64)
    for blank in (0.0, 0.5, 0.8, 0.95):
        shares = torch.tensor([1 - blank, blank], dtype=torch.float64)
        found = [estimators.pooled_efficiency(tempered(gamma), conditionals, shares) for gamma in GAMMAS]
        rows.append([f"{blank:g}", *(f"{value:.3f}" for value in found)])
    table(["share of blank contexts", *(f"γ = {gamma:g}" for gamma in GAMMAS)], rows)
    rows = []
    for name, family in (autoregressive(3, 3), autoregressive(5, 2)):
        theta = estimators.spin_glass(family, 1.0, seed=1)
        for place in (0.0, 0.5, 0.9, 1.0, 1.5):
            found = [estimators.gain_of_whole_rows(family, theta, place * theta, tempered(g)) for g in GAMMAS]
            rows.append([name, f"{place:g}", *(f"{value:.2f}" for value in found)])
    table(["family, β = 1", "couplings over the true ones", *(f"γ = {gamma:g}" for gamma in GAMMAS)], rows)
    figure = Figure(figsize=(10, 3.6), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    rare = torch.logspace(-5, -0.31, 60, dtype=torch.float64)
    theta = estimators.spin_glass(family, 1.0, seed=1)
    places = [i / 40 for i in range(1, 81) if i != 40]
    unit = [estimators.path_signal(family, theta, s * theta, losses.cross_entropy) for s in places]
    for colour, gamma in zip(COLOURS, GAMMAS, strict=True):
        found = [estimators.context_noise(tempered(gamma), torch.stack([1 - r, r])) for r in rare]
        left.loglog(rare, [f.variance for f in found], color=colour, label=f"γ = {gamma:g}")
        ratio = [
            estimators.path_signal(family, theta, s * theta, tempered(gamma)) / one
            for s, one in zip(places, unit, strict=True)
        ]
        right.plot(places, ratio, color=colour)
    left.set(xlabel="probability of the rarer state", ylabel="variance of one gradient", title="a context, p = 2")
    left.legend(frameon=False)
    right.set(xlabel="couplings over the true ones", ylabel="signal to noise², γ = 1 is 1", title="5 spins, β = 1")
    right.axvline(1, color="#cccccc", zorder=0)
    save(figure, folder / "estimators_noise.png")


def misspecified(folder: Path, instances: int = 10) -> None:
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
            cases = {"∞": found.mean(0).T.tolist()}
            for size in (100, 1000):
                learnt = [torch.stack(_learn(family, law, size, WEAK, 20, GAMMAS)).median(2).values for law in laws]
                cases[f"{size:,}"] = torch.stack(learnt).mean(0).tolist()
            for size, pair in cases.items():
                for what, values in zip(("KL", "TV"), pair, strict=True):
                    rows.append([name, f"{beta:g}", size, what, *(f"{value:.4f}" for value in values)])
    table(["family", "β", "N", "", *(f"γ = {gamma:g}" for gamma in GAMMAS)], rows)


def _random_energies(space: Space, beta: float, seed: int) -> Tensor:
    energies = torch.randn(space.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (beta * energies).softmax(0)


def finite(folder: Path, repeats: int = 100) -> None:
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
            found = {kappa: _learn(family, law, size, kappa, repeats, gammas) for kappa in SMOOTHING}
            means = torch.stack([kl.mean(1) for kl, _ in found.values()])  # (smoothing, γ)
            best = torch.stack([found[SMOOTHING[k]][0][i] for i, k in enumerate(means.argmin(0).tolist())])
            weak, tv = found[WEAK]
            facts = [name, f"{beta:g}", f"{size:,}"]
            rows.append([*facts, "formula", *_compared(torch.tensor([[one.nll / size] for one in formula]))])
            rows.append([*facts, f"κ = {WEAK:g}", *_compared(weak)])
            rows.append([*facts, "best κ", *_compared(best)])
            rows.append([*facts, "TV, formula", *(f"{one.tv / size**0.5:.4f}" for one in formula)])
            rows.append([*facts, f"TV, κ = {WEAK:g}", *(f"{value:.4f}" for value in tv.mean(1).tolist())])
            scale = size / (family.parameters / 2)
            panel.plot(gammas, scale * weak.mean(1), "o-", color=colour, label=f"N = {size:,}")
            panel.plot(gammas, scale * best.mean(1), "o:", color=colour, markersize=3)
        panel.plot(gammas, [one.nll / (family.parameters / 2) for one in formula], color="#111111", label="formula")
        panel.set(title=f"{name}, β = {beta:g}", xlabel="γ", ylim=(0, None))
        panel.title.set_fontsize(8)
    figure.axes[0].set_ylabel("excess NLL over Cramér–Rao")
    figure.axes[0].legend(frameon=False, fontsize=8)
    table(["family", "β", "N", "excess NLL", *(f"γ = {gamma:g}" for gamma in gammas)], rows)
    save(figure, folder / "estimators_finite.png")


def _learn(
    family: ConditionalFamily, law: Tensor, size: int, kappa: float, repeats: int, gammas: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Excess NLL and TV, (γ, repeats): rows and κ more, spread evenly over the space so that every minimum is finite."""
    counts = np.random.default_rng(size).multinomial(size, law.numpy() / float(law.sum()), size=repeats)
    rows = torch.from_numpy((counts + kappa / len(law)) / (size + kappa))
    start, _ = estimators.solve(family, rows, losses.cross_entropy)
    found = []
    for gamma in gammas:
        theta, converged = estimators.solve(family, rows, tempered(gamma), start)
        if not bool(converged.all()):
            print(f"{int((~converged).sum())} of {repeats} did not converge: γ = {gamma:g}, N = {size}, κ = {kappa:g}")
        found.append(estimators.errors(family, theta, law))
    return torch.stack([kl for kl, _ in found]), torch.stack([tv for _, tv in found])


def _compared(values: Tensor) -> list[str]:
    """How far each mean is from the last, in per cent with its standard error over paired rows, and the last in nats."""
    means = values.mean(1)
    ratio = means / means[-1]
    differences = values - ratio[:, None] * values[-1]
    error = differences.square().mean(1).sqrt() / values.shape[1] ** 0.5 / means[-1]
    pairs = zip(ratio[:-1].tolist(), error[:-1].tolist(), strict=True)
    cells = [f"{r - 1:+.1%}" + (f" ± {e:.1%}" if values.shape[1] > 1 else "") for r, e in pairs]
    return [*cells, f"{float(means[-1]):.3g}"]


def main() -> None:
    parts: dict[str, Any] = {part.__name__: part for part in (efficiency, scan, noise, misspecified, finite)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=list(parts), action="append", help="only this; may be repeated")
    parser.add_argument("--figures", type=Path, default=Path(__file__).parents[1] / "docs" / "figures")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.part or parts:
        print(f"\n## {name}")
        parts[name](arguments.figures)


if __name__ == "__main__":
    main()
