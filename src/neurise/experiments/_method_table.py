"""The methods that have a name of their own. Rows keep what stands here, not this file: a new method makes no other row old."""

from __future__ import annotations

from collections.abc import Mapping

from neurise.experiments.parts.method import ALONE, Method

METHODS: Mapping[str, Method] = {
    "neurise": Method("NeurISE", "neurise", ALONE),
    "ggm": Method("GGM", "ggm", {"keep_prob": 0.2, "cycles": 3, **ALONE}),
    "sedd": Method("SEDD", "sedd"),
    "d3pm": Method("D3PM", "d3pm"),
    "dfm": Method("DFM", "dfm"),
    "md4": Method("MD4", "md4"),
    "udlm": Method("UDLM", "udlm"),
    "ddpd": Method("DDPD", "ddpd"),
    "remdm": Method("ReMDM", "dfm", {"source": "mask", "renoise": 4.0}),
    "neurise_default": Method("NeurISE()", "neurise", trains=False, bare=True, timed=True),
    "neurise_committee": Method("NeurISE committee", "neurise", {"members": 4, "architecture__pairwise": True}),
    "neurise_paper": Method("NeurISE, the paper's form", "neurise", form="paper"),
    "neurise_soft": Method("NeurISE, soft noise", "neurise", {"keep_prob": 0.2, "cycles": 3, **ALONE}),
    "neurise_cross_entropy": Method("NeurISE, cross-entropy", "neurise", {"loss": "cross_entropy", **ALONE}),
    "sedd_softplus": Method("SEDD, softplus layer", "sedd", {"scores": "softplus"}),
    "sedd_raw": Method("SEDD, raw scores", "sedd", {"scores": "raw"}),
    "sedd_raw_slow": Method("SEDD, raw, slower", "sedd", {"scores": "raw", "training__learning_rate": 2e-4}),
    "sedd_spins": Method("SEDD, numbers −1, 1", "sedd", {"inputs": "spins"}),
    "sedd_integers": Method("SEDD, integers", "sedd", {"inputs": "integers"}),
    "d3pm_published": Method("D3PM, published posterior", "d3pm", {"posterior": "published"}),
    "d3pm_absorbing": Method("D3PM, absorbing", "d3pm", {"noise": "absorbing"}),
    "pairwise": Method("pairwise", "pairwise", trains=False),
    "independent": Method("independent", "independent", trains=False),
    "memorize": Method("memorised rows", "memorize", trains=False),
}
COMPARED = ("neurise", "ggm", "sedd", "d3pm", "dfm")
"""The five of the paper, each as the library has it."""
SHOWN = ("neurise", "neurise_paper", *COMPARED[1:])
"""What every experiment shows: the paper's own form of NeurISE beside the library's, and the others."""
TODAY = ("md4", "udlm", "ddpd", "remdm", "neurise_default")
"""What has come since: peers that differ in their objective or their sampler, and NeurISE as a user gets it."""
FEW_TRIALS = 3
"""Trials of what has come since, where those of the paper have more."""
