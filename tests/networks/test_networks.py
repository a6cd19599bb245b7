"""Every network of the folder: what it may see, what it must not, and how it broadcasts."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from neurise import discovery
from neurise.space import Space

SPACE, STEPS = Space(sites=3, states=4), 6
NAMES = [name for name in discovery.names("neurise.networks") if discovery.find("neurise.networks", name).one_site]


def make(name: str, *, depth: int = 2, classes: int = 0, seed: int = 0) -> nn.Module:
    network = discovery.find("neurise.networks", name)(SPACE, STEPS, width=7, depth=depth, classes=classes)
    generator = torch.Generator().manual_seed(seed)
    network.reset(generator)
    for parameter in network.parameters():  # an output of zero would hide everything
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return network.double()


def inputs(n: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    t = torch.arange(n) % STEPS
    x = SPACE.uniform(n, generator=torch.Generator().manual_seed(1))
    return t, t % SPACE.sites, x, torch.zeros(n, SPACE.sites, dtype=torch.bool)


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_one_logit_a_state(name: str, depth: int) -> None:
    assert make(name, depth=depth)(*inputs()).shape == (5, SPACE.states)


@pytest.mark.parametrize("name", NAMES)
def test_the_asked_site_is_never_seen_and_all_others_are(name: str) -> None:
    network, (t, u, x, hidden) = make(name), inputs()
    before = network(t, u, x, hidden)
    for site in range(SPACE.sites):
        changed = x.clone()
        changed[:, site] = (changed[:, site] + 1) % SPACE.states
        same = (network(t, u, changed, hidden) - before).abs().amax(-1) < 1e-12
        assert same.tolist() == (u == site).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_hidden_sites_are_not_seen(name: str) -> None:
    network, (t, u, x, hidden) = make(name), inputs()
    hidden[:, 1] = True
    changed = x.clone()
    changed[:, 1] = (changed[:, 1] + 2) % SPACE.states
    torch.testing.assert_close(network(t, u, x, hidden), network(t, u, changed, hidden))
    assert not torch.allclose(network(t, u, x, hidden)[0], network(t, u, x, hidden & False)[0])


@pytest.mark.parametrize("name", NAMES)
def test_labels_matter(name: str) -> None:
    network, (t, u, x, hidden) = make(name, classes=3), inputs()
    outputs = [network(t, u, x, hidden, torch.full((5,), label)) for label in range(3)]
    assert not torch.allclose(outputs[0], outputs[1])
    assert not torch.allclose(outputs[1], outputs[2])


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("name", NAMES)
def test_steps_and_rows_broadcast(name: str, classes: int) -> None:
    network = make(name, classes=classes)
    rows = SPACE.uniform(4, generator=torch.Generator().manual_seed(2))
    y = torch.tensor([0, 2, 1, 1]) if classes else None
    t = torch.tensor([[1], [5]])
    together = network(t, t % 3, rows, torch.zeros(2, 1, 3, dtype=torch.bool), y)
    assert together.shape == (2, 4, SPACE.states)
    for s in range(2):
        one_step = network(t[s], t[s] % 3, rows, torch.zeros(1, 3, dtype=torch.bool), y)
        torch.testing.assert_close(together[s], one_step)
        for r in range(4):
            alone = network(
                t[s],
                t[s] % 3,
                rows[r : r + 1],
                torch.zeros(1, 3, dtype=torch.bool),
                None if y is None else y[r : r + 1],
            )
            torch.testing.assert_close(together[s, r], alone[0])


@pytest.mark.parametrize("name", NAMES)
def test_many_networks_run_as_one(name: str) -> None:
    networks = [make(name, seed=seed) for seed in range(3)]
    stacked, _ = stack_module_state(networks)
    shown = inputs()
    together = vmap(lambda weights: functional_call(networks[0], weights, shown))(stacked)
    torch.testing.assert_close(together, torch.stack([network(*inputs()) for network in networks]))


@pytest.mark.parametrize("name", NAMES)
def test_conditionals_start_uniform_and_seeds_matter(name: str) -> None:
    def fresh(seed: int) -> nn.Module:
        network: nn.Module = discovery.find("neurise.networks", name)(SPACE, STEPS, width=7, depth=2)
        network.reset(torch.Generator().manual_seed(seed))  # type: ignore[operator]
        return network

    assert not fresh(0)(*inputs()).any()
    first, again, other = (nn.utils.parameters_to_vector(fresh(seed).parameters()) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_one_changed_site_moves_the_first_layer_by_two_columns() -> None:
    network = make("site_mlp")
    seen: list[torch.Tensor] = []
    network.hidden.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))  # type: ignore[union-attr]
    t, u, x, hidden = inputs(1)
    changed = x.clone()
    changed[0, 2] = (x[0, 2] + 1) % 4
    network(t, u, x, hidden), network(t, u, changed, hidden)
    columns = network.token.view(SPACE.sites, SPACE.states, -1)[2]  # type: ignore[operator, union-attr]
    torch.testing.assert_close(seen[1] - seen[0], (columns[changed[0, 2].long()] - columns[x[0, 2].long()])[None])


def test_a_local_network_has_weights_for_its_step_alone() -> None:
    network, (t, u, x, hidden) = make("local_mlp"), inputs(6)
    before = network(t, u, x, hidden)
    network.weights[0].data[4] *= -2.0  # type: ignore[index, union-attr, operator]
    moved = (network(t, u, x, hidden) - before).abs().amax(-1) > 1e-9
    assert moved.tolist() == [False, False, False, False, True, False]


def test_only_one_network_has_free_steps() -> None:
    assert {name: discovery.find("neurise.networks", name).free_steps for name in ("site_mlp", "local_mlp")} == {
        "site_mlp": True,
        "local_mlp": False,
    }
