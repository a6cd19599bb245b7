"""Pairwise models: their graphs, and three ways to their law."""
