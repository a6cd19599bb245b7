"""More than two states: Potts models small enough for every figure to be exact."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import SIZES, LawExperiment, time_against_rows, tv_against_rows, tv_table
from neurise.experiments._methods import labelled, others
from neurise.experiments.base import Cell, Scalar, Scale

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model


class Potts(LawExperiment):
    """Total variation against the number of rows on 2×2 and 3×3 lattices of three states."""

    title = "Potts models of three states: total variation against the number of rows"
    reproduces = "Figure 3, left: 2×2 and 3×3 lattices, p = 3, N from 10² to 10⁵, ten trials"
    notes = (
        "The paper gives neither J nor h: those of its Edwards–Anderson model are taken, 1.2 and 0.05.",
        "On 2×2 the periodic rule couples each pair of neighbours twice.",
        "Total variation is that of samples, as in the paper; that of the law is of all its probabilities.",
    )
    methods = labelled("neurise", "neurise_paper")
    more_methods = others("neurise", "neurise_paper")
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"side": (2, 3), "rows": (100, 1000), "instance": (0,)},
            {"states": 3, "draws": 1000, "steps": 40, "width": 32, "depth": 2, "batch_size": 256}
            | {"timesteps": 20, "sampling_steps": 16},
            "one trial, N up to 1000, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"side": (2, 3), "rows": (100, 1000, 10_000), "instance": (0,)},
            {"states": 3, "draws": 20_000, "steps": 600, "width": 64, "depth": 2, "batch_size": 512}
            | {"timesteps": 64, "sampling_steps": 64},
            "three trials, N up to 10⁴, width 64, 600 steps of 512 examples",
        ),
        "paper": Scale(
            10,
            {"side": (2, 3), "rows": SIZES, "instance": (0,)},
            {"states": 3, "draws": 100_000, "steps": 4000, "width": 256, "depth": 2, "batch_size": 1024}
            | {"timesteps": 500, "sampling_steps": 256},
            grouped=True,
        ),
    }
    figures = (tv_against_rows("method", "side"), time_against_rows("method", "side"))
    tables = (tv_table("side"),)

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the instance."""
        names = ("side", "states", "instance")
        return instance(*(int(parameters[name]) for name in names))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare laws."""
        from neurise.experiments._measure import against_law, derived, of_law

        return {**against_law(model, data, rows, drawn), **of_law(model, data, derived(7, cell.seed))}


@lru_cache(maxsize=8)
def instance(side: int, states: int, number: int) -> Dataset:
    """Make an instance once per process."""
    from neurise.datasets.potts import potts as model

    return model(side=side, states=states, seed=number)
