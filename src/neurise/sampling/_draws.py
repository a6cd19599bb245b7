"""The draw of a token inside the fused kernels: its logits, Bayes' rule for the present token, and the inverse CDF."""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def one_of_two(odds, known_ptr, constant_ptr, old, level, bonus):
    """Draw from log-odds, (rows,); a constant site has its given ones in their place."""
    known = tl.load(constant_ptr) > 0
    odds = tl.where(known, tl.load(known_ptr), odds)
    odds += bonus * (2 * old - 1).to(tl.float32)
    # The rarer token's probability is small and known to 24 bits; one minus it is not, in 32 bits.
    rare = tl.exp(-tl.abs(odds))
    rare = (rare / (1 + rare)).to(tl.float64)
    return (level >= tl.where(odds > 0, rare, 1 - rare)).to(tl.int32)


@triton.jit
def one_of_many(logits, known_ptr, constant_ptr, old, level, bonus, STATES: tl.constexpr, LOGITS: tl.constexpr):
    """Draw from logits, (rows, LOGITS), of which the first STATES count; never a token behind the last that is possible."""
    token = tl.arange(0, LOGITS)
    is_token = token < STATES
    settled = tl.load(known_ptr + token, mask=is_token, other=0.0)
    logits = tl.where(tl.load(constant_ptr) > 0, settled[None, :], logits)
    logits += tl.where(token[None, :] == old[:, None], bonus, 0.0)
    logits = tl.where(is_token[None, :], logits, float("-inf"))
    weight = tl.exp(logits - tl.max(logits, 1)[:, None]).to(tl.float64)
    # Sums are rounded in another order than their parts: of a site with fewer states, the last would be passed once in 2^53.
    last = tl.max(tl.where(weight > 0, token[None, :], 0), 1)
    reached = (level * tl.sum(weight, 1))[:, None] >= tl.cumsum(weight, 1)
    return tl.sum((reached & (token[None, :] < last[:, None])).to(tl.int32), 1)
