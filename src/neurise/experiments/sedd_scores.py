"""What SEDD needs to be trained: positive scores, and one-hot inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import FLOOR, MEMORISED, ROWS, SECONDS, TV, LawExperiment, spin_glass
from neurise.experiments._methods import labelled
from neurise.experiments.base import Cell, Scalar, Scale
from neurise.experiments.parts.figures import Column, Field, Figure, Table

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

NOISES = ("absorbing", "uniform")
UNLEARNT = Field("unlearnt_tv", "nothing learnt")
COLUMNS = (
    Column(Field("diverged", "share that diverged")),
    Column(Field("diverged_at", "in step"), lower_is_better=None),
    Column(Field("tv", "total variation, not diverged"), "tv_floor"),
    Column(Field("kept_tv", "of the weights kept"), "tv_floor"),
    Column(SECONDS, times=True),
)


class SeddScores(LawExperiment):
    """SEDD with log-scores, with a layer that makes scores positive, with raw scores, and with numbers as inputs."""

    title = "SEDD: positive scores and one-hot inputs"
    reproduces = "Appendix, “SEDD Implementation details”: Edwards–Anderson models; the paper has no figure of it"
    notes = (
        "A run has diverged when a loss was infinite or not a number; it ends there, and the last good weights are kept.",
        "Raw scores start at the score of the other forms, on the scale that the noise sets. “Slower” is a tenth of the "
        "learning rate.",
        "“Numbers −1, 1” show a mask as 0. “Integers” show it as the number after the last token; without masks both are "
        "the same up to scale and shift, and the first layer can undo either.",
        "“Nothing learnt” is the total variation of as many draws of the uniform law.",
    )
    methods = labelled("sedd", "sedd_softplus", "sedd_raw", "sedd_raw_slow", "sedd_spins", "sedd_integers")
    any_model = False  # the forms are those of SEDD
    labels = {noise: f"{noise} noise" for noise in NOISES}  # noqa: RUF012
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"rows": (1000,), "noise": NOISES, "instance": (0,)},
            {"side": 3, "draws": 1000, "steps": 200, "width": 32, "depth": 2, "batch_size": 256, "sampling_steps": 16},
            "3×3 spins, one instance and trial, N = 1000, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"rows": (1000, 10_000), "noise": NOISES, "instance": (0,)},
            {
                "side": 5,
                "draws": 10_000,
                "steps": 1200,
                "width": 128,
                "depth": 2,
                "batch_size": 512,
                "sampling_steps": 64,
            },
            "one instance, three trials, N up to 10⁴, 10⁴ samples, width 128, 1200 steps of 512 examples",
        ),
        "paper": Scale(
            1,
            {"rows": (1000, 100_000), "noise": NOISES, "instance": (0, 1, 2, 3, 4)},
            {"side": 5, "draws": 100_000, "steps": 4000, "width": 256, "depth": 2, "batch_size": 1024}
            | {"sampling_steps": 256},
            grouped=True,
        ),
    }
    figures = (
        Figure("tv", "Total variation", ROWS, (TV,), "method", "noise", (MEMORISED, FLOOR, UNLEARNT)),
        Figure("diverged", "Share that diverged", ROWS, (Field("diverged", "share"),), "method", "noise", log_y=False),
    )
    tables = tuple(
        Table(f"summary_{noise}", f"{noise} noise".capitalize(), "method", COLUMNS, by="rows", where={"noise": noise})
        for noise in NOISES
    )

    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the instance."""
        return spin_glass(int(parameters["side"]), int(parameters["instance"]))  # type: ignore[arg-type]

    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> dict[str, Any]:
        """Compare laws, and say whether and when training diverged."""
        import numpy as np

        from neurise.experiments._measure import against_law, derived
        from neurise.metrics.total_variation import total_variation

        found = against_law(model, data, rows, drawn)
        even = np.random.default_rng(derived(6, cell.seed)).choice(data.symbols, drawn.shape)
        diverged_at = getattr(model, "diverged_at_", None)
        return {
            **found,
            "tv": found["tv"] if diverged_at is None else None,
            "kept_tv": found["tv"],
            "unlearnt_tv": float(total_variation(even, data.pmf, alphabet=data.symbols.tolist())),
            "diverged": float(diverged_at is not None),
            "diverged_at": diverged_at,
        }
