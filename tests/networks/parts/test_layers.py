"""What the first layer is shown, and that one product with it is the sum of columns that the network is defined by."""

import pytest
import torch
from torch import Tensor

from neurise.networks.parts import layers as parts
from neurise.networks.site_mlp import SiteMLP
from neurise.space import Space

SPACES = [Space(sites=4, states=2), Space(sites=2, states=3)]
CYCLES, CLASSES, WIDTH = 2, 3, 5


def network(space: Space, *, classes: int, dtype: torch.dtype) -> SiteMLP:
    made = SiteMLP(space, CYCLES * space.sites, width=WIDTH, depth=1, classes=classes)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(parameter.numel()))
    return made.to(dtype)


def every(space: Space, classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """All configurations at all steps, with all sites hidden or none but the first, and with all labels, one a row."""
    steps, rows = torch.arange(CYCLES * space.sites), torch.arange(space.size)
    t, row, some, label = torch.cartesian_prod(steps, rows, torch.arange(2), torch.arange(max(1, classes))).T
    hidden = (some == 1)[:, None] & (torch.arange(space.sites) == 0)
    return t, t % space.sites, space.configurations()[row], hidden, label if classes else None


def first_layer(f: SiteMLP, *inputs: Tensor | None) -> Tensor:
    seen: list[Tensor] = []
    hook = f.hidden.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    f(*inputs)
    hook.remove()
    return seen[0]


def sum_of_columns(f: SiteMLP, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None) -> Tensor:
    """Column by column, in float64."""
    states = f.space.states
    h = f.bias + f.site[u] + (2 * t.double() / f.num_steps - 1)[:, None] * f.time
    if y is not None:
        h = h + f.label[y]
    for i in range(f.space.sites):
        visible = ~hidden[:, i] & (u != i)
        h = h + visible[:, None] * f.token[states * i + x[:, i].long()]
    return h


@pytest.mark.parametrize("classes", [0, CLASSES])
@pytest.mark.parametrize("space", SPACES, ids=["two states", "three states"])
def test_one_product_is_the_sum_of_the_columns(space: Space, classes: int) -> None:
    inputs = every(space, classes)
    right = network(space, classes=classes, dtype=torch.float64)
    torch.testing.assert_close(first_layer(right, *inputs), sum_of_columns(right, *inputs), rtol=1e-13, atol=1e-13)
    ours = first_layer(network(space, classes=classes, dtype=torch.float32), *inputs)
    # Ten terms of size at most 4, each rounded by one part in 2^24 and so is every sum.
    torch.testing.assert_close(ours.double(), sum_of_columns(right, *inputs), rtol=0, atol=2 * 10 * 4 * 2.0**-24)


@pytest.mark.parametrize("classes", [0, CLASSES])
@pytest.mark.parametrize("space", SPACES, ids=["two states", "three states"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_every_column_gets_its_gradient(space: Space, classes: int, dtype: torch.dtype) -> None:
    inputs = every(space, classes)
    f, right = network(space, classes=classes, dtype=dtype), network(space, classes=classes, dtype=torch.float64)
    weights = torch.randn(len(inputs[0]), WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    names = ["token", "site", "time", "bias"] + ["label"] * bool(classes)
    ours = torch.autograd.grad(first_layer(f, *inputs), [f.get_parameter(name) for name in names], weights.to(dtype))
    exact = torch.autograd.grad(sum_of_columns(right, *inputs), [right.get_parameter(name) for name in names], weights)
    # A sum over all rows, of numbers below 4, whose rounding errors add up like a random walk's steps.
    gap = torch.finfo(dtype).eps * 4 * len(weights) ** 0.5 * 4
    for mine, theirs in zip(ours, exact, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=gap)


def test_the_time_of_a_long_chain_is_not_rounded() -> None:
    """Columns of zeros but for a time of ones: the first layer is τ itself, and no sum of its parts is longer than it."""
    space, steps = SPACES[1], 999_983
    f = SiteMLP(space, steps, width=WIDTH, depth=1)
    for parameter in f.parameters():
        torch.nn.init.constant_(parameter, float(parameter is f.time))
    t = torch.arange(0, steps, 997)
    x = space.uniform(len(t), generator=torch.Generator().manual_seed(0))
    ours = first_layer(f, t, t % space.sites, x, torch.zeros(len(t), space.sites, dtype=torch.bool), None)
    assert torch.equal(ours, (2 * t / steps - 1)[:, None].expand(-1, WIDTH))


@pytest.mark.parametrize("classes", [0, CLASSES])
def test_a_shared_step_gives_the_same_first_layer(classes: int) -> None:
    space = SPACES[0]
    f, (t, u, x, hidden, y) = network(space, classes=classes, dtype=torch.float64), every(space, classes)
    together = first_layer(f, t, u, x, hidden, y)
    for step in range(CYCLES * space.sites):
        own = t == step
        label = None if y is None else y[own]
        alone = first_layer(f, torch.tensor([step]), torch.tensor([step % space.sites]), x[own], hidden[own], label)
        torch.testing.assert_close(together[own], alone, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("steps", [3, 50, 784, 12_345, 2**17 + 1, 10**6])
def test_three_short_numbers_make_up_every_time(steps: int) -> None:
    tau = 2 * torch.arange(steps) / steps - 1
    found = parts.terms(tau, 3)
    assert all(term.dtype == torch.bfloat16 for term in found)
    assert torch.equal(sum(term.double() for term in found), tau.double())


def test_a_product_of_short_numbers_rounds_nothing_that_is_shown() -> None:
    space, steps = SPACES[0], 999_983
    t = torch.arange(0, steps, 997)
    x = space.uniform(len(t), generator=torch.Generator().manual_seed(0))
    numbers = parts.terms(2 * t / steps - 1, 3)
    sizes = {"states": 2, "classes": 0}
    hidden = torch.zeros(len(t), 4, dtype=torch.bool)
    long, short = (
        parts.side_by_side(x, t % 4, hidden, None, numbers, **sizes, dtype=dtype)  # type: ignore[arg-type]
        for dtype in (torch.float32, torch.bfloat16)
    )
    assert (long.dtype, short.dtype) == (torch.float32, torch.bfloat16)
    assert torch.equal(long, short.float())


@pytest.mark.parametrize("classes", range(9))
def test_columns_are_even_and_end_in_a_one_and_zeros(classes: int) -> None:
    t, u, x, hidden, y = every(SPACES[1], classes)
    shown = parts.side_by_side(x, u, hidden, y, [t.float()], states=3, classes=classes, dtype=torch.float32)
    count = 2 * 3 + 2 + classes + 1
    assert shown.shape[-1] % 8 == 0
    assert shown.shape[-1] - (count + 1) < 8
    assert shown[:, count].eq(1).all()
    assert not shown[:, count + 1 :].any()
