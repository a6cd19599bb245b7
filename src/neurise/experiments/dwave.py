"""Reads of a quantum annealer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from neurise.experiments._method_table import SHOWN, TODAY
from neurise.experiments._methods import build, others
from neurise.experiments._samples import Prepared, SampleExperiment
from neurise.experiments.base import Cell, Outcome, Scalar, Scale
from neurise.experiments.parts.samples import REAL, sample_table, with_real

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset

PAIR_ROWS = 5000
"""Rows of a set that the MMD compares in pairs."""


class Dwave(SampleExperiment):
    """Table of MMD and correlation error on reads of an Advantage machine."""

    title = "D-Wave: reads of an Advantage annealer"
    reproduces = "Table 1 (b): 2000 qubits of an Advantage machine, 8·10⁴ reads to train and 2·10⁴ to test"
    notes = (
        "The paper's reads are not public. These are of Advantage_system4.1, 2084 qubits (263 below paper scale), by Hanussek, "
        "Pawłowski, Mzaouali and Gardas (CC BY 4.0): downloaded once, or read from the folder dwave in NEURISE_DATA.",
        "Of its 20,000 reads (2500 below paper scale) a random fifth is held back, another in each trial; the paper had 8·10⁴ "
        "to train and 2·10⁴ to test.",
        "Every method gets as many rows and, to within a tenth, as many parameters; nothing was searched for. Presets and "
        "NeurISE() have sizes of their own, and all of them the same time.",
        "NeurISE and GGM learn one conditional at a time, the others something about every site of a row: the first two are "
        "asked for 16 sites of each row.",
        "MMD² has the kernel (⟨x,y⟩/q + 1)³, at most 16; the paper's figures, up to 96, have another, which it does not name.",
    )
    methods = with_real(*SHOWN, *TODAY)
    more_methods = others(*SHOWN, *TODAY, "pairwise")
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1,
            {"source": ("advantage41_q263",)},
            {"rows": 500, "draws": 200, "steps": 10, "width": 16, "depth": 1, "batch_size": 64}
            | {"timesteps": 8, "sampling_steps": 8, "seconds": 3},
            "263 qubits, 500 reads, a small network hardly trained",
        ),
        "laptop": Scale(
            3,
            {"source": ("advantage41_q263",)},
            {"rows": 2000, "draws": 500, "steps": 1500, "width": 256, "depth": 2, "batch_size": 256}
            | {"sites_per_row": 16, "timesteps": 64, "sampling_steps": 64, "seconds": 60},
            "263 qubits, 2000 reads to learn from and 500 to test, 500 samples, width 256, 1500 steps of 256, three trials",
        ),
        "paper": Scale(
            3,
            {"source": ("advantage41_q2084",)},
            {"rows": 16_000, "draws": 4000, "steps": 12_000, "width": 512, "depth": 3, "batch_size": 512}
            | {"sites_per_row": 16, "timesteps": 500, "sampling_steps": 256, "seconds": 120},
        ),
    }
    tables = (sample_table("D-Wave", "dwave"),)

    def rows_to_search_on(self, parameters: Mapping[str, Scalar], seed: int) -> Dataset:
        """Take reads that the first split has to learn from."""
        data, reads, _ = _reads(str(parameters["source"]), seed)
        rows = reads[: int(parameters["rows"])]  # type: ignore[arg-type]
        return replace(data, train=rows, weights=None, test=None, test_weights=None)

    def prepared(self, cell: Cell) -> Prepared:
        """Take reads to learn from."""
        given: Mapping[str, Any] = cell.parameters
        data, reads, _ = _reads(given["source"], cell.seed)
        if given["method"] == REAL:
            return Prepared(data, reads[:0], None, None)
        rows = _shuffled(reads, cell.seed)
        return Prepared(
            data, rows[: _there("rows", given["rows"], len(reads), given["source"])], None, build(given, data)
        )

    def judged(self, cell: Cell, prepared: Prepared, times: dict[str, float]) -> Outcome:
        """Compare samples with reads that were held back."""
        from neurise.experiments._measure import budget, derived, draw, used_rows

        given: Mapping[str, Any] = cell.parameters
        data, reads, held = _reads(given["source"], cell.seed)
        shuffled, model, spent = _shuffled(reads, cell.seed), prepared.model, {}
        if model is None:
            drawn = shuffled[-int(given["draws"]) :]
        else:
            drawn, times["sample_seconds"] = draw(model, int(given["draws"]), derived(2, cell.seed))
            spent = budget(model)
        count = 0 if model is None else model.num_parameters_
        found = {**_compared(drawn, held, shuffled, data, cell.seed), **used_rows(prepared.rows, drawn, held)}
        return Outcome({**found, "parameters": count}, times, budget=spent)


def _shuffled(reads: np.ndarray, seed: int) -> np.ndarray:
    import numpy as np

    from neurise.experiments._measure import derived

    return np.random.default_rng(derived(1, seed)).permutation(reads)


def _there(name: str, wanted: int, there: int, source: str) -> int:
    """Refuse a cell that asks for more reads than there are: its row would say what was not so."""
    if wanted > there:
        raise ValueError(f"{name} = {wanted:,}: {source} has {there:,} reads to learn from; give at most so many")
    return wanted


def _compared(
    drawn: np.ndarray, held: np.ndarray, reads: np.ndarray, data: Dataset, seed: int
) -> dict[str, float | None]:
    from neurise.experiments._density import density
    from neurise.experiments._measure import correlation
    from neurise.metrics.mmd import mmd

    symbols = data.symbols.tolist()
    real, other = held[:PAIR_ROWS], reads[:PAIR_ROWS]
    discrepancy = mmd(drawn[:PAIR_ROWS], real, other=other, alphabet=symbols, seed=seed)
    return {
        "mmd": float(discrepancy),
        "mmd_floor": discrepancy.floor,
        **density(drawn[:PAIR_ROWS], real, other, symbols, seed),
        **correlation(drawn, held, reads[: len(held)], symbols),
    }


@lru_cache(maxsize=2)
def _reads(source: str, split: int) -> tuple[Dataset, np.ndarray, np.ndarray]:
    """Give the data set and its reads, each as often as it occurred: to learn from, and a random fifth held back."""
    from neurise.datasets.dwave import dwave as load
    from neurise.evaluation.case import Rows

    data = load(source, seed=split, test_fraction=0.2)
    assert data.train is not None
    assert data.test is not None
    parts = (Rows(data.train, weights=data.weights), Rows(data.test, weights=data.test_weights))
    reads, held = (part.observations()[0] for part in parts)
    return data, reads, held
