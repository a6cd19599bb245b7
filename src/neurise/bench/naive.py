"""Sampling and training as one writes them first: the concatenated input, a Python loop, and two passes per reverse step.

Every figure of speed is a ratio to this. It draws from the same law and descends the same loss: only its cost is naive. It
is written for the conditionals of one SiteMLP with one output layer and sites as one-hots, and for data without constant sites.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Generator, Tensor
from torch.nn import functional

from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals
from neurise.losses import screening
from neurise.networks.parts.layers import visible_one_hot
from neurise.networks.site_mlp import SiteMLP


@torch.no_grad()
def reverse(
    conditionals: Conditionals,
    network: SiteMLP,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    steps: int | None = None,
) -> Tensor:
    """Run the chain from X_T = x back to X_0, (n, sites) tokens; the row as it is and the row with its site changed.

    ``steps`` ends it early, for timing: every step costs the same.
    """
    noise, weight = conditionals.noise, _first_layer(network)
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
        x[:, u] = draw(noise.reverse(log_conditional, x[:, u], step), uniforms(len(x), generator=generator))
    return x


def train(
    conditionals: Conditionals, network: SiteMLP, rows: Tensor, steps: int, batch_size: int, *, generator: Generator
) -> list[float]:
    """Descend the screening loss with AdamW, and return the loss of every step."""
    noise = conditionals.noise
    optimizer, found = torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=False), []
    draw_below = partial(torch.randint, size=(batch_size,), generator=generator, device=rows.device)
    for _ in range(steps):
        t = draw_below(noise.num_steps)
        x = noise.corrupt(rows[draw_below(len(rows))], t, generator=generator)
        u = noise.site(t)
        logits = _logits(network, _first_layer(network), t, u, x, conditionals.hidden(t), None)
        loss = screening(logits, x.gather(-1, u[:, None]).squeeze(-1)).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


def _first_layer(network: SiteMLP) -> Tensor:
    return torch.cat([network.time[None], network.site, network.token, network.label]).T.contiguous()


def _logits(
    network: SiteMLP, weight: Tensor, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None
) -> Tensor:
    """Evaluate the network on (time, site one-hot, x with the site hidden, label) in one piece."""
    n, (sites, states), dtype = len(x), (network.space.sites, network.space.states), weight.dtype
    tau = (2 * t / network.num_steps - 1).to(dtype)
    site = functional.one_hot(u, sites).to(dtype)
    # The library's own one-hot, which is quicker than torch's: only what the loop costs is naive.
    parts = [tau[:, None].expand(n, 1), site.expand(n, -1), visible_one_hot(x, u, hidden, states, dtype)]
    if network.classes:
        parts.append(
            x.new_zeros(n, network.classes, dtype=dtype)
            if y is None
            else functional.one_hot(y, network.classes).to(dtype)
        )
    whole = torch.cat(parts, dim=-1)
    h = network.hidden(functional.linear(whole, weight, network.bias))
    return functional.linear(h, network.head[0], network.head_bias[0])
