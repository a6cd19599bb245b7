import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from neurise.training.state import TrainingState

FINGERPRINT = {"data": "abc", "seed": 0}


def trained(seed: int = 0, steps: int = 3) -> TrainingState:
    """A state with something in every part of it."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Linear(3, 2)
    for parameter in network.parameters():
        nn.init.normal_(parameter, generator=generator)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    average = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    state = TrainingState(network, optimizer, generator, average)
    for _ in range(steps):
        descend(state)
    if steps:
        state.best = {name: tensor + 1 for name, tensor in state.average.items()}
        state.best_score, state.stale = torch.tensor(0.1 + 0.2, dtype=torch.float64), torch.tensor(2)
        state.seconds = 1 / 3
        state.best_scores = torch.tensor([0.1, 0.5], dtype=torch.float64)
        state.history.append({"step": 3.0, "loss": 0.1})
    return state


def descend(state: TrainingState) -> None:
    state.optimizer.zero_grad()
    state.network(torch.rand((4, 3), generator=state.generator)).square().mean().backward()
    state.optimizer.step()
    state.step += 1
    for name, parameter in state.network.named_parameters():
        state.average[name].lerp_(parameter.detach(), 0.1)


def contents(state: TrainingState) -> dict[str, Any]:
    return {
        "network": {name: tensor.tolist() for name, tensor in state.network.state_dict().items()},
        "average": {name: tensor.tolist() for name, tensor in state.average.items()},
        "best": state.best and {name: tensor.tolist() for name, tensor in state.best.items()},
        "generator": state.generator.get_state().tolist(),
        "best_scores": state.best_scores.tolist(),
        "rest": (state.best_score, state.stale, state.step, state.seconds, state.history),
    }


@pytest.mark.parametrize("steps", [0, 3])
def test_everything_is_restored(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "run" / "checkpoint.safetensors"
    state = trained(steps=steps)
    state.save(path, FINGERPRINT)
    other = trained(seed=1)
    other.restore(path, FINGERPRINT)
    assert contents(other) == contents(state)
    for each in (state, other):
        descend(each)
        descend(each)
    assert contents(other) == contents(state)  # the optimiser's moments and the random numbers too
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_record_is_restored_in_place(tmp_path: Path) -> None:
    trained().save(tmp_path / "c", FINGERPRINT)
    other = trained(seed=1)
    record = other.history
    other.restore(tmp_path / "c", FINGERPRINT)
    assert record == [{"step": 3.0, "loss": 0.1}]


@pytest.mark.parametrize(
    ("fingerprint", "message"),
    [
        ({"data": "abd", "seed": 0}, r"another run \(data was 'abc', is 'abd'\)"),
        ({"data": "abd", "seed": 1}, r"\(data was 'abc', is 'abd'; seed was 0, is 1\)"),
        ({"data": "abc", "seed": 0, "more": 5}, r"\(more was None, is 5\)"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, fingerprint: dict[str, Any], message: str) -> None:
    trained().save(tmp_path / "c", FINGERPRINT)
    state = trained(seed=1)
    before = contents(state)
    with pytest.raises(ValueError, match=message):
        state.restore(tmp_path / "c", fingerprint)
    assert contents(state) == before


def flipped(place: int) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[place] ^= 1
        path.write_bytes(data)

    return act


def edited(path: Path) -> None:
    """Claim another step, as somebody might who edits the file, and leave all tensors."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(
        load_file(path), path, metadata=metadata | {"state": metadata["state"].replace('"step": 3,', '"step": 2,')}
    )


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "damaged or no safetensors file"),
    "empty": (lambda path: path.write_bytes(b""), "damaged or no safetensors file"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps([1])), "damaged or no safetensors file"),
    "one bit of a tensor": (flipped(-1), "is damaged: its checksum does not match"),
    "one bit of the header": (flipped(9), "damaged or no safetensors file"),
    "an edited step": (edited, "is damaged: its checksum does not match"),
    "another file": (lambda path: save_file({"w": torch.ones(2)}, path), "no checkpoint of neurise"),
}


@pytest.mark.parametrize(("act", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found_before_anything_is_taken(tmp_path: Path, act: Callable[[Path], Any], message: str) -> None:
    path = tmp_path / "c"
    trained().save(path, FINGERPRINT)
    act(path)
    state = trained(seed=1)
    before = contents(state)
    with pytest.raises(ValueError, match=message):
        state.restore(path, FINGERPRINT)
    assert contents(state) == before


def test_a_later_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("neurise.training.checkpoint_file.FORMAT", 99)
        trained().save(tmp_path / "c", FINGERPRINT)
    with pytest.raises(ValueError, match="format 99, and this version of neurise reads 2"):
        trained().restore(tmp_path / "c", FINGERPRINT)


def test_the_usable_weights_are_the_best_or_else_the_average() -> None:
    state = trained()
    assert state.usable() is state.best
    state.best = None
    assert state.usable() is state.average


def test_a_score_of_infinity_survives_the_file(tmp_path: Path) -> None:
    state = trained(steps=0)
    state.save(tmp_path / "c", FINGERPRINT)
    with safe_open(tmp_path / "c", framework="pt") as file:
        assert json.loads(file.metadata()["state"])["best_score"] == float("inf")
