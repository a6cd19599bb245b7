"""The file of a checkpoint: one safetensors file, written atomically, none of whose values is believed when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from neurise import json_text
from neurise.fields import Field
from neurise.files import write_atomically
from neurise.persistence import load_tensors, save_tensors

FORMAT = 2
COUNTED = 2**24
"""Steps up to which the optimiser counts: it does so in float32."""


class Facts(NamedTuple):
    """What a checkpoint holds besides tensors."""

    best_score: Tensor
    stale: Tensor
    step: int
    seconds: float
    before: float  # seconds that preparing took; files of earlier versions do not say
    history: list[dict[str, Any]]


def write(path: Path, fingerprint: Mapping[str, Any], facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write everything to one file."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    state = json.dumps({"format": FORMAT, "fingerprint": dict(fingerprint), **facts})
    metadata = {"state": state, "checksum": _checksum(state, contiguous)}
    write_atomically(path, lambda place: save_tensors(place, contiguous, metadata))


def read(path: Path, fingerprint: Mapping[str, Any], way_out: str) -> tuple[Facts, dict[str, Tensor]]:
    """Read a file, after checking that it is whole and belongs to the same data and settings."""
    # Copies: what is read is a view of the file at any alignment, and a run goes on in memory of its own.
    tensors = {name: tensor.clone() for name, tensor in load_tensors(path).items()}
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    if "state" not in metadata:
        raise ValueError(f"{path} is no checkpoint of neurise")
    if metadata.get("checksum") != _checksum(metadata["state"], tensors):
        raise ValueError(f"{path} is damaged: its checksum does not match; {way_out}")
    facts = Field(json_text.parse(metadata["state"], f"the state in {path}"), f"{path}: state")
    if facts["format"].value != FORMAT:
        raise ValueError(f"{path} has format {facts['format'].value!r}, and this version of neurise reads {FORMAT}")
    before = {
        entry.name.removeprefix(f"{facts.name}.fingerprint."): entry.value for entry in facts["fingerprint"].entries()
    }
    differing = [key for key in {**fingerprint, **before} if before.get(key) != fingerprint.get(key)]
    if differing:
        changes = "; ".join(f"{key} was {before.get(key)!r}, is {fingerprint.get(key)!r}" for key in differing)
        raise ValueError(f"{path} belongs to another run ({changes}); resume with the same, or {way_out}")
    limit = fingerprint.get("max_steps")
    step = facts["step"].whole(0, limit) if isinstance(limit, int) else facts["step"].whole()
    return Facts(
        torch.tensor(_numbers(facts["best_score"]), dtype=torch.float64),
        torch.tensor(_wholes(facts["stale"], step)),
        step,
        facts["seconds"].number(0),
        facts["before"].number(0) if "before" in facts else 0.0,
        _history(facts["history"], step),
    ), tensors


def check_tensors(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Raise ValueError for tensors that are missing, of another shape or type, infinite or not numbers."""
    for name, tensor in wanted.items():
        if name not in found:
            raise ValueError(f"the tensor {name} is missing")
        own = found[name]
        if own.shape != tensor.shape or own.dtype != tensor.dtype:
            raise ValueError(
                f"the tensor {name} is {own.dtype} {tuple(own.shape)}, and {tensor.dtype} {tuple(tensor.shape)} was expected"
            )
    if "best_scores" not in found or found["best_scores"].dtype != torch.float64:
        raise ValueError("the tensor best_scores must hold float64 numbers")
    for name, tensor in found.items():
        if name not in wanted and name != "best_scores" and not name.startswith("optimizer."):
            raise ValueError(f"the tensor {name} has no place in a checkpoint")
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ValueError(f"the tensor {name} holds {tensor[~tensor.isfinite()].flatten()[0].item()}")


def check_moments(moments: Mapping[int, Mapping[str, Tensor]], optimizer: torch.optim.Optimizer, step: int) -> None:
    """Raise ValueError for moments of the optimiser that are not those of the parameters after so many steps."""
    if not moments and step == 0:
        return
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if sorted(moments) != list(range(len(parameters))):
        raise ValueError(f"the tensors optimizer.… must be those of {len(parameters)} parameters")
    for index, parameter in enumerate(parameters):
        own = moments[index]
        for name in ("exp_avg", "exp_avg_sq"):
            if name not in own or own[name].shape != parameter.shape or own[name].dtype != parameter.dtype:
                raise ValueError(
                    f"the tensor optimizer.{index}.{name} is not that of a parameter {tuple(parameter.shape)}"
                )
        if bool((own["exp_avg_sq"] < 0).any()):
            raise ValueError(f"the tensor optimizer.{index}.exp_avg_sq holds a negative number")
        if own.keys() != {"exp_avg", "exp_avg_sq", "step"} or own["step"].numel() != 1:
            raise ValueError(f"the tensors optimizer.{index}.… are not those of AdamW")
        if int(own["step"]) != min(step, COUNTED):
            raise ValueError(f"state.step is {step}, and optimizer.{index}.step is {float(own['step']):g}")


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _numbers(field: Field) -> Any:
    """Return a number or a list of numbers; infinite is a score that was never found."""
    return (
        [entry.number(finite=False) for entry in field] if isinstance(field.value, list) else field.number(finite=False)
    )


def _wholes(field: Field, most: int) -> Any:
    return [entry.whole(0, most) for entry in field] if isinstance(field.value, list) else field.whole(0, most)


def _history(field: Field, step: int) -> list[dict[str, Any]]:
    before = 0.0
    for record in field:
        before = record["step"].number(before, step)
        if "seconds" in record:
            record["seconds"].number(0)
        _loss(record["loss"])
        if "validation" in record:
            _loss(record["validation"])
    history: list[dict[str, Any]] = field.value
    return history


def _loss(field: Field) -> None:
    entries = list(field) if isinstance(field.value, list) else [field]
    for entry in entries:
        if type(entry.value) not in (int, float):
            raise entry.wrong("a number")


def _checksum(state: str, tensors: Mapping[str, Tensor]) -> str:
    """Digest everything that is restored: a flipped bit in a weight would otherwise go unseen."""
    total = hashlib.sha256(state.encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.numpy().tobytes())
    return total.hexdigest()
