"""How the network is told which site it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import LawExperiment, spin_glass, time_against_rows, tv_against_rows, tv_table
from neurise.experiments._methods import labelled
from neurise.experiments.base import Cell, Scalar, Scale
from neurise.experiments.parts.figures import Column, Field

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

FORMS: Mapping[str, Mapping[str, str]] = {
    "one-hot": {"site_input": "one_hot", "heads": "shared"},
    "one number": {"site_input": "number", "heads": "shared"},
    "one-hot, one head per site": {"site_input": "one_hot", "heads": "site"},
}
"""The paper's form; the site as one number; and the output layers of the library's default."""


class SiteInput(LawExperiment):
    """NeurISE, told the site as a one-hot vector, as one number, and by an output layer per site as well."""

    title = "The site as a one-hot vector or as a number"
    reproduces = "Section on NeurISE, where the network is defined; the paper has no figure of it"
    notes = (
        "The networks have equal widths, and so not quite equally many parameters: the table has their numbers.",
        "Noise is hard, one cycle: the time, which every network is told as a number, then tells the site as well.",
    )
    methods = labelled("neurise", "neurise_paper")
    any_model = False  # the inputs are those of NeurISE's network
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"rows": (100, 1000), "site": tuple(FORMS), "instance": (0,)},
            {"side": 3, "draws": 1000, "steps": 40, "width": 32, "depth": 2, "batch_size": 256},
            "3×3 spins, one trial, N up to 1000, a small network hardly trained",
        ),
        "laptop": Scale(
            1,
            {"rows": (100, 1000, 10_000), "site": tuple(FORMS), "instance": (0, 1, 2)},
            {"side": 5, "draws": 10_000, "steps": 1000, "width": 128, "depth": 2, "batch_size": 512},
            "three instances, one trial, N up to 10⁴, width 128, 1000 steps of 512 examples",
        ),
        "paper": Scale(
            1,
            {"rows": (100, 1000, 10_000, 100_000), "site": tuple(FORMS), "instance": (0, 1, 2, 3, 4)},
            {"side": 5, "draws": 100_000, "steps": 4000, "width": 256, "depth": 2, "batch_size": 1024},
            grouped=True,
        ),
    }
    figures = (tv_against_rows("site"), time_against_rows("site"))
    tables = (tv_table("site", Column(Field("parameters", "parameters"), lower_is_better=None)),)

    def parameters(self, scale: Scale, methods: Sequence[str]) -> Iterator[dict[str, Scalar]]:
        """Say what each form is made of."""
        for cell in super().parameters(scale, methods):
            yield {**cell, **FORMS[str(cell["site"])]}

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the instance."""
        return spin_glass(int(parameters["side"]), int(parameters["instance"]))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare laws; whole ones where that is quick."""
        from neurise.experiments._measure import against_law, derived, of_law

        return {**against_law(model, data, rows, drawn), **of_law(model, data, derived(7, cell.seed))}
