"""A transformer through the whole of the library: fitting, files, memory and what it says of itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import devices, exact
from neurise.conditionals.base import Frame
from neurise.losses import cross_entropy
from neurise.modeling.row_objective import RowObjective
from neurise.networks.causal import Causal
from neurise.networks.parts.attention import Attention
from neurise.networks.parts.stack import Stack
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Batch
from neurise.space import Space

SMALL = {"network": "causal", "architecture__group": 2, "training__batch_size": 32}


def model(**params: object) -> neurise.NeurISE:
    made = tiny.model(**{**SMALL, **params})  # type: ignore[arg-type]
    assert isinstance(made, neurise.NeurISE)
    return made


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("labels", [False, True])
def test_a_fitted_transformer_has_a_law_and_comes_back_from_its_files(
    tmp_path: Path, members: int, labels: bool
) -> None:
    x = tiny.spins(80, sites=4)
    x[:, 3] = 1  # a site that never varies
    y = np.arange(80) % 2 if labels else None
    fitted = model(members=members).fit(x, y, seed=0, max_steps=12, verbose=False)
    torch.testing.assert_close(float(exact.law(fitted).sum()), 1.0)
    fitted.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model")
    label = 1 if labels else None
    assert np.array_equal(again.sample(30, label, seed=1), fitted.sample(30, label, seed=1))
    np.testing.assert_array_equal(again.log_prob(x, y), fitted.log_prob(x, y))


def test_a_resumed_run_is_the_run_without_a_break(tmp_path: Path) -> None:
    x = tiny.spins(80, sites=4)
    whole = model().fit(x, seed=0, max_steps=20, verbose=False)

    def stop(step: int, *_: object) -> bool:
        return step >= 10

    model().fit(x, seed=0, max_steps=20, verbose=False, checkpoint=tmp_path, callback=stop)
    resumed = model().fit(x, seed=0, max_steps=20, verbose=False, checkpoint=tmp_path, resume=True)
    assert tiny.same_weights(resumed, whole)


def test_dropout_is_drawn_from_the_seed() -> None:
    x = tiny.spins(80, sites=4)
    first, second, without = (
        model(architecture__dropout=share).fit(x, seed=0, max_steps=12, verbose=False) for share in (0.3, 0.3, 0.0)
    )
    assert tiny.same_weights(first, second)
    assert not tiny.same_weights(first, without)


def test_scores_do_not_depend_on_what_dropout_leaves() -> None:
    space = Space(4, 2)
    network = Causal(space, 4, width=8, depth=1, dropout=0.5)
    network.reset(torch.Generator().manual_seed(0))
    torch.nn.init.normal_(network.head, generator=torch.Generator().manual_seed(1))
    objective = RowObjective(Stack([network]), Frame(RoundRobin(space, 0.0), 0, torch.full((4,), -1)), cross_entropy)
    batch = Batch(space.configurations(), None, None)
    drawn = [objective.draw(batch, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    scores = [objective.scores(objective.network, one) for one in drawn]
    losses = [objective.losses(objective.network, one) for one in drawn]
    assert torch.equal(*scores)
    assert not torch.allclose(*losses)


def test_where_memory_is_short_layers_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, recomputed = tiny.spins(80, sites=8), []
    plain = Attention.forward

    def noted(self: Attention, h: torch.Tensor, kept: torch.Tensor | None = None) -> torch.Tensor:
        recomputed.append(self.recomputes)
        return plain(self, h, kept)

    monkeypatch.setattr(Attention, "forward", noted)
    enough = model(depth=4).fit(x, seed=0, max_steps=5, verbose=False)
    assert set(recomputed) == {False}
    recomputed.clear()
    with torch.device("meta"):
        network = Causal(Space(8, 2), 8, width=8, depth=4, group=2)
    weights = sum(parameter.nbytes for parameter in network.parameters())
    needed = [devices.training_bytes(weights, x.size, 32, network.bytes_per_row(training=True))]
    network.economise()
    needed.append(devices.training_bytes(weights, x.size, 32, network.bytes_per_row(training=True)))
    monkeypatch.setattr(devices, "available_bytes", lambda device: sum(needed) // 2)
    short = model(depth=4).fit(x, seed=0, max_steps=5, verbose=False)
    assert True in recomputed
    np.testing.assert_allclose(short.log_prob(x), enough.log_prob(x), rtol=1e-5)
    monkeypatch.setattr(devices, "available_bytes", lambda device: 1000)
    with pytest.raises(MemoryError, match="use a smaller"):
        model(depth=4).fit(x, seed=0, max_steps=5, verbose=False)


def test_on_a_cpu_it_says_how_long_a_step_takes(capsys: pytest.CaptureFixture[str]) -> None:
    model().fit(tiny.spins(80, sites=4), seed=0, max_steps=5, verbose=True)
    assert " s per step" in capsys.readouterr().err
    model(network="site_mlp").fit(tiny.spins(80, sites=4), seed=0, max_steps=5, verbose=True)
    assert " s per step" not in capsys.readouterr().err


def test_a_network_says_in_which_numbers_it_is_trained_on_a_gpu() -> None:
    assert Causal.suited(60_000, Space(784, 2), gpu=True)["precision"] == "bfloat16"
    x = tiny.spins(80, sites=4)
    assert model().fit(x, seed=0, max_steps=2, verbose=False).settings(1, None).precision == "tf32"
    asked = model(training__precision="float32").fit(x, seed=0, max_steps=2, verbose=False)
    assert asked.settings(1, None).precision == "float32"
    with pytest.raises(ValueError, match="precision must be one of"):
        model(training__precision="float8").fit(x, seed=0, max_steps=2, verbose=False)
