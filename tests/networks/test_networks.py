"""The contract of every site network of the folder: what it may see, what it must not, and how it is made again."""

import json

import pytest
import torch
from torch import nn

from neurise import discovery, networks
from neurise.networks.base import SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.networks.site_mlp import SiteMLP
from neurise.space import Space

SPACE, STEPS = Space(sites=3, states=4), 6
OFFERED = {name: discovery.find("neurise.networks", name) for name in discovery.names("neurise.networks")}
NAMES = [name for name, kind in OFFERED.items() if issubclass(kind, SiteNetwork)]
WITHOUT_LABELS = ("pairwise_terms",)
"""Networks whose answers do not depend on labels: they are added to another that looks at them."""
WITHOUT_LAYERS = ("pairwise_terms",)
"""Networks without a width and a depth, and without weights to draw: all of them start at 0."""

every = pytest.mark.parametrize("name", [*NAMES, "sum"])
with_weights = pytest.mark.parametrize("name", [name for name in [*NAMES, "sum"] if name not in WITHOUT_LAYERS])


def fresh(name: str, *, depth: int = 2, classes: int = 0, **options: object) -> SiteNetwork:
    """Make a network as a model does; "sum" is one with pairwise terms beside it."""
    if name == "sum":
        return Sum([PairwiseTerms(SPACE, STEPS, classes=classes, clean=True), fresh("site_mlp", classes=classes)])
    size = {} if name in WITHOUT_LAYERS else {"width": 7, "depth": depth}
    made: SiteNetwork = OFFERED[name](SPACE, STEPS, **size, classes=classes, **options)
    return made


def stirred(network: nn.Module, seed: int = 0) -> nn.Module:
    """Draw the weights and move all of them, in float64: an output of zero would hide everything."""
    generator = torch.Generator().manual_seed(seed)
    network.reset(generator)  # type: ignore[operator]
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return network.double()


def make(name: str, *, seed: int = 0, **options: object) -> nn.Module:
    return stirred(fresh(name, **options), seed)  # type: ignore[arg-type]


