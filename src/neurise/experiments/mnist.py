"""Handwritten digits, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from neurise.experiments._methods import COMPARED, build, others
from neurise.experiments.base import Cell, Experiment, Outcome, Scale
from neurise.experiments.parts.figures import SampleGrid
from neurise.experiments.parts.samples import REAL, sample_table, with_real

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset

ACROSS = 8
"""Pictures of each digit that a row keeps."""


class Mnist(Experiment):
    """Table of MMD and correlation error, and one grid of digits per method."""

    title = "MNIST: class-conditional digits"
    reproduces = "Table 1 (a) and Figure 2: binarised MNIST, one row of samples a digit"
    notes = (
        "Every method gets as many examples and, to within a tenth, as many parameters; nothing was searched for.",
        "MMD² has the kernel (⟨x,y⟩/784 + 1)³ on spins; both measures are averages over the classes.",
        "The data are downloaded once, or read from the folder mnist in NEURISE_DATA.",
    )
    methods = with_real(*COMPARED)
    any_model = True
    more_methods = others(*COMPARED, "pairwise")
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"classes": (2,)},
            {"rows": 500, "draws": 16, "held": 50, "steps": 10, "width": 16, "depth": 1, "batch_size": 64}
            | {"timesteps": 8, "sampling_steps": 8},
            "two digits, 500 rows, a small network hardly trained",
        ),
        "laptop": Scale(
            1,
            {"classes": (10,)},
            {"rows": 60_000, "draws": 100, "held": 500, "steps": 1500, "width": 256, "depth": 2, "batch_size": 256}
            | {"timesteps": 64, "sampling_steps": 64},
            "100 samples per digit, width 256, 1500 steps of 256 examples, one trial",
        ),
        "paper": Scale(
            3,
            {"classes": (10,)},
            {"rows": 60_000, "draws": 1000, "held": 1000, "steps": 40_000, "width": 512, "depth": 3, "batch_size": 512}
            | {"timesteps": 500, "sampling_steps": 256},
        ),
    }
    tables = (sample_table("MNIST", "mnist"),)
    grids = (SampleGrid("digits", "Samples, one row per digit", "digits"),)

    def run(self, cell: Cell, device: str | None) -> Outcome:
        """Train one model and compare its digits with test digits, class by class."""
        import numpy as np

        from neurise.experiments._measure import derived, train
        from neurise.experiments.store import pack

        given: Mapping[str, Any] = cell.parameters
        digits = range(given["classes"])
        data = _digits()
        assert data.train is not None
        assert data.labels is not None
        wanted = np.flatnonzero(np.isin(data.labels, digits))
        chosen = np.random.default_rng(derived(1, cell.seed)).permutation(wanted)[: given["rows"]]
        rows, labels = data.train[chosen], data.labels[chosen]
        labels_drawn = np.repeat(np.array(digits, dtype=labels.dtype), given["draws"])
        times, count = {}, 0
        if given["method"] == REAL:
            drawn = np.concatenate([rows[labels == digit][: given["draws"]] for digit in digits])
        else:
            model = build(given, data, len(digits))
            times["train_seconds"] = train(model, rows, labels, seed=cell.seed, device=device, max_steps=given["steps"])
            drawn, times["sample_seconds"] = _drawn(model, labels_drawn, derived(2, cell.seed))
            count = model.num_parameters_
        found = _compared(drawn, labels_drawn, data, given["held"], list(digits), cell.seed)
        pictures = drawn.reshape(len(digits), -1, 28, 28)[:, :ACROSS]
        return Outcome({**found, "parameters": count}, times, {"digits": pack(pictures)})


def _drawn(model: Any, labels: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    import time

    import numpy as np

    began = time.perf_counter()
    drawn = np.asarray(model.sample(len(labels), labels, seed=seed))
    return drawn, time.perf_counter() - began


def _compared(
    drawn: np.ndarray, labels: np.ndarray, data: Dataset, held: int, digits: list[int], seed: int
) -> dict[str, float | None]:
    """Average both measures over the classes, each against test digits; the floor is that of training digits."""
    from neurise.experiments._measure import correlation, mean_of
    from neurise.metrics.mmd import mmd

    assert data.train is not None
    assert data.test is not None
    parts = []
    for digit in digits:
        real = data.test[data.test_labels == digit][:held]
        other = data.train[data.labels == digit][-held:]
        own = drawn[labels == digit]
        discrepancy = mmd(own, real, other=other, alphabet=[0, 1], seed=seed)
        parts.append(
            {
                "mmd": float(discrepancy),
                "mmd_floor": discrepancy.floor,
                **correlation(own, real, other, data.symbols.tolist()),
            }
        )
    return mean_of(parts)


@lru_cache(maxsize=1)
def _digits() -> Dataset:
    from neurise.datasets.mnist import mnist as load

    return load()
