"""Forged checkpoints under valid checksums: every field and every tensor is checked before a run goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from hostile import HOSTILE
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from neurise.modeling.model import Model
from neurise.training import checkpoint_file
from neurise.training.state import CHECKPOINT


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    tiny.model().fit(tiny.spins(), max_steps=20, checkpoint=folder, verbose=False)
    return folder


def forged(folder: Path, change: Any) -> None:
    """Change the facts and the tensors of a checkpoint, and seal it again."""
    path = folder / CHECKPOINT
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["state"])
    change(facts, tensors)
    state = json.dumps(facts)
    save_file(tensors, path, metadata={"state": state, "checksum": checkpoint_file._checksum(state, tensors)})


def resumed(folder: Path) -> Model:
    return tiny.model().fit(tiny.spins(), max_steps=20, checkpoint=folder, resume=True, verbose=False)


@pytest.mark.parametrize("field", ["format", "best_score", "stale", "step", "seconds", "history", "fingerprint"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_every_field_of_a_checkpoint(run_folder: Path, tmp_path: Path, field: str, kind: str) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run")
    forged(folder, lambda facts, tensors: facts.update({field: HOSTILE[kind]}))
    allowed = {"seconds": ("huge", "beyond 64 bits", "a fraction"), "history": ("an empty list",)}
    allowed["best_score"] = ("negative", "huge", "beyond 64 bits", "a fraction", "infinite")
    if kind in allowed.get(field, ()):  # other numbers that a run could have come to
        resumed(folder)
        return
    with pytest.raises(ValueError, match=f"{field}|another run") as refused:
        resumed(folder)
    assert str(folder / CHECKPOINT) in str(refused.value)


TENSORS: dict[str, tuple[Any, str]] = {
    "a weight is missing": (lambda tensors: tensors.pop("network.pattern.bias"), "network.pattern.bias is missing"),
    "a weight is not a number": (
        lambda tensors: tensors["average.pattern.bias"].fill_(torch.nan),
        "average.pattern.bias holds nan",
    ),
    "a weight has another shape": (
        lambda tensors: tensors.update({"best.pattern.bias": torch.zeros(3)}),
        "best.pattern.bias is",
    ),
    "a moment is missing": (lambda tensors: tensors.pop("optimizer.0.exp_avg"), "optimizer.0.exp_avg"),
    "a moment is negative": (
        lambda tensors: tensors["optimizer.0.exp_avg_sq"].fill_(-1),
        "optimizer.0.exp_avg_sq holds",
    ),
    "another count of steps": (
        lambda tensors: tensors["optimizer.0.step"].fill_(7),
        "state.step is 20, and optimizer.0",
    ),
    "a parameter too many": (lambda tensors: tensors.update({"optimizer.99.step": torch.zeros(())}), "optimizer"),
    "random numbers of another kind": (lambda tensors: tensors.update(generator=torch.zeros(3)), "generator is"),
    "random numbers that are none": (lambda tensors: tensors["generator"].fill_(255), "no checkpoint of this run"),
    "scores of other examples": (lambda tensors: tensors.update(best_scores=torch.zeros(3).double()), "best_scores"),
    "an unknown tensor": (lambda tensors: tensors.update(more=torch.zeros(3)), "the tensor more has no place"),
}


@pytest.mark.parametrize(("change", "message"), TENSORS.values(), ids=TENSORS)
def test_every_tensor_of_a_checkpoint(run_folder: Path, tmp_path: Path, change: Any, message: str) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run")
    forged(folder, lambda facts, tensors: change(tensors))
    with pytest.raises(ValueError, match=message):
        resumed(folder)
