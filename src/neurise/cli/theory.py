"""``neurise theory``: the terms of the paper's theorem, exactly, on a space small enough to enumerate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise.cli._data import SOURCE, resolve
from neurise.cli._figure import check_figure
from neurise.cli._output import Force, Json, Seed, print_json

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.noise.round_robin import RoundRobin
    from neurise.theory.learning import Learnt

DATA = "edwards_anderson:side=3"
SIZES = (100, 1000, 10_000)
KEEP_PROBS = (0.0, 0.3, 0.5, 0.7, 0.9)
"""Strengths of the noise whose mixing is shown beside the one that was asked for."""
LIMIT = 2**16
"""Configurations up to which a table takes minutes; the functions of neurise.theory go further."""


def theory(
    data: Annotated[str, typer.Argument(help=f"A law. {SOURCE}")] = DATA,
    keep_prob: Annotated[float, typer.Option(help="ε, the probability that a noise step keeps its site.")] = 0.5,
    cycles: Annotated[int, typer.Option(help="How often the noise goes round all sites.")] = 2,
    samples: Annotated[
        list[int] | None,
        typer.Option(help="How many rows to learn from. May be repeated.", min=2, show_default="100, 1000, 10000"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Models of each size, each with its own rows.", min=1)] = 3,
    seed: Seed = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw it all: a .png, .svg or .pdf file.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Evaluate the paper's bound TV ≤ δ_T + Tη + γ term by term, beside the true distance.

    NeurISE models are learnt from rows of a known law that is small enough to enumerate; all figures are exact.
    """
    from neurise.cli._theory_tables import CYCLES, Study, as_facts, print_tables
    from neurise.noise.round_robin import RoundRobin
    from neurise.theory.curves import delta_curve
    from neurise.theory.kernels import compare

    began = time.monotonic()
    check_figure(figure, force=force)
    law = resolve(data, rows=None)
    noise = RoundRobin(law.space, keep_prob, cycles)
    pmf = _pmf(law)
    strengths, longest = sorted({*KEEP_PROBS, float(keep_prob)}), max(CYCLES, cycles)
    deltas = {strength: delta_curve(pmf, law.space, strength, longest).tolist() for strength in strengths}
    kernels = compare(pmf, noise)
    learnt = _learn(pmf, noise, sorted({*(samples or SIZES)}), range(seed, seed + repeats))
    study = Study(data, noise, deltas, learnt, kernels)
    if figure is not None:
        from neurise.cli._theory_figure import draw

        draw(figure, study)
    if as_json:
        written = None if figure is None else str(figure)
        print_json({**as_facts(study), "figure": written, "seconds": round(time.monotonic() - began, 3)})
        return
    print_tables(study)
    if figure is not None:
        typer.echo(f"written in {time.monotonic() - began:.0f} s: {figure}")


def _pmf(data: Dataset) -> Any:
    data.space.require_enumerable(LIMIT)
    if data.law is None:
        raise ValueError(
            f"{data.name} has rows and no known law, and the theorem speaks of the distance to a law; give a data set "
            "that has one (edwards_anderson:side=3, potts:side=2) or an .npz file with an array pmf"
        )
    return data.pmf


def _learn(pmf: Any, noise: RoundRobin, sizes: Sequence[int], seeds: Sequence[int]) -> list[Learnt]:
    from neurise.progress import Progress
    from neurise.theory.learning import learning_curve

    progress = Progress("learning", "models", verbose=None)
    found: list[Learnt] = []
    total = len(sizes) * len(seeds)
    try:
        for model in learning_curve(pmf, noise, sizes, seeds):
            found.append(model)
            progress.update(len(found), len(found) / total, f"{model.rows:,} rows", last=len(found) == total)
    finally:
        progress.close()
    return found
