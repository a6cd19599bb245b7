"""Products with a matrix per place."""

import pytest
import torch

from neurise.networks.parts.within_group import by_place


@pytest.mark.parametrize("k", [1, 6, 8, 14])
@pytest.mark.parametrize("outputs", [1, 2, 16])
def test_every_place_is_multiplied_by_its_own_matrix(k: int, outputs: int) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(5, 3, k, generator=generator, dtype=torch.float64)
    weights = torch.randn(3, k, outputs, generator=generator, dtype=torch.float64, requires_grad=True)
    found, expected = by_place(rows, weights), torch.einsum("npk,pko->npo", rows, weights)
    assert found.is_contiguous()
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(each.square().sum(), weights)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients)
