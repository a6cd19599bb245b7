"""Repeat the annealer tutorial with reads of a real machine, and write its picture and its numbers.

    NEURISE_DATA=… python docs/tutorials/data/real_annealer.py

62 qubits of a D-Wave 2X, at ``dwave/dwave2x_q62_train400k_hist.npz`` below NEURISE_DATA: a histogram of 400,000 reads. The model
learns from 20,000 of them and is measured on 20,000 others. What was programmed does not come with the reads.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from neurise import Pairwise, evaluate, structure

FIGURES = Path(__file__).resolve().parents[1] / "figures"
READS = 20_000
SECONDS = 200
"""Time to learn."""


def main() -> None:
    """Fit, recover, draw, write."""
    stored = np.load(Path(os.environ["NEURISE_DATA"]) / "dwave" / "dwave2x_q62_train400k_hist.npz")
    spins = np.unpackbits(stored["configs_packed"], axis=1, count=int(stored["n_qubits"])).astype(np.int8) * 2 - 1
    share = stored["counts"] / stored["counts"].sum()
    reads = spins[np.random.default_rng(0).choice(len(spins), 2 * READS, p=share)]
    train, test = reads[:READS], reads[READS:]
    model = Pairwise().fit(train, seed=0, max_seconds=SECONDS)
    found = structure.recover(model, train, rows=200)
    structure.draw(found, FIGURES / "real_annealer.png", layout="spring")
    measured = evaluate(model, test, train=train, samples=2000, baselines=False)
    numbers = {
        "reads": READS,
        "qubits": spins.shape[1],
        "summary": model.summary(),
        "edges": len(found.edges),
        "strongest": float(np.nanmax(np.abs(found.couplings))),
        "fields beyond 3 errors": int((np.abs(found.fields) > 3 * found.field_errors).sum()),
        "evaluation": [row.to_dict() for row in measured.rows],
    }
    (FIGURES / "real_annealer.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in numbers.items() if name != "evaluation"}, indent=1))
    for row in measured.rows:
        print(row.name, row.value, row.error, row.floor)


if __name__ == "__main__":
    main()
