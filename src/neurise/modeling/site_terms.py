"""What the log-likelihood of a row consists of, site by site."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class SiteTerms(NamedTuple):
    """One term per site, and what they say.

    ``given`` is what the term of a site is conditioned on: ``"chain"``, the sites that are generated before it, last place first;
    ``"chains"``, the same on average over several orders; ``"bound"``, its share of a lower bound; ``"others"``, all other sites.
    ``of`` names the total: ``"log_prob"``, ``"elbo"``, or ``"pseudo_log_likelihood"``.
    """

    values: Tensor  # (N, sites) float64, in the order of the model
    total: Tensor  # (N,) float64
    given: str
    of: str
