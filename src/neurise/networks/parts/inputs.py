"""What the networks are shown: one-hots of tokens, and numbers that a product must not round."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neurise.space import Space

ALIGNED = 8
"""Columns come in such multiples: rows of short numbers begin at whole 16 bytes then, which fast products ask for."""


def one_hot(x: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of tokens, (..., states); all-zero where a token is none of the states, as a mask is."""
    return _is(x, states).to(dtype)


def visible_one_hot(x: Tensor, u: Tensor, hidden: Tensor, states: int, dtype: torch.dtype) -> Tensor:
    """One-hot of x, all-zero at site u and at every hidden site, (..., sites · states)."""
    return _seen(x, hidden | _is(u, x.shape[-1]), states).to(dtype)


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
