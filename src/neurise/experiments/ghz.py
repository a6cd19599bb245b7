"""Quantum tomography: outcomes of measurements on a GHZ state."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import ROWS, SECONDS, SIZES, LawExperiment, time_against_rows
from neurise.experiments._methods import labelled, others
from neurise.experiments.base import Cell, Scalar, Scale
from neurise.experiments.parts.figures import Column, Field, Figure, Table

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

CORRELATION = Field("correlation", "mean |ΔC|")
FIDELITY = Field("fidelity", "classical fidelity Σ√(PQ)")


class Ghz(LawExperiment):
    """Correlation error and fidelity against the number of rows, for twenty qubits."""

    title = "GHZ state: correlation error and fidelity against the number of rows"
    reproduces = "Figure 3, right: 20 qubits, a four-outcome measurement on each, ten trials"
    notes = (
        "Pair correlations cannot tell the state from a classical mixture: the fidelity, which the paper lacks, can.",
        "The measurement is tetrahedral; the paper does not say which four-outcome measurement it has.",
    )
    methods = labelled("neurise", "neurise_paper")
    more_methods = others("neurise", "neurise_paper", "pairwise")
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"rows": (100, 1000)},
            {"qubits": 4, "draws": 1000, "steps": 40, "width": 32, "depth": 2, "batch_size": 256}
            | {"timesteps": 20, "sampling_steps": 16},
            "four qubits, one trial, N up to 1000, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"rows": (100, 1000, 10_000)},
            {"qubits": 20, "draws": 20_000, "steps": 1000, "width": 128, "depth": 2, "batch_size": 512}
            | {"timesteps": 64, "sampling_steps": 64},
            "three trials, N up to 10⁴, 2·10⁴ samples, width 128, 1000 steps of 512 examples",
        ),
        "paper": Scale(
            10,
            {"rows": SIZES},
            {"qubits": 20, "draws": 100_000, "steps": 4000, "width": 256, "depth": 2, "batch_size": 1024}
            | {"timesteps": 500, "sampling_steps": 256},
            grouped=True,
        ),
    }
    figures = (
        Figure(
            "correlation",
            "Error of the pair correlations",
            ROWS,
            (CORRELATION,),
            floors=(Field("correlation_floor", "other real rows"),),
        ),
        Figure("fidelity", "Classical fidelity", ROWS, (FIDELITY,), log_y=False, caption="1 is perfect."),
        time_against_rows("method"),
    )
    tables = (
        Table(
            "summary",
            "By number of training rows",
            "method",
            (
                Column(CORRELATION, "correlation_floor"),
                Column(Field("fidelity", "fidelity"), None, lower_is_better=False),
                Column(SECONDS, times=True),
            ),
            by="rows",
        ),
    )

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the law of the outcomes."""
        from neurise.datasets.ghz import ghz as outcomes

        return outcomes(int(parameters["qubits"]))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare correlations with those of fresh rows, and probabilities at them where the model has any."""
        from neurise.experiments._measure import correlation, derived
        from neurise.metrics.fidelity import fidelity

        fresh, other = (data.sample(len(drawn), seed=derived(part, cell.seed)) for part in (3, 4))
        found: dict[str, float | None] = {"fidelity": None, "fidelity_error": None}
        with suppress(NotImplementedError):
            classical = fidelity(model, fresh, data.log_weight).classical
            found = {"fidelity": float(classical), "fidelity_error": classical.error}
        return {**correlation(drawn, fresh, other, data.symbols.tolist()), **found}
