"""How every method improves with more rows of a spin glass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import (
    LAW_TV,
    ROWS,
    SIZES,
    TV,
    LawExperiment,
    spin_glass,
    time_against_rows,
    tv_against_rows,
    tv_table,
)
from neurise.experiments._method_table import FEW_TRIALS, SHOWN, TODAY
from neurise.experiments._methods import labelled, others
from neurise.experiments.base import Cell, Scalar, Scale
from neurise.experiments.parts.figures import Column, Field, Figure, Table

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

COMMITTEE = "neurise_committee"
CORRELATION = Field("correlation", "mean |ΔC|")
DENSITY = Field("kde", "kernel density, nats")
DENSITY_FLOORS = (
    Field("kde_floor", "as many exact samples"),
    Field("memorised_kde", "memorising the rows"),
    Field("log_law", "the law itself"),
)


class IsingCurves(LawExperiment):
    """Edwards–Anderson models: total variation, correlation error and training time against the number of rows."""

    title = "Ising models: error and training time against the number of rows"
    reproduces = "Figure 1: Edwards–Anderson 5×5, five instances, ten trials each, five methods"
    notes = (
        "Every method gets the same rows, as many examples and, to within a tenth, as many parameters.",
        "The total variation of samples cannot fall below that of as many exact samples. That of the law, by the likelihoods of "
        "fresh rows, has no such floor.",
        "NeurISE is run with hard noise (ε = 0, one cycle), GGM with ε = 0.2 and three cycles.",
        "NeurISE() is trained as long as it asks for, and presets have sizes of their own.",
        "The committee is NeurISE with as many parameters in four networks, two of which start from fitted pairwise terms.",
    )
    methods = labelled(*SHOWN, COMMITTEE, *TODAY)
    more_methods = others(*SHOWN, COMMITTEE, *TODAY)
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"rows": (100, 1000), "instance": (0,)},
            {"side": 3, "draws": 1000, "steps": 40, "width": 32, "depth": 2, "batch_size": 256}
            | {"timesteps": 20, "sampling_steps": 16},
            "3×3 spins, one instance and trial, N up to 1000, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"rows": (100, 1000, 10_000), "instance": (0, 1, 2)},
            {"side": 5, "draws": 10_000, "steps": 1200, "width": 128, "depth": 2, "batch_size": 512}
            | {"timesteps": 64, "sampling_steps": 64},
            "three instances and trials, N up to 10⁴, 10⁴ samples, width 128, 1200 steps of 512 examples",
        ),
        "paper": Scale(
            10,
            {"rows": SIZES, "instance": (0, 1, 2, 3, 4)},
            {"side": 5, "draws": 100_000, "steps": 12_000, "width": 256, "depth": 2, "batch_size": 1024}
            | {"timesteps": 500, "sampling_steps": 256},
            grouped=True,
        ),
    }
    figures = (
        tv_against_rows("method"),
        Figure(
            "correlation",
            "Error of the pair correlations",
            ROWS,
            (CORRELATION,),
            floors=(Field("correlation_floor", "other real rows"),),
        ),
        Figure(
            "kde", "Kernel density", ROWS, (DENSITY,), floors=DENSITY_FLOORS, log_y=False, caption="Higher is better."
        ),
        time_against_rows("method"),
    )
    tables = (
        tv_table("method", Column(CORRELATION, "correlation_floor")),
        Table(
            "density",
            "Kernel density, by number of training rows",
            "method",
            (
                Column(DENSITY, "kde_floor", lower_is_better=False),
                Column(Field("memorised_kde", "of the rows learnt from"), lower_is_better=None),
                Column(TV),
                Column(LAW_TV),
                Column(Field("law_kl", "KL of the law, nats")),
            ),
            by="rows",
            caption="The mean log-density of 1000 fresh rows under a kernel estimate from 1000 samples; higher is better. Rows "
            "learnt from are exact samples: whoever memorises 1000 of them scores as the floor does.",
        ),
    )

    def trials(self, parameters: Mapping[str, Scalar], scale: Scale) -> int:
        """Return fewer for methods that are not of the paper."""
        return min(scale.trials, FEW_TRIALS) if parameters.get("method") in TODAY else scale.trials

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the instance."""
        return spin_glass(int(parameters["side"]), int(parameters["instance"]))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare laws, and correlations with those of fresh rows."""
        from neurise.experiments._density import density_of_law
        from neurise.experiments._measure import against_law, correlation, derived, of_law

        fresh, other = (data.sample(len(drawn), seed=derived(part, cell.seed)) for part in (3, 4))
        return {
            **against_law(model, data, rows, drawn),
            **of_law(model, data, derived(7, cell.seed)),
            **correlation(drawn, fresh, other, data.symbols.tolist()),
            **density_of_law(drawn, rows, fresh, other, data, cell.seed),
        }
