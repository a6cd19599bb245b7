"""Markov chains whose law is known: Glauber sweeps and parallel tempering.

Both work on anything that gives conditionals of single sites: a pairwise model
(:class:`neurise.interactions.Interactions`), or a network through :class:`SiteBySite`. Chains are the rows of a tensor of
tokens, (chains, sites), and advance together.
"""

from neurise.mcmc.glauber import FlipConditionals, SiteBySite, sweep
from neurise.mcmc.mixing import Diagnostics, autocorrelation_time, r_hat
from neurise.mcmc.tempering import Target, Tempered, parallel_tempering

__all__ = [
    "Diagnostics",
    "FlipConditionals",
    "SiteBySite",
    "Target",
    "Tempered",
    "autocorrelation_time",
    "parallel_tempering",
    "r_hat",
    "sweep",
]
