"""Sizes that cannot be held are refused by arithmetic alone, and values of the wrong kind by name."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from torch import nn

import neurise
from neurise import devices, discovery
from neurise.mcmc import parallel_tempering

MODELS = sorted(discovery.names("neurise.models"))
TRAINED = [name for name in MODELS if tiny.is_trained(name)]
SIZES = ("width", "depth", "members", "cycles", "chain__steps", "timesteps", "sampling_steps", "sweeps")
SIZES += ("corrector__sweeps", "training__batch_size", "architecture__orders")
HUGE = (10**9, 10**12, 10**15)
NO_BOOLEANS = ("yes", "no", "", 5, 1, 0, float("nan"), [])


def leaves(name: str) -> dict[str, Any]:
    found: dict[str, Any] = discovery.find("neurise.models", name).leaves()
    return found


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 GB, whatever this one has."""
    monkeypatch.setattr(devices, "available_bytes", lambda device: 2**34)


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name in TRAINED for size in SIZES if size in leaves(name)], ids=str
)
def test_a_huge_size_is_refused_before_any_network_is_made(
    monkeypatch: pytest.MonkeyPatch, name: str, size: str, value: int
) -> None:
    def made(*_: Any, **__: Any) -> None:
        raise AssertionError("a network was made")

    more = {"corrector__clean": 0.25} if "corrector__clean" in leaves(name) else {}
    model = tiny.model(name, **{**more, size: value})
    genuine = nn.Module.__init__
    monkeypatch.setattr(nn.Module, "__init__", genuine if name == "pairwise" else made)  # whose tables have no size
    with pytest.raises((ValueError, MemoryError), match=size.rpartition("__")[2]):
        model.fit(tiny.spins(), max_steps=2)
    assert not hasattr(model, "schema_")


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("name", MODELS)
def test_more_rows_than_fit_are_not_begun(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    model = tiny.model(name).fit(tiny.spins(), max_steps=2, verbose=False)
    monkeypatch.setattr(type(model), "_draw", None)
    with pytest.raises(MemoryError, match=f"draw fewer than n={value:,} rows at a time"):
        model.sample(value)


@pytest.mark.parametrize("value", HUGE)
def test_other_calls_refuse_huge_sizes(value: int) -> None:
    model = tiny.model(corrector__clean=0.25).fit(tiny.spins(), max_steps=2, verbose=False)
    with pytest.raises(ValueError, match="sweeps must be at most"):
        model.sample(5, sweeps=value)
    with pytest.raises(ValueError, match="draws must be at most"):
        model.elbo(tiny.spins(), draws=value)
    with pytest.raises(MemoryError, match="draw fewer than samples="):
        neurise.evaluate(model, tiny.spins(), samples=value)
    data = neurise.datasets.potts(side=2)
    with pytest.raises(MemoryError, match="draw fewer than"):
        data.sample(value)
    target = neurise.Pairwise().fit(tiny.spins(), max_steps=2)._network.interactions(0)
    for huge in (neurise.datasets.potts, neurise.datasets.edwards_anderson):
        with pytest.raises(ValueError, match="side must be at most"):
            huge(side=value)
    with pytest.raises(ValueError, match="qubits must be at most"):
        neurise.datasets.ghz(qubits=value)
    with pytest.raises(MemoryError, match="fewer sweeps or groups"):
        parallel_tempering(target, value, generator=torch.Generator())
    with pytest.raises(ValueError, match="sweeps must be at most"):
        parallel_tempering(target, 10, generator=torch.Generator(), sweeps=value)


SWITCHES = [(name, switch) for name in MODELS for switch in sorted(discovery.find("neurise.models", name).switches())]


def test_the_switches_are_found_by_their_annotations() -> None:
    assert ("neurise", "calibrate") in SWITCHES
    assert ("neurise", "architecture__pairwise") in SWITCHES
    assert ("d3pm", "offset") in SWITCHES


@pytest.mark.parametrize("value", NO_BOOLEANS, ids=repr)
@pytest.mark.parametrize(("name", "switch"), SWITCHES, ids=str)
def test_a_switch_is_true_or_false(name: str, switch: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{switch} must be True or False, got"):
        tiny.model(name, **{switch: value}).fit(tiny.spins(), max_steps=2)


@pytest.mark.parametrize("value", NO_BOOLEANS, ids=repr)
def test_switches_of_calls_are_true_or_false(value: Any) -> None:
    for option in ("verbose", "resume"):
        with pytest.raises(ValueError, match=f"{option} must be True or False"):
            tiny.model().fit(tiny.spins(), max_steps=2, **{option: value})
    with pytest.raises(ValueError, match="verbose must be True or False"):
        neurise.fit_many(tiny.model(), [tiny.spins()], max_steps=2, verbose=value)
    model = tiny.model("independent").fit(tiny.spins())
    for option in ("exact", "baselines"):
        with pytest.raises(ValueError, match=f"{option} must be True or False"):
            neurise.evaluate(model, tiny.spins(), **{option: value})


NAMES = [(name, leaf) for name in MODELS for leaf, default in leaves(name).items() if isinstance(default, str)]


@pytest.mark.parametrize("value", [[], {}, 5, None], ids=repr)
@pytest.mark.parametrize(("name", "leaf"), NAMES, ids=str)
def test_a_name_is_text(name: str, leaf: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"got|unknown|must be"):
        tiny.model(name, **{leaf: value}).fit(tiny.spins(), max_steps=2)


@pytest.mark.parametrize("device", ["meta", [], {}, 5, "meta:0"], ids=repr)
def test_devices_that_hold_nothing_are_refused(device: Any, tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="device"):
        tiny.model().fit(tiny.spins(), max_steps=2, device=device)
    with pytest.raises(ValueError, match="device"):
        neurise.load(tmp_path, device=device)


@pytest.mark.parametrize("loss", ["tempered_screening(-5)", "weighted_screening(-5)", "tempered_screening(1e9)"])
def test_losses_that_no_descent_would_end_are_refused(loss: str) -> None:
    with pytest.raises(ValueError, match="must be from -1 to 2"):
        tiny.model(loss=loss).fit(tiny.spins(), max_steps=2)


def test_a_site_is_no_neighbour_of_itself() -> None:
    with pytest.raises(ValueError, match=r"graph has \[0, 0\] at row 0; a pair is two different sites"):
        tiny.model(graph=[[0, 0]], corrector__clean=0.25).fit(tiny.spins(), max_steps=2)


@pytest.mark.parametrize(
    ("leaf", "value"),
    [("training__batch_size", 0), ("training__patience", -1), ("corrector__clean", 2), ("chain__steps", 0)],
)
def test_errors_name_the_group(leaf: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{leaf} must be"):
        tiny.model(**{leaf: value}).fit(tiny.spins(), max_steps=2)


def test_what_is_impossible_elsewhere_leaves_a_conditional() -> None:
    X = tiny.spins()
    X[:, 2] = 1
    model = tiny.model(alphabet=[-1, 1], chain__unseen=0).fit(X, max_steps=2, verbose=False)
    possible, impossible = np.array([[1, -1, 1]]), np.array([[1, -1, -1]])
    np.testing.assert_array_equal(model.conditional(impossible, 0), model.conditional(possible, 0))
    np.testing.assert_array_equal(model.conditional(impossible, 2), [[0, 1]])


def test_every_public_call_with_a_switch_is_tested_here() -> None:
    """A switch that is added to fit, sample or fit_many must be added above, too."""
    found = set()
    for call in (neurise.NeurISE.fit, neurise.NeurISE.sample, neurise.fit_many, neurise.evaluate):
        found |= {name for name, own in inspect.signature(call).parameters.items() if "bool" in str(own.annotation)}
    assert found == {"verbose", "resume", "exact", "baselines"}


@pytest.mark.parametrize("value", ["abc", float("nan"), -1, {1}, 2 + 1j, 10.5])
@pytest.mark.parametrize("name", ["group", "attention_heads", "shared_heads", "dropout"])
def test_options_of_other_networks_are_checked_too(name: str, value: Any) -> None:
    """They are saved with the model, whatever its network is."""
    model = tiny.model(**{f"architecture__{name}": value})
    with pytest.raises(ValueError, match=f"architecture__{name} must be"):
        model.fit(tiny.spins(), max_steps=2)
