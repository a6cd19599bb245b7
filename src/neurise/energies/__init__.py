"""Pairwise energies: sparse regressions of every site on the others, and how to match moments."""
