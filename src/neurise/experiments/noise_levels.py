"""Soft against harsh noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import LawExperiment, spin_glass, time_against_rows, tv_against_rows, tv_table
from neurise.experiments._methods import labelled
from neurise.experiments.base import Cell, Scalar, Scale

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

LEVELS: Mapping[str, tuple[float, int]] = {
    "ε = 0, 1 cycle (harsh)": (0.0, 1),
    "ε = 0.2, 1 cycle": (0.2, 1),
    "ε = 0.2, 2 cycles": (0.2, 2),
    "ε = 0.5, 2 cycles": (0.5, 2),
    "ε = 0.5, 4 cycles": (0.5, 4),
    "ε = 0.8, 8 cycles": (0.8, 8),
}
"""The probability to keep a site, and how often the noise goes round."""


class NoiseLevels(LawExperiment):
    """NeurISE with noise that erases a site at once, and with noise that does so little by little."""

    title = "Soft against harsh noise"
    reproduces = "Appendix, “Soft Noise vs Harsh Noise”: Edwards–Anderson models, ten trials, 10⁴ samples"
    notes = (
        "The paper does not print the noise levels of its curves: these are ours.",
        "Soft noise (ε > 0) never quite ends in the uniform law that the reverse chain starts from: see the experiment theory.",
    )
    methods = labelled("neurise", "neurise_paper")
    any_model = False  # levels of noise are those of NeurISE
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"rows": (100, 1000), "noise": tuple(LEVELS)[:4:3], "instance": (0,)},
            {"side": 3, "draws": 1000, "steps": 40, "width": 32, "depth": 2, "batch_size": 256},
            "3×3 spins, two levels, one trial, N up to 1000, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"rows": (100, 1000, 10_000), "noise": tuple(LEVELS), "instance": (0,)},
            {"side": 4, "draws": 10_000, "steps": 600, "width": 128, "depth": 2, "batch_size": 512},
            "4×4 spins, three trials, N up to 10⁴, width 128, 600 steps of 512 examples",
        ),
        "paper": Scale(
            10,
            {"rows": (100, 1000, 10_000, 100_000), "noise": tuple(LEVELS), "instance": (0,)},
            {"side": 5, "draws": 10_000, "steps": 12_000, "width": 256, "depth": 2, "batch_size": 1024},
            grouped=True,
        ),
    }
    figures = (tv_against_rows("noise"), time_against_rows("noise"))
    tables = (tv_table("noise"),)

    def parameters(self, scale: Scale, methods: Sequence[str]) -> Iterator[dict[str, Scalar]]:
        """Return the noise parameters of each level."""
        for cell in super().parameters(scale, methods):
            keep_prob, cycles = LEVELS[str(cell["noise"])]
            yield {**cell, "keep_prob": keep_prob, "cycles": cycles}

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the instance."""
        return spin_glass(int(parameters["side"]), int(parameters["instance"]))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare laws; whole ones where that is quick."""
        from neurise.experiments._measure import against_law, derived, of_law

        return {**against_law(model, data, rows, drawn), **of_law(model, data, derived(7, cell.seed))}
