"""Write a made-up survey with gaps, beside the same survey without them.

Answers depend on each other as they do in real ones: age decides much about work, work and education about income, income
about owning a home. Then

- cells go missing: some at random, and incomes more often where they are high, as people are shy about them;
- a few lines are spoilt: the ages of young and old people are mixed up, so that every answer is possible, and together they
  hardly are (a retired person of 22). The column ``spoilt`` of the complete file says which.

    python docs/tutorials/data/survey.py survey.csv --complete complete.csv --rows 4000 --seed 0
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

REGIONS = ["north", "south", "east", "west"]
SCHOOLS = ["primary", "secondary", "bachelor", "master"]
WORK = ["student", "employed", "self-employed", "unemployed", "retired"]
INCOMES = ["low", "middle", "high"]
GAPS = 0.06
SPOILT = 0.01


def answers(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw the complete answers of n people."""
    age = np.clip(18 + rng.gamma(2.6, 11, n), 18, 85).astype(int)
    region = rng.choice(len(REGIONS), n, p=[0.2, 0.35, 0.25, 0.2])
    school = _pick(
        rng, np.stack([0.02 * (age - 40), np.full(n, 1.2), 0.6 - 0.012 * (age - 40), np.where(age > 23, 0.0, -4)], 1)
    )
    young, old = age < 25, age >= 65
    work = _pick(rng, np.stack([
        np.where(young, 1.5, -3.0), np.where(old, -1.5, 2.2), np.where(old, -1.0, 0.4) - np.where(young, 1, 0),
        np.where(old, -4.0, 0.2) - 0.3 * school, np.where(old, 3.0, np.where(age > 58, 0.8, -6.0)),
    ], 1))  # fmt: skip
    earns = np.isin(work, (1, 2))
    income = _pick(rng, np.stack([np.where(earns, -0.6, 1.2) - 0.3 * school, np.full(n, 0.6),
                                  np.where(earns, 0.2, -1.8) + 0.55 * school - 0.6 + 0.3 * (region == 1)], 1))  # fmt: skip
    owns = rng.random(n) < 1 / (1 + np.exp(-(-2.6 + 0.04 * (age - 18) + 1.1 * income)))
    household = np.clip(1 + rng.poisson(np.where(age < 25, 0.5, np.where(old, 0.7, 1.6))), 1, 6)
    health = _pick(rng, np.stack([0.03 * (age - 45), np.full(n, 0.8), 0.9 - 0.03 * (age - 45) + 0.2 * income], 1))
    return pd.DataFrame({
        "age": age, "region": np.array(REGIONS)[region], "school": np.array(SCHOOLS)[school], "work": np.array(WORK)[work],
        "income": np.array(INCOMES)[income], "home": np.where(owns, "own", "rent"), "household": household,
        "health": np.array(["poor", "fair", "good"])[health],
    })  # fmt: skip


def spoil(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Mirror the age of some of the youngest and the oldest people, and say which."""
    extreme = (table["age"] < 25) | (table["age"] >= 65)
    spoilt = extreme & (rng.random(len(table)) < SPOILT / extreme.mean())
    table = table.assign(spoilt=spoilt)
    table.loc[spoilt, "age"] = 18 + 85 - table.loc[spoilt, "age"]
    return table


def hide(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Leave cells empty."""
    shy = {"income": np.where(table["income"] == "high", 0.3, 0.1)}
    gaps = {name: rng.random(len(table)) < shy.get(name, GAPS) for name in table.columns}
    return table.mask(pd.DataFrame(gaps, index=table.index)).astype({"age": "Int64", "household": "Int64"})


def _pick(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    return (logits + rng.gumbel(size=logits.shape)).argmax(1)


def main() -> None:
    """Write both files."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("output", type=Path)
    options.add_argument("--complete", type=Path)
    options.add_argument("--rows", type=int, default=4000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    rng = np.random.default_rng(given.seed)
    complete = spoil(answers(given.rows, rng), rng)
    survey = hide(complete.drop(columns="spoilt"), rng)
    survey.to_csv(given.output, index=False)
    if given.complete:
        complete.to_csv(given.complete, index=False)
    print(
        f"{given.output}: {given.rows:,} rows of {survey.shape[1]} columns, {int(survey.isna().sum().sum()):,} cells are empty"
    )


if __name__ == "__main__":
    main()
