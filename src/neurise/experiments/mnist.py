"""Handwritten digits, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from neurise.experiments._method_table import SHOWN, TODAY
from neurise.experiments._methods import build, others
from neurise.experiments._samples import Prepared, SampleExperiment
from neurise.experiments.base import Cell, Outcome, Scalar, Scale
from neurise.experiments.parts.figures import SampleGrid
from neurise.experiments.parts.samples import REAL, sample_table, with_real

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset

ACROSS = 8
"""Pictures of each digit that a row keeps."""


class Mnist(SampleExperiment):
    """Table of MMD and correlation error, and one grid of digits per method."""

    title = "MNIST: class-conditional digits"
    reproduces = "Table 1 (a) and Figure 2: binarised MNIST, one row of samples a digit"
    notes = (
        "Every method gets as many rows and, to within a tenth, as many parameters; nothing was searched for. Presets and "
        "NeurISE() have sizes of their own, and all of them the same time.",
        "NeurISE and GGM learn one conditional at a time, the others something about every site of a row: the first two are "
        "asked for 16 sites of each row.",
        "MMD² has the kernel (⟨x,y⟩/784 + 1)³ on spins; both measures are averages over the classes.",
        "The digits to compare with are drawn at random from the test digits of each class, others in each trial.",
        "The data are downloaded once, or read from the folder mnist in NEURISE_DATA.",
    )
    methods = with_real(*SHOWN, *TODAY)
    more_methods = others(*SHOWN, *TODAY, "pairwise")
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"classes": (2,)},
            {"rows": 500, "draws": 16, "held": 50, "steps": 10, "width": 16, "depth": 1, "batch_size": 64}
            | {"timesteps": 8, "sampling_steps": 8, "seconds": 3},
            "two digits, 500 rows, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"classes": (10,)},
            {"rows": 60_000, "draws": 100, "held": 500, "steps": 1500, "width": 256, "depth": 2, "batch_size": 256}
            | {"sites_per_row": 16, "timesteps": 64, "sampling_steps": 64, "seconds": 120},
            "100 samples per digit, width 256, 1500 steps of 256 examples, three trials",
        ),
        "paper": Scale(
            3,
            {"classes": (10,)},
            {"rows": 60_000, "draws": 1000, "held": 1000, "steps": 20_000, "width": 512, "depth": 3, "batch_size": 512}
            | {"sites_per_row": 16, "timesteps": 500, "sampling_steps": 256, "seconds": 110},
        ),
    }
    tables = (sample_table("MNIST", "mnist"),)
    grids = (SampleGrid("digits", "Samples, one row per digit", "digits"),)

    def rows_to_search_on(self, parameters: Mapping[str, Scalar], seed: int) -> Dataset:
        """Draw training digits at random."""
        import numpy as np

        from neurise.experiments._measure import derived

        data = _digits()
        assert data.train is not None
        assert data.labels is not None
        wanted = np.flatnonzero(data.labels < int(parameters["classes"]))  # type: ignore[arg-type]
        chosen = np.random.default_rng(derived(5, seed)).permutation(wanted)[: int(parameters["rows"])]  # type: ignore[arg-type]
        return replace(data, train=data.train[chosen], labels=data.labels[chosen], test=None, test_labels=None)

    def prepared(self, cell: Cell) -> Prepared:
        """Draw training digits."""
        import numpy as np

        from neurise.experiments._measure import derived

        given: Mapping[str, Any] = cell.parameters
        data = _digits()
        assert data.train is not None
        assert data.labels is not None
        wanted = np.flatnonzero(np.isin(data.labels, range(given["classes"])))
        chosen = np.random.default_rng(derived(1, cell.seed)).permutation(wanted)[: given["rows"]]
        model = None if given["method"] == REAL else build(given, data, given["classes"])
        return Prepared(data, data.train[chosen], data.labels[chosen], model)

    def judged(self, cell: Cell, prepared: Prepared, times: dict[str, float]) -> Outcome:
        """Compare digits with test digits, class by class."""
        import numpy as np

        from neurise.experiments._measure import budget, derived, used_rows
        from neurise.experiments.store import pack

        given: Mapping[str, Any] = cell.parameters
        (data, rows, labels, model), digits, spent = prepared, range(given["classes"]), {}
        assert labels is not None
        wanted = np.repeat(np.array(digits, dtype=labels.dtype), given["draws"])
        if model is None:
            drawn, rows = np.concatenate([rows[labels == digit][: given["draws"]] for digit in digits]), rows[:0]
        else:
            drawn, times["sample_seconds"] = _drawn(model, wanted, derived(2, cell.seed))
            spent = budget(model)
        references = {digit: reference(data, digit, given["held"], cell.seed) for digit in digits}
        found = _compared(drawn, wanted, references, data.symbols.tolist(), cell.seed)
        used = used_rows(rows, drawn, np.concatenate([test for test, _ in references.values()]))
        pictures = drawn.reshape(len(digits), -1, 28, 28)[:, :ACROSS]
        count = 0 if model is None else model.num_parameters_
        return Outcome({**found, **used, "parameters": count}, times, {"digits": pack(pictures)}, spent)


def reference(data: Dataset, digit: int, held: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw test digits of a class at random to compare with, and as many training digits for the floor.

    At random, because the files are ordered: their first test digits are of other writers than their last training digits.
    """
    import numpy as np

    from neurise.experiments._measure import derived

    assert data.train is not None
    assert data.test is not None
    source = np.random.default_rng(derived(3, seed, digit))
    parts = (data.test[data.test_labels == digit], data.train[data.labels == digit])
    test, train = (part[source.permutation(len(part))[:held]] for part in parts)
    return test, train


def _drawn(model: Any, labels: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    import time

    import numpy as np

    began = time.perf_counter()
    drawn = np.asarray(model.sample(len(labels), labels, seed=seed))
    return drawn, time.perf_counter() - began


def _compared(
    drawn: np.ndarray,
    labels: np.ndarray,
    references: Mapping[int, tuple[np.ndarray, np.ndarray]],
    symbols: list[Any],
    seed: int,
) -> dict[str, float | None]:
    """Average both measures over the classes, each against test digits; the floor is that of training digits."""
    from neurise.experiments._density import density
    from neurise.experiments._measure import correlation, mean_of
    from neurise.metrics.mmd import mmd

    parts = []
    for digit, (real, other) in references.items():
        own = drawn[labels == digit]
        discrepancy = mmd(own, real, other=other, alphabet=symbols, seed=seed)
        parts.append(
            {
                "mmd": float(discrepancy),
                "mmd_floor": discrepancy.floor,
                **density(own, real, other, symbols, seed),
                **correlation(own, real, other, symbols),
            }
        )
    return mean_of(parts)


@lru_cache(maxsize=1)
def _digits() -> Dataset:
    from neurise.datasets.mnist import mnist as load

    return load()
