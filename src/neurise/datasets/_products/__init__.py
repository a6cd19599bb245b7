"""Spins with products of any number of them in the energy."""
