"""The transformer: groups of sites, distances, dropout, and what is kept while rows are generated."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neurise.networks.causal import Causal
from neurise.networks.parts.attention import Attention, heads_for, rotated
from neurise.networks.parts.stack import Stack
from neurise.space import Space

SIZE = {"width": 16, "depth": 2}


def network(space: Space, *, classes: int = 0, seed: int = 0, **options: object) -> Causal:
    made = Causal(space, space.sites, classes=classes, **{**SIZE, **options})  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(seed)
    made.reset(generator)
    for parameter in made.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return made.double()


@torch.no_grad()
@pytest.mark.parametrize("group", [1, 2, 3, 5, 9])  # q is no multiple of some, and smaller than the last
@pytest.mark.parametrize("space", [Space(5, 2), Space(4, 3)], ids=["bits", "three"])
@pytest.mark.parametrize("classes", [0, 2])
def test_groups_keep_the_law_and_see_all_that_is_generated_before(space: Space, group: int, classes: int) -> None:
    f, x = network(space, group=group, classes=classes), space.configurations()
    y = torch.ones(len(x), dtype=torch.int64) if classes else None
    before = f(x, y)
    total = before.log_softmax(-1).gather(-1, x.long()[..., None]).sum((1, 2)).exp().sum()
    torch.testing.assert_close(total.item(), 1.0)
    seen = torch.zeros(space.sites, space.sites, dtype=torch.bool)
    for site in range(space.sites):
        changed = x.clone()
        changed[:, site] = (changed[:, site] + 1) % space.states
        seen[:, site] = (f(changed, y) - before).abs().amax((0, 2)) > 1e-9
    assert torch.equal(seen, torch.ones_like(seen).triu(1))


@torch.no_grad()
def test_one_site_per_group_number_by_number() -> None:
    """One layer of one head, written out for every pair of places."""
    space = Space(4, 3)
    f = network(space, group=1, width=4, depth=1, classes=2)
    x, label = torch.tensor([2, 0, 1, 1]), 1

    def normed(h: Tensor, scale: Tensor) -> Tensor:
        return (h - h.mean()) / (h.var(unbiased=False) + 1e-5).sqrt() * scale

    def turned(pair_of_pairs: Tensor, place: int) -> Tensor:
        found = []
        for k, (a, b) in enumerate(pair_of_pairs.view(2, 2)):
            angle = torch.tensor(place * 1000.0 ** (-k / 2), dtype=torch.float64)
            found += [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
        return torch.stack(found)

    layer, inputs = next(f.attention.layers(torch.float64)), []
    for place in range(4):  # place g asks for site 3 − g, and reads the one before it
        h = f.asked[place] + f.label[label]
        if place:
            token = int(x[4 - place])
            h = h + f.read.every[token] + f.read.own[place - 1, token]
        inputs.append(h)
    parts = [(layer.project @ normed(h, layer.before_attention)).view(3, 4) for h in inputs]
    for place, h in enumerate(inputs):
        scores = [turned(parts[place][0], place) @ turned(parts[other][1], other) / 2 for other in range(place + 1)]
        shares = torch.stack(scores).softmax(0)
        h = h + layer.merge @ sum(share * part[2] for share, part in zip(shares, parts, strict=False))
        units = torch.nn.functional.gelu(layer.up @ normed(h, layer.before_hidden))
        h = normed(h + layer.down @ units, f.last)
        expected = f.head[place] @ h + f.head_bias[place]
        torch.testing.assert_close(f(x[None], torch.tensor([label]))[0, 3 - place], expected)


def test_products_of_turned_channels_depend_on_distances_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, 1, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    turns = Attention(7, 1, heads=1).double().turns(40, torch.device("cpu"))

    def product(first: int, second: int) -> Tensor:
        return (rotated(query, turns[first : first + 1]) * rotated(key, turns[second : second + 1])).sum()

    torch.testing.assert_close(product(3, 1), product(33, 31))
    assert not torch.allclose(product(3, 1), product(3, 2))
    torch.testing.assert_close(rotated(query, turns[:1]), query)  # the first place is not turned


@torch.no_grad()
@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-10), ("bfloat16", 0.3)])
def test_shared_heads_are_kept_once_and_answer_alike(shared: int, group: int, precision: str, tolerance: float) -> None:
    space = Space(7, 2)
    f = network(space, group=group, attention_heads=4, shared_heads=shared)
    x = space.configurations()[::9]
    walk, expected = f.walk(x.T.contiguous(), None, precision=precision), f(x)
    for u in reversed(range(7)):
        odds = (expected[:, u, 1] - expected[:, u, 0])[:, None]
        torch.testing.assert_close(walk.logits(u).double(), odds, rtol=tolerance, atol=tolerance)
        walk.put(u, x[:, u])
    assert f.bytes_per_walk == network(space, group=group, attention_heads=4).bytes_per_walk // shared


@torch.no_grad()
def test_what_dropout_leaves_is_drawn_outside_and_used_while_learning_alone() -> None:
    space = Space(6, 2)
    f, x = network(space, group=1, dropout=0.25), space.configurations()
    assert torch.equal(f(x), f(x))
    kept = f.masks(4000, generator=torch.Generator().manual_seed(0))
    assert kept is not None
    assert kept.shape == (4000, 4, 16)
    assert abs(kept.double().mean().item() - 0.75) < 4 * (0.25 * 0.75 / kept.numel()) ** 0.5
    assert torch.equal(kept, f.masks(4000, generator=torch.Generator().manual_seed(0)))
    # Nothing is left of the layers of the first row: its sites see the token that their place reads, and no other.
    mask = torch.ones(2, 4, 16, dtype=torch.bool)
    mask[0] = False
    rows = x[:1].expand(2, -1).clone()
    before = f(rows, None, mask)
    rows[:, 5] = 1 - rows[:, 5]
    moved = (f(rows, None, mask) - before).abs().amax(-1) > 1e-9
    assert moved.tolist() == [[False, False, False, False, True, False], [True] * 5 + [False]]
    assert not torch.allclose(before[1], f(x[:1])[0])  # those that are left make up for the others
    assert network(space, dropout=0.0).masks(3, generator=torch.Generator()) is None


@pytest.mark.parametrize("members", [1, 2])
def test_computing_layers_again_saves_memory_and_changes_no_gradient(members: int) -> None:
    space = Space(6, 2)
    stack = Stack([network(space, group=2, seed=seed) for seed in range(members)])
    x = space.configurations()[::3]
    found = []
    before = stack.pattern.bytes_per_row(training=True)  # type: ignore[operator]
    for _ in range(2):
        loss = stack(x).log_softmax(-1)[..., 0].square().mean()
        found.append(torch.autograd.grad(loss, list(stack.parameters()), materialize_grads=True))
        stack.pattern.economise()  # type: ignore[operator]
    torch.testing.assert_close(found[0], found[1])
    assert (stack.pattern.bytes_per_row(training=True) < before) or members > 1  # type: ignore[operator]


def test_heads_that_suit_a_width() -> None:
    assert [heads_for(width) for width in (1, 7, 64, 96, 256, 384, 67)] == [1, 1, 1, 2, 4, 6, 67]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention_heads": 3}, "attention_heads=3 does not divide width=16"),
        ({"attention_heads": 4, "shared_heads": 3}, "shared_heads=3 does not divide the 4 heads"),
        ({"group": 0}, "group"),
        ({"dropout": 1.5}, "dropout"),
        ({"shared_heads": 0}, "shared_heads"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network(Space(5, 2), **options)


@pytest.mark.parametrize(
    ("rows", "share"), [(100, 0.5), (999, 0.5), (1000, 0.2), (4999, 0.2), (5000, 0.1), (10**7, 0.1)]
)
def test_the_fewer_rows_per_site_the_more_is_left_out(rows: int, share: float) -> None:
    for gpu in (False, True):
        assert Causal.suited(rows, Space(sites=100, states=2), gpu=gpu)["dropout"] == share
