"""Write an alignment of a made-up protein family in FASTA, drawn from a known law.

The law is the one that real families are modelled by, P(x) ∝ exp(Σ f_i(x_i) + Σ W_ij(x_i, x_j)): every site prefers some
amino acids, and sites that touch in the fold prefer pairs that suit each other (opposite charges, a large beside a small
residue). The fold is a hairpin: site i touches site L − 1 − i, and one further contact holds the ends of the strands
together. Sequences are drawn by Gibbs sampling, one independent chain per sequence; then some of them lose their ends, as
fragments in a database do.

    python docs/tutorials/data/protein_family.py family.fasta --sequences 3000 --seed 0
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

LETTERS = "-ACDEFGHIKLMNPQRSTVWY"
CHARGE = {"D": -1, "E": -1, "K": 1, "R": 1, "H": 0.5}
VOLUME = {
    "A": 89, "C": 109, "D": 111, "E": 138, "F": 190, "G": 60, "H": 153, "I": 167, "K": 169, "L": 167, "M": 163,
    "N": 114, "P": 113, "Q": 144, "R": 174, "S": 89, "T": 116, "V": 140, "W": 228, "Y": 194,
}  # fmt: skip
"""Volumes of the residues in cubic ångström."""
STRENGTH = 2.0
SPREAD = 1.2
SWEEPS = 200
FRAGMENTS = 0.15


def contacts_of(sites: int) -> np.ndarray:
    """List the pairs that touch: the rungs of a hairpin, and one contact between its strands that is no rung."""
    rungs = [(i, sites - 1 - i) for i in range(sites // 2 - 2)]
    return np.array([*rungs, (2, sites // 2 + 3)])


def law(sites: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the fields, (sites, 21), and give the contacts and their tables, (contacts, 21, 21)."""
    rng = np.random.default_rng(seed)
    fields = rng.normal(0, SPREAD, (sites, len(LETTERS)))
    fields[:, 0] = -4.0  # gaps inside a sequence are rare
    charge = np.array([CHARGE.get(letter, 0.0) for letter in LETTERS])
    volume = np.array([(VOLUME.get(letter, 138) - 138) / 42 for letter in LETTERS])
    pairs = contacts_of(sites)
    mix = rng.uniform(0.3, 0.7, (len(pairs), 1, 1))  # how much of a contact is charge, and how much size
    tables = -STRENGTH * (2 * mix * np.outer(charge, charge) + (1 - mix) * np.outer(volume, volume))
    return fields, pairs, tables


def log_weight(rows: np.ndarray, fields: np.ndarray, pairs: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Return log P of rows of tokens, (N, sites), up to a constant."""
    own = fields[np.arange(rows.shape[1]), rows].sum(1)
    return own + sum(table[rows[:, i], rows[:, j]] for (i, j), table in zip(pairs, tables, strict=True))


def draw(n: int, fields: np.ndarray, pairs: np.ndarray, tables: np.ndarray, seed: int) -> np.ndarray:
    """Draw n independent rows of tokens by Gibbs sampling."""
    rng = np.random.default_rng(seed)
    sites, states = fields.shape
    rows = rng.integers(1, states, (n, sites))
    touching = [[(j, t) if i == site else (i, t.T) for (i, j), t in zip(pairs, tables, strict=True) if site in (i, j)]
                for site in range(sites)]  # fmt: skip
    for _ in range(SWEEPS):
        for site in range(sites):
            logits = fields[site] + sum(
                (table[:, rows[:, other]].T for other, table in touching[site]), np.zeros((n, 1))
            )
            rows[:, site] = (logits + rng.gumbel(size=(n, states))).argmax(1)
    return rows


def cut(rows: np.ndarray, seed: int) -> np.ndarray:
    """Replace the first or the last sites of some rows by gaps."""
    rng = np.random.default_rng(seed)
    rows = rows.copy()
    for row in np.flatnonzero(rng.random(len(rows)) < FRAGMENTS):
        lost = int(rng.integers(1, rows.shape[1] // 5))
        rows[row, slice(lost) if rng.random() < 0.5 else slice(-lost, None)] = 0
    return rows


def main() -> None:
    """Write the file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("output", type=Path)
    options.add_argument("--sequences", type=int, default=4000)
    options.add_argument("--sites", type=int, default=16)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    rows = cut(draw(given.sequences, *law(given.sites, given.seed), given.seed), given.seed)
    lines = [f">seq{number}\n{''.join(LETTERS[token] for token in row)}\n" for number, row in enumerate(rows.tolist())]
    given.output.write_text("".join(lines), encoding="utf-8")
    print(f"{given.output}: {given.sequences:,} sequences of {given.sites} sites")


if __name__ == "__main__":
    main()
