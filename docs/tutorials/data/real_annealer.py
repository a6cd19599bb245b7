"""Repeat the annealer tutorial with reads of a real machine, and write its picture and its numbers.

    NEURISE_DATA=… python docs/tutorials/data/real_annealer.py

263 qubits of a D-Wave Advantage 4.1, whose reads are at ``dwave/advantage41_q263.npz`` below NEURISE_DATA.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from neurise import Pairwise, datasets, evaluate, structure

FIGURES = Path(__file__).resolve().parents[1] / "figures"
SECONDS = 240
"""Time to learn."""


def main() -> None:
    """Fit, recover, draw, write."""
    data = datasets.dwave("advantage41_q263")
    model = Pairwise().fit(data, seed=0, max_seconds=SECONDS)
    found = structure.recover(model, data, rows=1, programmed=data)
    heat = found.temperature
    structure.draw(found, FIGURES / "real_annealer.png", data, layout="pegasus:16", programmed=data)
    measured = evaluate(model, data, samples=1000, baselines=False)
    told = structure.temperature.programmed_matrix(data, len(found.couplings))
    with np.errstate(invalid="ignore", divide="ignore"):
        off = (found.couplings - heat.slope * told) / found.errors
    upper = np.triu(np.isfinite(off), 1)
    numbers = {
        "reads": len(data.train),
        "qubits": data.space.sites,
        "couplers": len(data.edges),
        "model": repr(model),
        "temperature": heat.to_dict(),
        "beyond 3 errors": {
            "programmed couplings": f"{int((np.abs(off[upper & (told != 0)]) > 3).sum())} of {int((upper & (told != 0)).sum())}",
            "never programmed": f"{int((np.abs(off[upper & (told == 0)]) > 3).sum())} of {int((upper & (told == 0)).sum())}",
        },
        "evaluation": [row.to_dict() for row in measured.rows],
    }
    (FIGURES / "real_annealer.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in numbers.items() if name != "evaluation"}, indent=1))
    for row in measured.rows:
        print(row.name, row.value, row.error, row.floor)


if __name__ == "__main__":
    main()
