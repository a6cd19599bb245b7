"""Repeat the protein tutorial with a real family, and write its picture and its numbers.

    NEURISE_DATA=… python docs/tutorials/data/real_protein.py

The Kunitz domain, PF00014: 13,600 aligned sequences of 53 sites, at ``msa/PF00014_mgap6.fasta.gz`` below NEURISE_DATA.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import neurise

FIGURES = Path(__file__).resolve().parents[1] / "figures"
MARKED = 25


def main() -> None:
    """Fit, recover, mutate, draw, write."""
    data = neurise.datasets.files(Path(os.environ["NEURISE_DATA"]) / "msa" / "PF00014_mgap6.fasta.gz")
    order = np.random.default_rng(0).permutation(len(data.train))
    train, test = data.train[order[:-2600]], data.train[order[-2600:]]
    model = neurise.NeurISE(width=128, members=1, steps=1500).fit(train, weights=data.weights[order[:-2600]], seed=0)
    measured = neurise.evaluate(model, test, samples=3000, baselines=False)
    found = neurise.structure.recover(model, train, rows=1)
    ranked = neurise.structure.contacts(found, min_separation=5, leave_out="-")
    wild_type = data.train[0]
    effects = neurise.mutations(model, wild_type)
    cysteines = [site for site, letter in enumerate(wild_type) if letter == "C"]
    worst = [effects.log_ratio[site][~effects.is_wild[site]].mean() for site in range(len(wild_type))]
    _draw(ranked, effects, wild_type)
    numbers = {
        "sequences": len(data.train),
        "worth": float(data.weights.sum()),
        "summary": model.summary(),
        "strongest pairs": ranked.pairs[:MARKED].tolist(),
        "cysteines of the first sequence": cysteines,
        "mean effect of a mutation": float(np.mean(worst)),
        "mean effect at cysteines": float(np.mean([worst[site] for site in cysteines])),
        "evaluation": [row.to_dict() for row in measured.rows],
    }
    (FIGURES / "real_protein.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in numbers.items() if name != "evaluation"}, indent=1))
    for row in measured.rows:
        print(row.name, row.value, row.error, row.floor)


def _draw(ranked: neurise.structure.Contacts, effects: object, wild_type: np.ndarray) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 1.5])
    first, second = ranked.pairs[:MARKED].T
    left.plot(np.r_[first, second], np.r_[second, first], "s", markersize=4, color="#d55e00")
    left.plot([0, len(wild_type)], [0, len(wild_type)], color="#bbbbbb")
    left.set(xlabel="site", ylabel="site", title=f"the {MARKED} strongest pairs, 5 or more apart", aspect="equal")
    values = np.ma.masked_where(effects.is_wild | np.isneginf(effects.log_ratio), effects.log_ratio).T
    limit = float(np.percentile(np.abs(values.compressed()), 98))
    image = right.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    right.set_yticks(range(21), effects.symbols[0], fontsize=6)
    right.set_xticks(range(len(wild_type)), wild_type, fontsize=6)
    right.set(title="mutations of the first sequence (below)")
    figure.colorbar(image, ax=right, label="log P(mutant) − log P(wild type)")
    figure.savefig(FIGURES / "real_protein.png", dpi=110)


if __name__ == "__main__":
    main()
