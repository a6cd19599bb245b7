"""Losses of sites with alphabets of their own are those of the allowed logits alone."""

import pytest
import torch

from neurise import losses
from neurise.models.ggm import KeptOrRedrawn

LOSSES = {
    "screening": losses.screening,
    "cross_entropy": losses.cross_entropy,
    **{f"weighted {alpha}": losses.WeightedScreening(alpha) for alpha in (0.0, 0.5, 1.0)},
    **{f"tempered {gamma}": losses.TemperedScreening(gamma) for gamma in (-0.5, 0.0, 0.75, 1.0)},
    "kept or redrawn": KeptOrRedrawn(0.4),
}
SIZES = torch.tensor([2, 3, 5, 4])


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients_are_those_of_fewer_logits(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    allowed = torch.arange(5) < SIZES[:, None]
    x = torch.tensor([1, 0, 4, 3])
    values = LOSSES[name](logits, x, allowed)
    values.sum().backward()
    assert logits.grad is not None
    assert float(logits.grad[~allowed].abs().max()) == 0
    for row, size in enumerate(SIZES.tolist()):
        own = logits[row, :size].detach().clone().requires_grad_()
        value = LOSSES[name](own[None], x[row : row + 1])
        value.sum().backward()
        if size > 2 or "tempered" not in name:  # of two states its value has another factor, which no gradient sees
            torch.testing.assert_close(values[row].detach(), value[0].detach())
        torch.testing.assert_close(logits.grad[row, :size], own.grad)


@pytest.mark.parametrize("name", LOSSES)
def test_a_site_of_one_symbol_teaches_nothing(name: str) -> None:
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    allowed = (torch.arange(4) < 1).expand(3, -1)
    loss = LOSSES[name](logits, torch.zeros(3, dtype=torch.int64), allowed).sum()
    loss.backward()
    assert bool(loss.isfinite())
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
    if name != "kept or redrawn":  # which learns each logit by itself
        torch.testing.assert_close(logits.grad, torch.zeros_like(logits))
