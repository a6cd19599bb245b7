"""Read models that version 0.1 saved: translate their parameters and the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

GROUPS = {
    "training": (
        "batch_size",
        "learning_rate",
        "weight_decay",
        "warmup",
        "clip_norm",
        "average_decay",
        "patience",
        "validation_fraction",
        "precision",
    ),
    "architecture": ("heads", "residual", "pairwise"),
    "chain": ("hide_noised", "unseen"),
    "corrector": ("clean", "sweeps"),
}
"""Where parameters stand now that stood beside all others."""
CHAINS = ("neurise", "ggm")
"""Models whose networks became conditionals; the others kept their tensors."""


def converted(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Translate what a file of format 1 holds to what today's files hold."""
    old = dict(config["params"])
    if config["model"] not in CHAINS:
        params = {_new_name(name, config["model"]): value for name, value in old.items()}
        return {**config, "params": params, "learnt": None}, dict(tensors)
    old.setdefault("unseen", 0.0)  # what models did before they had the parameter
    hide = bool(old.get("hide_noised", False))
    found, members = _members(tensors)
    described = [_member(old, weights, hide) for weights in members]
    constant = any(token >= 0 for token in config["schema"]["constant"])
    whole: dict[str, Any] = described[0]
    prefix = ""
    if found:
        shares = [1 / len(members)] * len(members)
        whole, prefix = {"answers": "committee", "weights": shares, "members": described}, "members.{}."
    if constant:
        whole = {"answers": "known_sites", "unseen": old["unseen"], "inner": whole}
        prefix = f"inner.{prefix}"
    named = {
        prefix.format(number) + _tensor_name(name, weights): tensor
        for number, weights in enumerate(members)
        for name, tensor in weights.items()
    }
    params = {_new_name(name, config["model"]): value for name, value in old.items()}
    if config["model"] == "ggm":
        params["chain__hide_noised"] = False
    learnt = {"conditionals": whole}
    return {**config, "params": params, "learnt": learnt}, named


def _new_name(name: str, model: str) -> str:
    name = "pairwise" if name == "skip" else name
    if model == "pairwise" and name == "sweeps":
        return name
    return next((f"{group}__{name}" for group, names in GROUPS.items() if name in names), name)


def _members(tensors: Mapping[str, Tensor]) -> tuple[bool, list[dict[str, Tensor]]]:
    """Take a committee, whose weights were stacked under names with slashes, apart."""
    stacked = {name.removeprefix("members."): tensor for name, tensor in tensors.items() if name.startswith("members.")}
    if not stacked:
        return False, [dict(tensors)]
    size = len(next(iter(stacked.values())))
    return True, [{n.replace("/", "."): tensor[k] for n, tensor in stacked.items()} for k in range(size)]


def _member(params: Mapping[str, Any], weights: Mapping[str, Tensor], hide: bool) -> dict[str, Any]:
    """Describe the conditionals of one network; it saw constant sites, whose tokens had been given equal weights."""
    network: dict[str, Any] = {"network": params["network"], "residual": bool(params.get("residual", False))}
    if params["network"] == "site_mlp":
        network |= {"width": weights["token"].shape[-1], "heads": params.get("heads", "shared")}
        network["depth"] = sum(name.startswith("hidden.norms.") and name.endswith(".weight") for name in weights)
    else:
        network |= {"width": weights["output"].shape[-2], "depth": sum(n.startswith("weights.") for n in weights)}
    if "pair" in weights:
        terms = {"network": "pairwise_terms", "width": 0, "depth": 0, "clean": "clean_pair" in weights}
        network = {"sum": [terms, network]}
    return {"answers": "network_conditionals", "network": network, "hide_noised": hide, "ignore_constant": False}


def _tensor_name(name: str, weights: Mapping[str, Tensor]) -> str:
    if "pair" not in weights:
        return f"network.{name}"
    if name in ("pair", "pair_bias", "clean_pair", "clean_pair_bias"):
        return f"network.parts.0.{name.replace('pair_bias', 'bias')}"
    return f"network.parts.1.{name}"
