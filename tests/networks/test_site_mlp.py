"""Heads a site and residual blocks, number by number."""

from __future__ import annotations

import math

import pytest
import torch

from neurise.networks.local_mlp import LocalMLP
from neurise.networks.site_mlp import SiteMLP
from neurise.space import Space

SPACE = Space(sites=4, states=3)


def network(**options: object) -> SiteMLP:
    made = SiteMLP(SPACE, 8, **{"width": 6, "depth": 3, "classes": 2} | options).double()  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(3)
    made.reset(generator)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return made


def by_hand(f: SiteMLP, t: int, u: int, x: list[int], hidden: list[bool], y: int) -> list[float]:
    """Sum everything up, one number at a time."""
    seen = [i for i in range(SPACE.sites) if i != u and not hidden[i]]
    columns = [SPACE.states * i + x[i] for i in seen]
    site = f.site[u] if f.site_input == "one_hot" else (2 * u / SPACE.sites - 1) * f.site[0]
    h = f.bias + site + (2 * t / 8 - 1) * f.time + f.label[y] + sum(f.token[c] for c in columns)
    for layer, norm in enumerate(f.hidden.norms):
        before = h
        if layer:
            linear = f.hidden.linears[layer - 1]
            h = linear.weight @ h + linear.bias
        h = (h - h.mean()) / torch.sqrt(((h - h.mean()) ** 2).mean() + norm.eps) * norm.weight + norm.bias
        h = h / (1 + torch.exp(-h))
        if layer and f.hidden.residual:
            h = h + before
    place = u if f.heads == "site" else 0
    return [float(f.head[place, a] @ h + f.head_bias[place, a]) for a in range(SPACE.states)]


@pytest.mark.parametrize("heads", ["shared", "site"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("site_input", ["one_hot", "number"])
@pytest.mark.parametrize("width", [3, 6])  # fewer than there are sites, and more
def test_every_term_is_where_it_should_be(width: int, heads: str, residual: bool, site_input: str) -> None:
    f = network(width=width, heads=heads, residual=residual, site_input=site_input)
    assert f.site.shape == (4 if site_input == "one_hot" else 1, width)
    generator = torch.Generator().manual_seed(0)
    n = 20
    x = SPACE.uniform(n, generator=generator)
    t, u = torch.randint(4, (n,), generator=generator), torch.randint(4, (n,), generator=generator)
    hidden = torch.rand(n, 4, generator=generator) < 0.4
    y = torch.randint(2, (n,), generator=generator)
    logits = f(t, u, x, hidden, y)
    with torch.no_grad():
        for k in range(n):
            expected = by_hand(f, int(t[k]), int(u[k]), x[k].tolist(), hidden[k].tolist(), int(y[k]))
            assert all(
                math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-10)
                for a, b in zip(logits[k].tolist(), expected, strict=True)
            )
        # One step for a whole batch takes another way through the tables.
        one = f(t[:1], u[:1], x, hidden[:1], y)
        many = f(t[:1].expand(n), u[:1].expand(n), x, hidden[:1].expand(n, 4), y)
        torch.testing.assert_close(one, many, rtol=1e-12, atol=1e-12)


def test_unknown_heads_and_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="heads must be one of 'shared', 'site', got 'many'"):
        network(heads="many")
    with pytest.raises(ValueError, match="site_input must be one of 'one_hot', 'number', got 'bits'"):
        network(site_input="bits")


@pytest.mark.parametrize("residual", ["no", 1, None])
@pytest.mark.parametrize("kind", [SiteMLP, LocalMLP])
def test_residual_is_yes_or_no(kind: type[SiteMLP] | type[LocalMLP], residual: object) -> None:
    with pytest.raises(ValueError, match="residual must be True or False"):
        kind(SPACE, 8, width=6, depth=1, residual=residual)  # type: ignore[arg-type]


@pytest.mark.parametrize("residual", [False, True])
def test_residual_blocks_of_a_network_a_step(residual: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    f = LocalMLP(SPACE, 8, width=6, depth=3, residual=residual).double()
    for parameter in f.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    t = torch.randint(8, (10,), generator=generator)
    u, x = t % 4, SPACE.uniform(10, generator=generator)
    logits = f(t, u, x, torch.zeros(10, 4, dtype=torch.bool))
    with torch.no_grad():
        for k in range(10):
            step, h = int(t[k]), torch.zeros(12, dtype=torch.float64)
            for site in range(4):
                if site != int(u[k]):
                    h[3 * site + int(x[k, site])] = 1
            for layer in range(3):
                z = h @ f.weights[layer][step] + f.biases[layer][step, 0]
                z = (z - z.mean()) / torch.sqrt(((z - z.mean()) ** 2).mean() + 1e-5)
                z = z * f.scales[layer][step, 0] + f.shifts[layer][step, 0]
                z = z / (1 + torch.exp(-z))
                h = h + z if residual and layer else z
            expected = h @ f.output[step] + f.output_bias[step, 0]
            torch.testing.assert_close(logits[k], expected, rtol=1e-10, atol=1e-10)
