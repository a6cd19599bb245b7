"""Repeat the survey tutorial with a real table, and write its picture and its numbers.

    NEURISE_DATA=… python docs/tutorials/data/real_survey.py

8,000 rows of the census table Adult, at ``tables/adult.csv.gz`` below NEURISE_DATA. One cell in ten is hidden, so that we know
what should have been filled in.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import neurise

FIGURES = Path(__file__).resolve().parents[1] / "figures"
COLUMNS = ["age", "type_employer", "education", "marital", "occupation", "relationship", "sex", "hr_per_week", "income"]
HIDDEN = 0.1


def main() -> None:
    """Fit, sample, impute, draw, write."""
    table = pd.read_csv(Path(os.environ["NEURISE_DATA"]) / "tables" / "adult.csv.gz", usecols=COLUMNS)[COLUMNS]
    table = table.sample(10_000, random_state=0, ignore_index=True)
    rng = np.random.default_rng(0)
    gappy = table.astype(object).mask(rng.random(table.shape) < HIDDEN).convert_dtypes()
    train, unseen = gappy[:8000], table[8000:]
    alphabet = {"age": neurise.bins(8), "hr_per_week": neurise.bins(5)}
    model = neurise.NeurISE(alphabet=alphabet).fit(train, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows with gaps take no part in the comparison
        measured = neurise.evaluate(model, unseen, train=train, samples=4000)
    filled = model.impute(gappy[:2000], most_probable=True)
    hits = {}
    for name in (name for name in COLUMNS if name not in alphabet):
        gap = gappy[:2000][name].isna()
        right = (filled[name] == table[:2000][name])[gap].astype(float)
        usual = (train[name].mode()[0] == table[:2000][name])[gap].astype(float)
        hits[name] = {"model": right.mean(), "most frequent": usual.mean(), "error": right.std() / gap.sum() ** 0.5}
    rows = {row.name: row for row in measured.rows}
    _draw(rows, hits)
    numbers = {
        "rows": len(train),
        "summary": model.summary(),
        "filled rightly": hits,
        "evaluation": [r.to_dict() for r in rows.values()],
    }
    (FIGURES / "real_survey.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(model.summary(), json.dumps(hits, indent=1))
    for row in measured.rows:
        print(row.name, row.value, row.error, row.floor, row.baselines)


def _draw(rows: dict, hits: dict) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    names = ["correlation_mean_abs", "correlation_rms", "correlation_triples"]
    places = np.arange(len(names))
    left.bar(places - 0.3, [rows[name].floor for name in names], 0.2, label="floor: other real rows", color="#444444")
    left.bar(
        places - 0.1,
        [rows[name].value for name in names],
        0.2,
        yerr=[rows[name].error for name in names],
        label="model",
        color="#d55e00",
    )
    for shift, base, colour in ((0.1, "memorize", "#009e73"), (0.3, "independent", "#0072b2")):
        left.bar(places + shift, [rows[name].baselines[base] for name in names], 0.2, label=base, color=colour)
    left.set_xticks(places, ["pairs, mean", "pairs, RMS", "triples, mean"])
    left.set(title="error of correlations in synthetic rows")
    left.margins(y=0.4)
    left.legend(frameon=False)
    places, table = np.arange(len(hits)), list(hits.values())
    right.bar(
        places - 0.2, [h["model"] for h in table], 0.4, yerr=[h["error"] for h in table], label="model", color="#d55e00"
    )
    right.bar(places + 0.2, [h["most frequent"] for h in table], 0.4, label="most frequent answer", color="#444444")
    right.set_xticks(places, hits, rotation=30)
    right.set(title="hidden cells filled rightly", ylim=(0, 1.2))
    right.legend(frameon=False)
    figure.savefig(FIGURES / "real_survey.png", dpi=110)


if __name__ == "__main__":
    main()
