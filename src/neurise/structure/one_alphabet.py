"""Couplings need sites of one alphabet."""

from __future__ import annotations

from typing import Any

from neurise.columns import Columns


def check_one_alphabet(alphabet: Any) -> Any:
    """Return the alphabet of all sites; columns that have symbols of their own are refused."""
    if isinstance(alphabet, Columns):
        raise NotImplementedError(
            "couplings are compared between columns of one alphabet, and those of this model have their own; "
            "a Pairwise model of the table has couplings_, in the gauge of each column"
        )
    return alphabet
