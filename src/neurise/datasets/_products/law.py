"""Models of products of spins as data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._known_law import KnownLaw
from neurise.datasets._products.products import SpinProducts


class ProductsLaw(KnownLaw):
    """Products of spins: written out where there are few sites, tempered beyond."""

    model: SpinProducts

    @property
    def narrow(self) -> bool:
        """Sites are eliminated in pairwise models alone."""
        return False

    def _eliminate(self) -> NoReturn:
        raise NotImplementedError(f"the sites of {self.name} are not eliminated")

    def _write_out(self) -> tuple[np.ndarray, float]:
        law = self.model.written_out()
        top = law.max()
        law -= top
        np.exp(law, out=law)
        total = law.sum()
        law /= total
        return law, float(top) + math.log(total)


def products_dataset(
    terms: Sequence[Sequence[int]],
    strengths: np.ndarray,
    fields: np.ndarray,
    *,
    shape: tuple[int, ...] | None = None,
    **options: Any,
) -> Dataset:
    """Give products of spins ±1 as a data set; ``info`` has ``terms``, their ``strengths``, and ``fields``."""
    spins = np.array([-1, 1], dtype=np.int8)
    law = ProductsLaw(SpinProducts(terms, strengths, fields), spins, **options)
    for name, value in {"terms": [tuple(term) for term in terms], "strengths": strengths, "fields": fields}.items():
        law.info.put(name, value)
    return law.dataset(list(range(len(fields))), shape=shape)
