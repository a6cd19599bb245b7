"""One small network per step against one network for all steps."""

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

WIDTHS = {"local_mlp": 5, "site_mlp": 125}
"""Hidden units of each: the paper's."""


class LocalGlobal(LawExperiment):
    """NeurISE with a network per step (5 hidden units) and with one for all (125), at about equal numbers of parameters."""

    title = "Local networks against a global one"
    reproduces = "Appendix, “Local vs Global Neural Network”: Edwards–Anderson models, ten trials, 10⁴ samples"
    notes = ("One hidden layer each, as the paper says; noise is hard, one cycle.",)
    labels = {"local_mlp": "local: 5 hidden units per step", "site_mlp": "global: 125 hidden units"}  # noqa: RUF012
    methods = labelled("neurise", "neurise_paper")
    any_model = False  # its networks are those of NeurISE
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"rows": (100, 1000), "network": tuple(WIDTHS), "instance": (0,)},
            {"side": 3, "draws": 1000, "steps": 40, "depth": 1, "batch_size": 256},
            "3×3 spins, one trial, N up to 1000, hardly trained",
        ),
        "laptop": Scale(
            3,
            {"rows": (100, 1000, 10_000), "network": tuple(WIDTHS), "instance": (0, 1)},
            {"side": 5, "draws": 10_000, "steps": 1000, "depth": 1, "batch_size": 512},
            "two instances and three trials, N up to 10⁴, 1000 steps of 512 examples",
        ),
        "paper": Scale(
            10,
            {"rows": (100, 1000, 10_000, 100_000), "network": tuple(WIDTHS), "instance": (0,)},
            {"side": 5, "draws": 10_000, "steps": 12_000, "depth": 1, "batch_size": 1024},
            grouped=True,
        ),
    }
    figures = (tv_against_rows("network"), time_against_rows("network"))
    tables = (tv_table("network", Column(Field("parameters", "parameters"), lower_is_better=None)),)

    def parameters(self, scale: Scale, methods: Sequence[str]) -> Iterator[dict[str, Scalar]]:
        """Give each network its width."""
        for cell in super().parameters(scale, methods):
            yield {**cell, "width": WIDTHS[str(cell["network"])], "heads": "shared"}

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the instance."""
        return spin_glass(int(parameters["side"]), int(parameters["instance"]))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare laws; whole ones where that is quick."""
        from neurise.experiments._measure import against_law, derived, of_law

        return {**against_law(model, data, rows, drawn), **of_law(model, data, derived(7, cell.seed))}
