"""What networks are made of: one-hots of tokens, and hidden layers Linear → LayerNorm → SiLU (fused kernels on a GPU)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise.space import Space

ALIGNED = 8
"""Columns come in such multiples: rows of short numbers begin at whole 16 bytes then, which fast products ask for."""


WITH_GAPS = torch.int16
"""The type of rows with gaps, where the token p stands for a missing value: beside 256 states a byte has no room for it."""


class Blocks(nn.Module):
    """LayerNorm → SiLU after a first Linear that the network has of its own, then depth − 1 times Linear → LayerNorm → SiLU.

    With ``residual``, each of the depth − 1 blocks adds what enters it to what leaves it.
    """

    def __init__(self, width: int, depth: int, *, residual: bool = False) -> None:
        super().__init__()
        self.residual = residual
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(depth)])
        self.linears = nn.ModuleList([nn.Linear(width, width) for _ in range(depth - 1)])

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        for linear in self.linears:
            assert isinstance(linear, nn.Linear)  # for the type checker
            nn.init.kaiming_uniform_(linear.weight, a=5**0.5, generator=generator)
            nn.init.zeros_(linear.bias)
        for norm in self.norms:
            assert isinstance(norm, nn.LayerNorm)
            norm.reset_parameters()

    def forward(self, h: Tensor) -> Tensor:
        """Return the last block, (..., width)."""
        norms = [norm for norm in self.norms if isinstance(norm, nn.LayerNorm)]  # all of them, with their type
        h = normed(h, norms[0])
        for linear, norm in zip(self.linears, norms[1:], strict=True):
            assert isinstance(linear, nn.Linear)  # for the type checker
            h = normed(h, norm, linear, residual=self.residual)
        return h


def normed(h: Tensor, norm: nn.LayerNorm, linear: nn.Linear | None = None, *, residual: bool = False) -> Tensor:
    """Apply (Linear →) LayerNorm → SiLU, and add what entered if asked to, (..., width)."""
    if h.is_cuda:
        from neurise.networks.parts import _normed

        if _normed.serves(h):
            return _normed.apply(h, norm, linear, residual=residual)
    block = functional.silu(norm(h if linear is None else linear(h)))
    return h + block if residual else block


def one_hot(x: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of tokens, (..., states); all-zero where a token is none of the states, as a mask is."""
    return _is(x, states).to(dtype)


def relative_one_hot(x: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """Return 2 (1[x = a] − 1/p) for every state a but the first, (..., states − 1): ±1 for two states; 0 at gaps."""
    shown = 2 * (_is(x, states)[..., 1:].to(dtype) - 1 / states)
    return shown * (x < states)[..., None] if x.dtype == WITH_GAPS else shown


def with_gaps(x: Tensor, missing: Tensor, states: int) -> Tensor:
    """Put the token p where a value is missing, (..., sites)."""
    return x.to(WITH_GAPS).masked_fill(missing, states)


def visible_one_hot(x: Tensor, u: Tensor, hidden: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of x, all-zero at site u and at every hidden site, (..., sites · states)."""
    return _seen(x, hidden | _is(u, x.shape[-1]), states).to(dtype)


def seen_one_hot(x: Tensor, hidden: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of x, all-zero at every hidden site, (..., sites · states)."""
    return _seen(x, hidden, states).to(dtype)


def side_by_side(
    x: Tensor,
    u: Tensor,
    hidden: Tensor,
    y: Tensor | None,
    numbers: Sequence[Tensor],
    *,
    states: int,
    classes: int,
    dtype: torch.dtype,
) -> Tensor:
    """The visible one-hot of x, then those of u and y, then numbers (...), a one, and zeros up to an even count of columns.

    Written once: until then the one-hots are bytes.
    """
    at = _is(u, x.shape[-1])
    parts = [_seen(x, hidden | at, states), at] + ([] if y is None else [_is(y, classes)])
    parts.append(torch.stack(list(numbers), dim=-1).to(dtype))
    rest = 1 + (-1 - sum(part.shape[-1] for part in parts)) % ALIGNED
    one = torch.eye(1, rest, dtype=dtype, device=x.device)[0]
    return torch.cat([*parts, one.expand(*u.shape, rest)], dim=-1)


def own(every: Tensor, u: Tensor, space: Space) -> Tensor:
    """Pick what belongs to the sites u from what was found for all, (..., sites · states) → (..., states)."""
    every = every.reshape(*every.shape[:-1], space.sites, space.states)
    place = u[..., None, None].expand(*every.shape[:-2], 1, space.states)
    return every.gather(-2, place).squeeze(-2)


def terms(numbers: Tensor, count: int) -> list[Tensor]:
    """Write numbers as sums of bfloat16, each of which takes up what the ones before it leave; three make up a float32."""
    found = [numbers.bfloat16()]
    while len(found) < count:
        numbers = numbers - found[-1]
        found.append(numbers.bfloat16())
    return found


def _is(x: Tensor, states: int) -> Tensor:
    """Which of the states each token is, (..., states) booleans."""
    return x[..., None] == torch.arange(states, device=x.device, dtype=x.dtype)


def _seen(x: Tensor, unseen: Tensor, states: int) -> Tensor:
    return (_is(x, states) & ~unseen[..., None]).flatten(-2)
