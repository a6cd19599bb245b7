"""One small network per site on a few parents: the batched form against a plain loop, the walk, and the law it makes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import neurise
from neurise.deadline import Work
from neurise.energies import parents
from neurise.networks.sparse import Sparse
from neurise.rows import Rows
from neurise.sampling.reverse import sample
from neurise.space import Space

CHOSEN = torch.tensor([[1, 3, -1], [4, -1, -1], [3, 4, -1], [4, -1, -1], [-1, -1, -1]])


def made(states: int, classes: int = 0) -> Sparse:
    """Make a network of five sites whose weights are all drawn."""
    network = Sparse(Space(5, states), 5, width=4, depth=1, classes=classes, parents=3).double()
    generator = torch.Generator().manual_seed(0)
    network.reset(generator)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.is_floating_point():
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        network.chosen.copy_(CHOSEN)
    return network


def rows(states: int, n: int = 7) -> Tensor:
    return Space(5, states).uniform(n, generator=torch.Generator().manual_seed(1))


def plain(network: Sparse, x: Tensor, y: Tensor | None, u: int) -> Tensor:
    """Return the logits of one site by the formula of the docstring, a row at a time."""
    states, found = network.space.states, []
    for number, row in enumerate(x.tolist()):
        kind = 0 if y is None else int(y[number])
        features = []
        for parent in network.chosen[u].tolist():
            if states == 2:
                features += [0.0 if parent < 0 else row[parent] - 0.5]
            else:
                features += [0.0 if parent < 0 else float(row[parent] == a) - 1 / states for a in range(states)]
        z = torch.tensor(features, dtype=torch.float64)
        hidden = torch.nn.functional.silu(network.shift[u, kind] + z @ network.first[u])
        logits = network.bias[u, kind] + network.offset[u, kind] + z @ network.linear[u] + hidden @ network.head[u]
        found.append(torch.cat([torch.zeros(1, dtype=torch.float64), logits]) if states == 2 else logits)
    return torch.stack(found)


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("states", [2, 3])
def test_the_batched_form_is_the_plain_one(states: int, classes: int) -> None:
    network, x = made(states, classes), rows(states)
    y = torch.arange(len(x)) % classes if classes else None
    every = network(x, y)
    for u in range(5):
        torch.testing.assert_close(every[:, u], plain(network, x, y, u))


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("states", [2, 3])
def test_the_walk_gives_what_the_whole_row_gives(states: int, classes: int) -> None:
    network, x = made(states, classes), rows(states)
    y = torch.arange(len(x)) % classes if classes else None
    every = network(x, y)
    walk = network.walk(torch.zeros_like(x.T), y, precision="float32")
    assert walk is not None
    for u in reversed(range(5)):
        logits = walk.logits(u)
        expected = every[:, u, 1:] - every[:, u, :1] if states == 2 else every[:, u]
        torch.testing.assert_close(logits, expected)
        walk.put(u, x[:, u])


def test_a_site_depends_on_its_parents_alone() -> None:
    network, x = made(3), rows(3)
    before = network(x)
    assert network.looked_at().nonzero().tolist() == [[0, 1], [0, 3], [1, 4], [2, 3], [2, 4], [3, 4]]
    for site in range(5):
        changed = x.clone()
        changed[:, site] = (changed[:, site] + 1) % 3
        moved = (network(changed) - before).abs().amax((0, 2)) > 1e-9
        assert moved.tolist() == network.looked_at()[:, site].tolist()


def test_a_fresh_network_is_uniform_and_begins_with_the_regression() -> None:
    network = Sparse(Space(3, 2), 3, width=4, depth=1, parents=2)
    network.reset(torch.Generator().manual_seed(0))
    x = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]], dtype=torch.uint8).repeat(200, 1)
    assert float(network(x).detach().abs().max()) == 0
    network.take(network.begin(Rows(x), None, torch.ones(3, dtype=torch.bool), Work()))
    assert network.chosen[0, 0] == 1
    assert bool((network(x).argmax(-1)[:, 0] == x[:, 1]).all())


@pytest.mark.parametrize("members", [1, 2])
def test_a_model_of_it_is_a_law_and_is_saved(tmp_path: Path, members: int) -> None:
    """Five sites of three symbols, one of them constant, with classes."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 3, (300, 5))
    x[:, 1], x[:, 3] = (x[:, 0] + (generator.random(300) < 0.2)) % 3, 2
    y = generator.integers(0, 2, 300)
    model = neurise.NeurISE(network="sparse", members=members, alphabet=[0, 1, 2]).fit(
        x, y, max_steps=20, verbose=False
    )
    law = neurise.exact.law(model, y=1)
    assert float(law.sum()) == pytest.approx(1, abs=1e-9)
    place = (x * 3 ** np.arange(4, -1, -1)).sum(1)
    np.testing.assert_allclose(model.log_prob(x, np.ones(300, int)), np.log(law.numpy()[place]), atol=1e-4)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(neurise.load(tmp_path / "model").log_prob(x, y), model.log_prob(x, y))
    labels = torch.zeros(8, dtype=torch.int64)
    drawn = [
        sample(model.conditionals, 8, labels, generator=torch.Generator().manual_seed(1), method=method)
        for method in ("incremental", "reference")
    ]
    assert torch.equal(*drawn)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"keep_prob": 0.1}, "keep_prob=0.1"),
        ({"cycles": 2}, "cycles=2"),
        ({"chain__hide_noised": False}, "hide_noised"),
        ({"corrector__clean": 0.25, "corrector__anytime": True}, "anytime=True"),
        ({"architecture__pairwise": True}, "pairwise"),
    ],
)
def test_what_a_network_of_rows_cannot_do_is_refused_by_name(settings: dict[str, object], part: str) -> None:
    model = neurise.NeurISE(network="sparse").set_params(**settings)
    with pytest.raises(ValueError, match=part):
        model.fit(np.random.default_rng(0).integers(0, 2, (50, 4)))


def test_calibration_corrects_it_without_pairwise_terms() -> None:
    x = np.random.default_rng(0).integers(0, 2, (200, 4))
    x[:, 0] = x[:, 3]
    model = neurise.NeurISE(network="sparse", calibrate=True).fit(x, max_steps=20, verbose=False)
    assert type(model.conditionals).__name__ == "MomentMatched"
    drawn = [
        sample(model.conditionals, 16, generator=torch.Generator().manual_seed(1), method=method)
        for method in ("incremental", "reference")
    ]
    assert torch.equal(*drawn)
    assert float(neurise.exact.law(model).sum()) == pytest.approx(1, abs=1e-9)


def test_networks_that_learn_from_the_same_rows_look_for_parents_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, of_rows = list[int](), parents.of_rows

    def counted(rows: Rows, *args: Any, **more: Any) -> Any:
        found.append(len(rows))
        return of_rows(rows, *args, **more)

    monkeypatch.setattr(parents, "of_rows", counted)
    X = np.random.default_rng(0).integers(0, 2, (60, 4))
    X[:, 0] = X[:, 2]
    options = {"max_steps": 2, "verbose": False, "device": "cpu"}
    together = neurise.NeurISE(network="sparse", members=2, width=4).fit(X[:50], validation=X[50:], **options)
    assert found == [50]
    one, two = (member.network for member in together.conditionals)
    assert torch.equal(one.chosen, two.chosen)
    assert not torch.equal(one.first, two.first)
    found.clear()
    neurise.NeurISE(network="sparse", members=2, width=4).fit(X, **options)  # each without a fold of its own
    assert len(found) == 2
