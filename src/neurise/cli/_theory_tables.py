"""What ``neurise theory`` found, as tables and in JSON's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import typer

from neurise.cli._output import print_table
from neurise.noise.round_robin import RoundRobin
from neurise.theory.kernels import Comparison
from neurise.theory.learning import SETTINGS, UNIFORM, Learnt

CYCLES = 4
"""Cycles up to which δ is always shown."""


class Study(NamedTuple):
    """Everything that was computed."""

    data: str
    noise: RoundRobin
    deltas: Mapping[float, Sequence[float]]  # ε to δ_0 … δ_T
    learnt: Sequence[Learnt]
    kernels: Sequence[Comparison]

    @property
    def by_size(self) -> dict[int, list[Learnt]]:
        """The models by the number of rows that they were learnt from."""
        sizes = sorted({model.rows for model in self.learnt})
        return {size: [model for model in self.learnt if model.rows == size] for size in sizes}


def mean(values: Iterable[float]) -> float:
    """Average over the models of one size."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def as_facts(study: Study) -> dict[str, Any]:
    """Give everything in JSON's types."""
    models = [
        {
            "rows": model.rows,
            "seed": model.seed,
            "memorised": model.memorised,
            "starts": {
                name: {
                    **terms.paper._asdict(),
                    "mismatch": terms.mismatch,
                    "sum_largest": terms.sum_largest,
                    "sum_mean": terms.sum_mean,
                    "sharp": terms.sharp,
                }
                for name, terms in model.starts.items()
            },
        }
        for model in study.learnt
    ]
    return {
        "data": study.data,
        "sites": study.noise.space.sites,
        "states": study.noise.space.states,
        "keep_prob": study.noise.keep_prob,
        "cycles": study.noise.cycles,
        "settings": dict(SETTINGS),
        "delta": [{"keep_prob": strength, "delta": list(curve)} for strength, curve in study.deltas.items()],
        "models": models,
        "kernels": [kernel._asdict() for kernel in study.kernels],
    }


def print_tables(study: Study) -> None:
    """Print a table for each question, and what the columns mean."""
    _print_mixing(study)
    _print_bounds(study)
    _print_starts(study)
    _print_kernels(study)
    typer.echo(
        "TV is the distance of the model's whole law from the true one, computed exactly. No\n"
        "bound is ever below it, and one above 1 says nothing. η is the largest error of a\n"
        "reverse step over all steps and states, also those that hardly ever occur; mean η\n"
        "weighs them by how likely they are. δ_T = TV(μ_T, uniform), γ = TV(start, uniform).\n"
        "Defect: how far a kernel is from keeping the marginals. Sites changed: by one step,\n"
        "and of these at sites other than u, which it noises. In reach: states after one step.\n"
    )


def _print_mixing(study: Study) -> None:
    shown = sorted({*range(CYCLES + 1), study.noise.cycles})
    sites = study.noise.space.sites
    print_table(
        f"{study.data}: δ_T by cycles of noise",
        ["ε", *map(str, shown)],
        [[f"{eps:g}", *(f"{curve[c * sites]:.4f}" for c in shown)] for eps, curve in study.deltas.items()],
        numbers=range(len(shown) + 1),
    )


def _print_bounds(study: Study) -> None:
    rows = []
    for size, models in study.by_size.items():
        terms = [model.starts[UNIFORM] for model in models]
        values = (
            mean(model.memorised for model in models),
            mean(term.paper.tv for term in terms),
            mean(term.sharp for term in terms),
            mean(term.paper.bound for term in terms),
            mean(term.mean_eta for term in terms),
            mean(term.paper.eta for term in terms),
        )
        rows.append([f"{size:,}", *(f"{value:.4f}" for value in values)])
    columns = ["rows", "TV of rows", "TV", "δ_T + Σ mean η", "δ_T + T η", "mean η", "η"]
    chain = f"ε = {study.noise.keep_prob:g}, T = {study.noise.num_steps} steps"
    title = f"Learnt with {chain}, uniform start ({_repeats(study)})"
    print_table(title, columns, rows, numbers=range(len(columns)))


def _print_starts(study: Study) -> None:
    rows = []
    for size, models in study.by_size.items():
        for name in models[0].starts:
            terms = [model.starts[name] for model in models]
            values = (
                mean(term.paper.gamma for term in terms),
                mean(term.mismatch for term in terms),
                mean(term.paper.bound for term in terms),
                mean(term.paper.tv for term in terms),
            )
            rows.append([f"{size:,}" if name == UNIFORM else "", name, *(f"{value:.4f}" for value in values)])
    columns = ["rows", "start", "γ", "TV(start, μ_T)", "δ_T + T η + γ", "TV"]
    print_table(f"Where the reverse chain starts ({_repeats(study)})", columns, rows, numbers=(0, 2, 3, 4, 5))


def _print_kernels(study: Study) -> None:
    columns = ["", "defect", "sites changed", "not u", "in reach", "TV"]
    rows = [
        [
            kernel.name,
            f"{kernel.defect:.0g}",
            f"{kernel.hamming:.4f}",
            f"{kernel.elsewhere:.4f}",
            f"{kernel.reach:,}",
            f"{kernel.from_uniform:.4f}",
        ]
        for kernel in study.kernels
    ]
    print_table("True reverse kernels of this chain, from the uniform start", columns, rows, numbers=range(1, 6))


def _repeats(study: Study) -> str:
    number = len(study.learnt) // len(study.by_size)
    return f"means of {number}" if number > 1 else "one model each"
