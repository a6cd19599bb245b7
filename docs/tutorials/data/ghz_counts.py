"""Write counts of measurement outcomes of a GHZ state, as a device would give them: {"0312": 17, …} in JSON.

Every qubit of (|0…0⟩ + |1…1⟩)/√2 is measured by the tetrahedral measurement, whose outcomes are 0, 1, 2 and 3. The state is
mixed with white noise: with probability 1 − VISIBILITY the outcomes are those of a completely random state.

    python docs/tutorials/data/ghz_counts.py counts.json --qubits 4 --shots 4000 --seed 0
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from neurise import datasets

VISIBILITY = 0.9


def true_law(qubits: int) -> datasets.Dataset:
    """Give the law of the outcomes."""
    return datasets.ghz(qubits, povm="tetrahedral", visibility=VISIBILITY)


def main() -> None:
    """Write the file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("output", type=Path)
    options.add_argument("--qubits", type=int, default=4)
    options.add_argument("--shots", type=int, default=4000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    outcomes = true_law(given.qubits).sample(given.shots, seed=given.seed)
    counts = Counter("".join(map(str, row)) for row in outcomes.tolist())
    given.output.write_text(json.dumps(dict(counts.most_common()), indent=0), encoding="utf-8")
    print(f"{given.output}: {given.shots:,} shots of {given.qubits} qubits, {len(counts):,} different outcomes")


if __name__ == "__main__":
    main()
