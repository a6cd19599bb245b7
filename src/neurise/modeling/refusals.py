"""What a model with learnt conditionals cannot be asked for together: errors that name the parameters and the way out."""

from __future__ import annotations

from collections.abc import Collection

from neurise import checks
from neurise.modeling.groups import Architecture, Chain, Corrector
from neurise.networks.site_mlp import SITE_INPUTS


def refuse_orders(
    keep_prob: float, chain: Chain, corrector: Corrector, architecture: Architecture, *, hard: bool, sites: int
) -> None:
    """Raise ValueError where the sites cannot be learnt in several orders."""
    wrong = []
    if not hard:
        wrong.append(f"keep_prob={keep_prob}, chain__hide_noised={chain.hide_noised}: hard noise has one")
    if chain.steps is not None and chain.steps < sites:
        wrong.append(f"chain__steps={chain.steps}: a chain that visits every site has one")
    if corrector.clean:
        wrong.append(f"corrector__clean={corrector.clean}: sweeps need the conditionals of one chain")
    if wrong:
        raise ValueError(
            f"architecture__orders={architecture.orders!r} mixes likelihoods: {'; '.join(wrong)}; set "
            "architecture__orders=1 or change these"
        )


def refuse_rows(
    network: str, keep_prob: float, cycles: int, chain: Chain, corrector: Corrector, *, pairwise: bool, sites: int
) -> None:
    """Raise ValueError where a network that answers for a whole row cannot serve."""
    wrong = []
    if keep_prob:
        wrong.append(f"keep_prob={keep_prob}: soft noise leaves traces of all sites (set 0, or network='site_mlp')")
    if cycles != 1 or chain.steps not in (None, sites):
        wrong.append(f"cycles={cycles}, chain__steps={chain.steps}: hard noise needs one cycle")
    if not chain.hide_noised:
        wrong.append("chain__hide_noised=False: erased sites cannot be in its view")
    if corrector.anytime:
        wrong.append("corrector__anytime=True: sweeps between its steps need network='site_mlp'")
    if pairwise:
        wrong.append("architecture__pairwise=True: pairwise terms are for network='site_mlp'")
    if wrong:
        raise ValueError(f"network {network!r} learns a law site by site: {'; '.join(wrong)}")


def refuse_site_input(site_input: str, network: str, options: Collection[str]) -> None:
    """Raise ValueError where a network is not shown the site that it is asked for, and so cannot be shown it otherwise."""
    checks.one_of("architecture__site_input", site_input, SITE_INPUTS)
    if "site_input" not in options:
        raise ValueError(
            f"architecture__site_input={site_input!r}: network {network!r} has no such input; set network='site_mlp', or leave "
            "it out"
        )
