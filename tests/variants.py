"""Every model that is found, and variants of them: what contract tests run over."""

from typing import Any

from neurise import discovery

SOFT = {"keep_prob": 0.4, "cycles": 2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in discovery.names("neurise.models")}
CASES |= {
    "soft": ("neurise", {**SOFT, "chain__hide_noised": False}),
    "hard, in view": ("neurise", {"chain__hide_noised": False, "cycles": 2, "loss": "screening"}),
    "masked": ("neurise", {**SOFT, "chain__kind": "masked_round_robin"}),
    "hard masks": ("neurise", {"chain__kind": "masked_round_robin", "loss": "weighted_screening(0.5)"}),
    "committee": ("neurise", {"members": 2, "architecture__pairwise": True, "loss": "cross_entropy"}),
    "calibrated": ("neurise", {"architecture__pairwise": True, "calibrate": True}),
    "swept": ("neurise", {"corrector__clean": 0.5, "corrector__sweeps": 1, "loss": "tempered_screening(0)"}),
    "stretches": ("neurise", {**SOFT, "chain__hide_noised": False, "chain__stretch": 3}),
    "orders": ("neurise", {"network": "sparse", "architecture__orders": 2}),
    "heat bath": ("ggm", {"reverse": "heat_bath"}),
    "absorbing D3PM": ("d3pm", {"noise": "absorbing"}),
    "published D3PM": ("d3pm", {"posterior": "published", "loss": "cross_entropy"}),
    "uniform SEDD": ("sedd", {"noise": "uniform"}),
    "Euler": ("sedd", {"noise": "uniform", "sampler": "euler", "schedule": "geometric"}),
    "softplus SEDD": ("sedd", {"scores": "softplus", "inputs": "spins"}),
    "softplus SEDD, uniform": ("sedd", {"scores": "softplus", "noise": "uniform", "inputs": "integers"}),
    "uniform DFM": ("dfm", {"source": "uniform", "loss": "generalised_kl"}),
    "parallel DDPD": ("ddpd", {"sampler": "parallel"}),
    "screened pairs": ("pairwise", {"loss": "tempered_screening(0.75)", "l1": 1e-3}),
}
CASES |= {network: ("neurise", {"network": network}) for network in ("causal", "masked", "sparse", "local_mlp")}
