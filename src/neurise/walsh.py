r"""Functions of spins as sums of products: from coefficients to values at all configurations, and from a law to its moments.

Every function of q spins is a sum over sets T of sites, :math:`f(x) = \sum_T c_T \prod_{i \in T} \sigma_i`. A vector of the
2^q coefficients and one of the 2^q values go over into each other site by site, in q·2^q additions. The place of a set
is that of the configuration in which its sites alone are up, the first site most significant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

Pair = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""What becomes of the values with a spin down and with it up."""


def place_of(sites: int, members: Iterable[int]) -> int:
    """Return the place of a set of sites among all 2^sites."""
    return sum(1 << (sites - 1 - site) for site in members)


def values_of(coefficients: np.ndarray) -> np.ndarray:
    r"""Values :math:`f(x) = \sum_T c_T \prod_{i \in T} \sigma_i` at all configurations, (2^q,) → (2^q,)."""
    return _site_by_site(coefficients, np.subtract, np.add)


def moments_of(law: np.ndarray) -> np.ndarray:
    r"""Moments :math:`\sum_x \mu(x) \prod_{i \in T} \sigma_i` of all sets, (2^q,) → (2^q,)."""
    return _site_by_site(law, np.add, _taken_off)


def _taken_off(down: np.ndarray, up: np.ndarray) -> np.ndarray:
    return np.asarray(up - down)


def _site_by_site(vector: np.ndarray, first: Pair, second: Pair) -> np.ndarray:
    """Replace the halves of every site by two of their combinations."""
    result = np.array(vector, dtype=np.float64)
    sites = len(result).bit_length() - 1
    if len(result) != 1 << sites:
        raise ValueError(f"a function of spins has 2^sites values; got {len(result):,}")
    for site in range(sites):
        halves = result.reshape(1 << site, 2, -1)
        both = first(halves[:, 0], halves[:, 1]), second(halves[:, 0], halves[:, 1])
        halves[:, 0], halves[:, 1] = both
    return result
