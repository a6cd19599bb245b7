"""Total variation distance."""

from __future__ import annotations

from typing import Any

import torch

from neurise.alphabet import Alphabet, as_matrix
from neurise.laws import as_law, distance
from neurise.space import Space


def total_variation(samples_or_pmf: Any, pmf: Any, *, alphabet: Any = None) -> float:
    r"""Total variation distance :math:`\tfrac12 \sum_x |\hat\mu(x) - \mu(x)| \in [0, 1]`.

    The first argument is a law, (p^q,), or samples, (n, sites), which stand for their empirical law. Samples have a floor:
    even a perfect sampler scores above zero, like data of the same size. ``alphabet`` gives the symbols in the order of the
    pmf's digits; without it, the sorted symbols of the samples, all of which must then occur.
    """
    reference = as_law(pmf, len(pmf), "pmf").cpu()
    if getattr(samples_or_pmf, "ndim", None) == 1:
        return distance(as_law(samples_or_pmf, len(reference), "the first law").cpu(), reference)
    rows = as_matrix(samples_or_pmf, "samples")
    sites = rows.shape[1]
    symbols = Alphabet.of(rows, alphabet)
    space = Space(sites, len(symbols))
    if space.size != len(reference):
        raise ValueError(
            f"the pmf has {len(reference):,} entries, and samples of {sites} sites over the {len(symbols)} symbols "
            f"{symbols.symbols.tolist()[:10]} need {space.states}^{sites} = {space.size:,}; if the samples lack a symbol, "
            "give all of them with alphabet="
        )
    counts = torch.bincount(space.index(symbols.encode(rows, "samples")), minlength=space.size)
    return distance(counts / len(rows), reference)