def inputs(n: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    t = torch.arange(n) % STEPS
    x = SPACE.uniform(n, generator=torch.Generator().manual_seed(1))
    return t, t % SPACE.sites, x, torch.zeros(n, SPACE.sites, dtype=torch.bool)


def test_the_folder_offers_these_networks() -> None:
    assert {"site_mlp", "local_mlp", "pairwise_terms"} <= set(NAMES)
    assert "joint_mlp" not in NAMES


@pytest.mark.parametrize("depth", [1, 2, 5])
@every
def test_one_logit_a_state(name: str, depth: int) -> None:
    assert make(name, depth=depth)(*inputs()).shape == (5, SPACE.states)


@every
def test_the_asked_site_is_never_seen_and_all_others_are(name: str) -> None:
    network, (t, u, x, hidden) = make(name), inputs()
    before = network(t, u, x, hidden)
    for site in range(SPACE.sites):
        changed = x.clone()
        changed[:, site] = (changed[:, site] + 1) % SPACE.states
        same = (network(t, u, changed, hidden) - before).abs().amax(-1) < 1e-12
        assert same.tolist() == (u == site).tolist()


@every
def test_hidden_sites_are_not_seen(name: str) -> None:
    network, (t, u, x, hidden) = make(name), inputs()
    hidden[:, 1] = True
    changed = x.clone()
    changed[:, 1] = (changed[:, 1] + 2) % SPACE.states
    torch.testing.assert_close(network(t, u, x, hidden), network(t, u, changed, hidden))
    assert not torch.allclose(network(t, u, x, hidden)[0], network(t, u, x, hidden & False)[0])


@every
def test_labels_matter_unless_a_network_has_none(name: str) -> None:
    network, (t, u, x, hidden) = make(name, classes=3), inputs()
    outputs = [network(t, u, x, hidden, torch.full((5,), label)) for label in range(3)]
    assert torch.allclose(outputs[0], outputs[1]) == (name in WITHOUT_LABELS)
    assert torch.allclose(outputs[1], outputs[2]) == (name in WITHOUT_LABELS)


@pytest.mark.parametrize("classes", [0, 3])
@every
def test_steps_and_rows_broadcast(name: str, classes: int) -> None:
    network = make(name, classes=classes)
    rows = SPACE.uniform(4, generator=torch.Generator().manual_seed(2))
    y = torch.tensor([0, 2, 1, 1]) if classes else None
    t, seen = torch.tensor([[0], [1], [5]]), torch.zeros(1, 3, dtype=torch.bool)
    together = network(t, t % 3, rows, torch.zeros(3, 1, 3, dtype=torch.bool), y)
    assert together.shape == (3, 4, SPACE.states)
    for s in range(3):
        one_step = network(t[s], t[s] % 3, rows, seen, y)
        torch.testing.assert_close(together[s], one_step)
        for r in range(4):
            alone = network(t[s], t[s] % 3, rows[r : r + 1], seen, None if y is None else y[r : r + 1])
            torch.testing.assert_close(together[s, r], alone[0])


@pytest.mark.parametrize("count", [1, 3])
@every
def test_many_networks_run_as_one(name: str, count: int) -> None:
    alone = [make(name, seed=seed) for seed in range(count)]
    stack = Stack(alone)
    torch.testing.assert_close(stack(*inputs()), torch.stack([network(*inputs()) for network in alone], dim=1))
    own = [inputs(5 * count)[place] for place in range(4)]
    drawn = [part.reshape(5, count, *part.shape[1:]) for part in own]
    found = stack.each(lambda network, mine: network(*mine).square().sum(-1), drawn)
    for k, network in enumerate(alone):
        mine = [part[:, k] for part in drawn]
        torch.testing.assert_close(found[:, k], network(*mine).square().sum(-1))


@every
def test_reset_gives_every_weight_a_value(name: str) -> None:
    found = []
    for rubbish in (float("nan"), 5.0):
        network = fresh(name, classes=3)
        assert not list(network.buffers())
        for parameter in network.parameters():
            nn.init.constant_(parameter, rubbish)
        network.reset(torch.Generator().manual_seed(0))
        found.append(nn.utils.parameters_to_vector(network.parameters()))
    assert found[0].isfinite().all()
    assert torch.equal(*found)


@every
def test_conditionals_start_uniform(name: str) -> None:
    network = fresh(name)
    network.reset(torch.Generator().manual_seed(0))
    assert not network(*inputs()).any()


@with_weights
def test_seeds_matter_and_nothing_else_does(name: str) -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(torch.seed())
        network = fresh(name)
        network.reset(torch.Generator().manual_seed(seed))
        return nn.utils.parameters_to_vector(network.parameters())

    state = torch.get_rng_state()
    try:
        assert torch.equal(weights(0), weights(0))
        assert not torch.equal(weights(0), weights(1))
    finally:
        torch.set_rng_state(state)


OPTIONS: dict[str, list[object]] = {"heads": ["site", "shared"], "residual": [True, False], "clean": [True, False]}
OPTIONS |= {"site_input": ["number", "one_hot"]}


@every
@pytest.mark.parametrize("place", [0, 1])
def test_a_network_is_made_again_from_its_description(name: str, place: int) -> None:
    own = () if name == "sum" else OFFERED[name].options
    network = make(name, depth=3, classes=2, **{option: OPTIONS[option][place] for option in own})
    described = json.loads(json.dumps(network.description()))  # type: ignore[operator]
    with torch.device("meta"):
        again = networks.build(described, SPACE, STEPS, 2)
    assert type(again) is type(network)
    assert again.description() == described
    again = again.double().to_empty(device="cpu")
    again.load_state_dict(network.state_dict())
    y = torch.arange(5) % 2
    torch.testing.assert_close(again(*inputs(), y), network(*inputs(), y), rtol=0, atol=0)


def test_every_option_of_a_network_is_described() -> None:
    options = {"heads": "site", "residual": True, "site_input": "number"}
    described = make("site_mlp", **options).description()  # type: ignore[operator, arg-type]
    assert described == {"network": "site_mlp", "width": 7, "depth": 2, **options}


def test_one_changed_site_moves_the_first_layer_by_two_columns() -> None:
    network = make("site_mlp")
    assert isinstance(network, SiteMLP)
    seen: list[torch.Tensor] = []
    network.hidden.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    t, u, x, hidden = inputs(1)
    changed = x.clone()
    changed[0, 2] = (x[0, 2] + 1) % 4
    network(t, u, x, hidden), network(t, u, changed, hidden)
    columns = network.token.view(SPACE.sites, SPACE.states, -1)[2]
    torch.testing.assert_close(seen[1] - seen[0], (columns[changed[0, 2].long()] - columns[x[0, 2].long()])[None])


def test_a_local_network_has_weights_for_its_step_alone() -> None:
    network, (t, u, x, hidden) = make("local_mlp"), inputs(6)
    before = network(t, u, x, hidden)
    network.weights[0].data[4] *= -2.0  # type: ignore[index, union-attr, operator]
    moved = (network(t, u, x, hidden) - before).abs().amax(-1) > 1e-9
    assert moved.tolist() == [False, False, False, False, True, False]


def test_a_local_network_cannot_be_asked_for_any_site() -> None:
    answers = {name: OFFERED[name].any_site for name in ("site_mlp", "local_mlp", "pairwise_terms")}
    assert answers == {"site_mlp": True, "local_mlp": False, "pairwise_terms": True}
    assert fresh("sum").any_site
    assert not Sum([fresh("pairwise_terms"), fresh("local_mlp")]).any_site
