import math

import pytest
import torch

from neurise import losses

ALL = ["screening", "weighted_screening(0.5)", "weighted_screening(1)", "weighted_screening(-0.5)", "cross_entropy"]


def truth(states: int) -> torch.Tensor:
    weight = torch.rand(states, generator=torch.Generator().manual_seed(states), dtype=torch.float64) + 0.05
    return weight / weight.sum()


def expected_loss(name: str, logits: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
    states = len(mu)
    return (mu * losses.resolve(name)(logits.expand(states, -1), torch.arange(states))).sum()


@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.parametrize("name", ALL)
def test_descent_ends_at_the_true_conditional(name: str, states: int) -> None:
    mu = truth(states)
    logits = torch.zeros(states, dtype=torch.float64, requires_grad=True)
    for _ in range(4000):
        (gradient,) = torch.autograd.grad(expected_loss(name, logits, mu), logits)
        logits = (logits - 0.5 * gradient).detach().requires_grad_()
    torch.testing.assert_close(logits.softmax(-1), mu, atol=1e-9, rtol=0)


@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.parametrize("name", ["screening", "cross_entropy"])
def test_any_other_conditional_costs_more(name: str, states: int) -> None:
    mu = truth(states)
    least = expected_loss(name, mu.log(), mu)
    generator = torch.Generator().manual_seed(0)
    for size in (1e-3, 0.1, 3.0):
        wrong = mu.log() + size * torch.randn(states, generator=generator, dtype=torch.float64)
        assert expected_loss(name, wrong, mu) > least


@pytest.mark.parametrize("states", [2, 3, 5])
def test_least_screening_loss_is_the_geometric_mean_times_p(states: int) -> None:
    mu = truth(states)
    least = states * math.prod(mu.tolist()) ** (1 / states)
    assert float(expected_loss("screening", mu.log() + 7, mu)) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("states", [2, 3, 5])
def test_the_weight_is_the_screening_loss_that_the_model_expects(states: int) -> None:
    logits = torch.randn(states, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own = logits.softmax(-1)
    weight = states * math.prod(own.tolist()) ** (1 / states)
    x_u = torch.arange(states)
    plain = losses.screening(logits.expand(states, -1), x_u)
    weighted = losses.weighted_screening(0.3)(logits.expand(states, -1), x_u)
    torch.testing.assert_close(weighted, weight**0.3 * plain)
    assert float((own * plain).sum()) == pytest.approx(weight)


def gradients(name: str, states: int) -> torch.Tensor:
    logits = torch.randn(
        40, states, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True
    )
    x_u = torch.arange(40) % states
    return torch.autograd.grad(losses.resolve(name)(logits, x_u).sum(), logits)[0]


def test_for_two_states_full_weight_has_the_gradient_of_cross_entropy() -> None:
    torch.testing.assert_close(gradients("weighted_screening", 2), gradients("cross_entropy", 2))


def test_for_three_states_no_weight_can_have_it() -> None:
    first, second = gradients("weighted_screening", 3), gradients("cross_entropy", 3)
    cosine = torch.cosine_similarity(first, second)
    assert cosine.min() < 0.999


def test_one_value_an_example_for_any_leading_axes() -> None:
    logits, x_u = torch.randn(6, 4, 3), torch.randint(3, (6, 4), dtype=torch.uint8)
    for name in ALL:
        assert losses.resolve(name)(logits, x_u).shape == (6, 4)


def test_sure_and_right_is_finite_however_sure() -> None:
    logits = torch.tensor([[400.0, -400.0]])
    right = torch.tensor([0])
    for name in ["screening", "weighted_screening(1)", "cross_entropy"]:
        assert torch.isfinite(losses.resolve(name)(logits, right)).all()
    # Sure and wrong: the weight vanishes where screening explodes, and their product is taken in the exponent.
    assert torch.isfinite(losses.resolve("weighted_screening(1)")(logits, 1 - right)).all()


@pytest.mark.parametrize("name", ["sreening", "weighted_screening(x)", "weighted_screening()", ""])
def test_unknown_losses_are_named(name: str) -> None:
    with pytest.raises(ValueError, match="loss"):
        losses.resolve(name)


def test_infinite_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        losses.resolve("weighted_screening(1e999)")
