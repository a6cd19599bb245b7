"""Reads of quantum annealers: where they come from, and the problem that they belong to."""
