import math

import pytest
import torch

from neurise import losses

ALL = ["screening", "weighted_screening(0.5)", "weighted_screening(1)", "weighted_screening(-0.5)", "cross_entropy"]
TEMPERED = ["tempered_screening", "tempered_screening(0)", "tempered_screening(0.5)", "tempered_screening(1.25)"]
ALL += TEMPERED[2:3]


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
    for _ in range(500):  # the slowest of them is within 1e-10 after 424
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


@pytest.mark.parametrize("states", [2, 3, 5])
def test_tempering_leads_from_screening_to_cross_entropy(states: int) -> None:
    torch.testing.assert_close(gradients("tempered_screening(0)", states), gradients("screening", states))
    torch.testing.assert_close(gradients("tempered_screening(1)", states), gradients("cross_entropy", states))
    torch.testing.assert_close(
        gradients("tempered_screening", states), gradients("tempered_screening(0.75)", states), atol=0, rtol=0
    )


@pytest.mark.parametrize("gamma", [-0.5, 0.3, 0.8, 1.5])
def test_for_two_states_tempering_is_weighting(gamma: float) -> None:
    torch.testing.assert_close(
        gradients(f"tempered_screening({gamma})", 2), gradients(f"weighted_screening({gamma})", 2)
    )


@pytest.mark.parametrize("gamma", [0.3, 0.8])
@pytest.mark.parametrize("states", [3, 5])
def test_the_tempered_gradient_is_that_of_the_equation(states: int, gamma: float) -> None:
    found = gradients(f"tempered_screening({gamma})", states)
    logits = torch.randn(40, states, generator=torch.Generator().manual_seed(2), dtype=torch.float64).tolist()
    for place, (row, gradient) in enumerate(zip(logits, found.tolist(), strict=True)):
        own = [math.exp(f) / sum(map(math.exp, row)) for f in row]
        reference = [p**gamma / sum(q**gamma for q in own) for p in own]
        screened = (states - 1) * math.prod(own) ** (1 / states)
        trace = screened ** (1 - gamma) * (1 - sum(p**2 for p in own)) ** gamma
        x = place % states
        factor = trace / (1 - sum(r**2 for r in reference)) * reference[x] / own[x]
        assert gradient == pytest.approx([factor * (r - (a == x)) for a, r in enumerate(reference)], rel=1e-9)


@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.parametrize("name", TEMPERED)
def test_the_bound_on_the_slope_does_not_move_the_minimum(name: str, states: int) -> None:
    mu = truth(states)
    mu[0] = 1e-14  # so rare that the slope of its token is bounded, for γ = 0 at the least
    mu = mu / mu.sum()
    logits = mu.log().requires_grad_()
    (gradient,) = torch.autograd.grad(expected_loss(name, logits, mu), logits)
    values = losses.resolve(name)(logits.detach().expand(states, -1), torch.arange(states))
    # Exponents of up to a hundred are rounded at 1e-14, and so are the tokens' shares, relative to the largest.
    assert gradient.abs().max() < 1e-13 * (mu * values).max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [10.0, 1e3, 1e5])
@pytest.mark.parametrize("name", TEMPERED)
def test_tempered_gradients_are_bounded_whatever_the_logits(name: str, size: float, dtype: torch.dtype) -> None:
    logits = size * torch.randn(200, 4, generator=torch.Generator().manual_seed(0), dtype=dtype)
    logits[:4] = size * torch.tensor([1.0, 0.0, 0.0, -1.0])  # ties too
    logits.requires_grad_()
    value = losses.resolve(name)(logits, torch.arange(200) % 4)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert torch.isfinite(value).all()
    assert gradient.abs().max() <= losses.STEEPEST * (1 + 1e-5)


def test_one_value_an_example_for_any_leading_axes() -> None:
    logits, x_u = torch.randn(6, 4, 3), torch.randint(3, (6, 4), dtype=torch.uint8)
    for name in ALL:
        assert losses.resolve(name)(logits, x_u).shape == (6, 4)


@pytest.mark.parametrize("name", ALL)
def test_one_state_leaves_nothing_to_learn(name: str) -> None:
    logits = torch.tensor([[3.0], [-2.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(losses.resolve(name)(logits, torch.zeros(2)).sum(), logits)
    assert gradient.tolist() == [[0.0], [0.0]]


def test_sure_and_right_is_finite_however_sure() -> None:
    logits = torch.tensor([[400.0, -400.0]])
    right = torch.tensor([0])
    for name in ["screening", "weighted_screening(1)", "cross_entropy"]:
        assert torch.isfinite(losses.resolve(name)(logits, right)).all()
    # Sure and wrong: the weight vanishes where screening explodes, and their product is taken in the exponent.
    assert torch.isfinite(losses.resolve("weighted_screening(1)")(logits, 1 - right)).all()


@pytest.mark.parametrize(
    "name", ["sreening", "weighted_screening(x)", "weighted_screening()", "tempered_screening(1,2)", ""]
)
def test_unknown_losses_are_named(name: str) -> None:
    with pytest.raises(ValueError, match="loss"):
        losses.resolve(name)


def test_infinite_weights_are_refused() -> None:
    for name in ("weighted_screening", "tempered_screening"):
        with pytest.raises(ValueError, match="from -1 to 2"):
            losses.resolve(f"{name}(1e999)")
