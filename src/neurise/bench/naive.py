"""The reverse chain as one writes it first: two passes a step, the concatenated input, a Python loop.

Every figure of speed is a ratio to this. It draws from the same law: only its cost is naive. It asks the
network at constant sites too, so it serves where there are none.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from neurise.conditionals import NetworkConditionals
from neurise.networks._inputs import visible_one_hot
from neurise.networks.site_mlp import SiteMLP
from neurise.sampling.categorical import draw, uniforms


@torch.no_grad()
def reverse(
    conditionals: NetworkConditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    steps: int | None = None,
) -> Tensor:
    """Run the chain from X_T = x back to X_0, (n, sites) tokens; the row as it is and the row with its site changed.

    ``steps`` ends it early, for timing: every step costs the same.
    """
    network, noise = conditionals.network, conditionals.noise
    if not isinstance(network, SiteMLP):
        raise ValueError(f"the naive reference is written for a SiteMLP, not for {type(network).__name__}")
    weight = torch.cat([network.time[None], network.site, network.token, network.label]).T.contiguous()
    times = torch.arange(noise.num_steps, device=x.device)
    x = x.clone()
    for t in list(reversed(range(noise.num_steps)))[:steps]:
        u = t % noise.space.sites
        changed = x.clone()
        changed[:, u] = (x[:, u] + 1) % noise.space.states
        step = times[t : t + 1]
        hidden = conditionals.hidden(step)
        here, there = (_logits(network, weight, step, noise.site(step), rows, hidden, y) for rows in (x, changed))
        log_conditional = torch.log_softmax(0.5 * (here + there), dim=-1)  # equal: neither pass sees the site
        x[:, u] = draw(noise.reverse(log_conditional, x[:, u]), uniforms(len(x), generator=generator))
    return x


def _logits(
    network: SiteMLP, weight: Tensor, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None
) -> Tensor:
    """Evaluate the network on (time, site one-hot, x with the site hidden, label) in one piece."""
    n, (sites, states), dtype = len(x), (network.space.sites, network.space.states), weight.dtype
    tau = (2 * t / network.num_steps - 1).to(dtype)
    site = functional.one_hot(u, sites).to(dtype)
    # The library's own one-hot, which is quicker than torch's: only what the loop costs is naive.
    parts = [tau.expand(n, 1), site.expand(n, -1), visible_one_hot(x, u, hidden, states, dtype)]
    if network.classes:
        parts.append(
            x.new_zeros(n, network.classes, dtype=dtype)
            if y is None
            else functional.one_hot(y, network.classes).to(dtype)
        )
    whole = torch.cat(parts, dim=-1)
    logits = network.answer(network.hidden(functional.linear(whole, weight, network.bias)), u.expand(n))
    return logits if network.pair is None else logits + (network.pair[u] @ parts[2][..., None]).squeeze(-1)
