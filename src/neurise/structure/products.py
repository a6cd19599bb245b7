"""The terms of an energy that are products of three and four spins."""

from __future__ import annotations

from typing import NamedTuple

from neurise.conditionals.energy_conditionals import EnergyConditionals
from neurise.schema import Schema


class Product(NamedTuple):
    r"""A term :math:`\theta \prod_i \sigma_i` of three or four spins, with its standard error."""

    sites: tuple[int, ...]
    strength: float
    error: float

    def __str__(self) -> str:
        return f"{'·'.join(map(str, self.sites))}: {self.strength:+.3f} ± {self.error:.3f}"


def products(energy: EnergyConditionals, schema: Schema) -> tuple[Product, ...]:
    """Return the products of three and four spins, the strongest first; sites are the user's."""
    found = []
    for sites, strength, error in zip(
        energy.products.tolist(), energy.strengths.tolist(), energy.strength_errors.tolist(), strict=True
    ):
        own = sorted(int(schema.order[site]) for site in sites if site >= 0)
        found.append(Product(tuple(own), strength, error))
    return tuple(sorted(found, key=lambda product: -abs(product.strength)))
