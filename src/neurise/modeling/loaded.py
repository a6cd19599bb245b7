"""Check what a model's files hold before anything is built from it; every error names the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from neurise.fields import Field
from neurise.modeling.sizes import Sizes

MOST = 2**31
"""Largest whole number that a parameter of a saved model may be."""
SIZES = {"width": 10**6, "depth": 1000, "members": 1000, "nodes": 10**6, "slots": 10**6}
"""What networks and trees may be made of however small the file is; a larger one has the tensors to show for it."""


def check_tensors(tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError for the first tensor that holds an infinite number, or what is none."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            bad = tensor[~tensor.isfinite()].flatten()[0].item()
            raise ValueError(f"the tensor {name} holds {bad}; weights are finite numbers")


def check_sizes(config: Field, tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError for sizes that the tensors cannot have, before a network of that size is built."""
    for entry in config["params"].entries():
        if type(entry.value) is int:
            entry.whole(-MOST, MOST)
    count, numbers = len(tensors), sum(map(Tensor.numel, tensors.values()))
    largest = {"width": numbers, "depth": count, "members": count, "nodes": numbers, "slots": numbers}
    for entry in _all_entries([config["params"], config["learnt"]]):
        own = entry.name.rpartition(".")[2]
        if own in SIZES:
            limit = max(SIZES[own], largest[own])
            if isinstance(entry.value, list) and len(entry.value) > limit:
                raise entry.wrong(f"a list of at most {limit} entries")
            if type(entry.value) is int:
                entry.whole(0, limit)


def _all_entries(fields: list[Field]) -> Iterator[Field]:
    while fields:
        field = fields.pop()
        if isinstance(field.value, dict):
            fields += field.entries()
        elif isinstance(field.value, list):
            yield field
            fields += [entry for entry in field if isinstance(entry.value, dict | list)]
        else:
            yield field


def checked_history(field: Field) -> list[dict[str, float]]:
    """Return the record of a training: steps that grow, seconds, and numbers."""
    before = 0.0
    for record in field:
        before = record["step"].number(before)
        record["seconds"].number(0)
        if "steps" in record:
            record["steps"].number(0)
        for entry in record.entries():
            if type(entry.value) not in (int, float):
                raise entry.wrong("a number")
    history: list[dict[str, float]] = field.value
    return history


def checked_sizes(field: Field) -> Sizes:
    """Return the sizes that were chosen for the data."""
    known = Sizes.__annotations__
    if strange := [entry for entry in field.entries() if entry.name.rpartition(".")[2] not in known]:
        raise ValueError(f"{strange[0].name} is no size of a model; there are: {', '.join(known)}")
    for name in ("width", "depth", "members", "batch_size", "steps"):
        field[name].whole(1, MOST)
    if "stretch" in field.value:  # files of earlier versions have none
        field["stretch"].whole(1, MOST)
    for name in ("weight_decay", "dropout"):
        if name in field.value:
            field[name].number(0)
    field["learning_rate"].number(0)
    field["pairwise"].flag()
    return Sizes(**field.value)


def check_known_sites(chain: Field, constant: Tensor, unseen: float) -> None:
    """Raise ValueError where the conditionals of a chain do not answer for the sites that never vary as the schema says."""
    count, has_known = int((constant >= 0).sum()), chain["answers"].value == "known_sites"
    if has_known != (count > 0):
        raise ValueError(
            f"schema.constant names {count} sites that never vary, and {chain.name}.answers is "
            f"{chain['answers'].value!r}: they do not belong together"
        )
    if has_known and chain["unseen"].value != unseen:
        raise chain["unseen"].wrong(f"that of params.chain__unseen, {unseen!r}")


def load_exactly(module: nn.Module, tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Give a module that was built on the meta device its tensors, which must have its names, shapes and types."""
    kept: dict[str, Any] = dict(module.named_buffers(remove_duplicate=False))
    for name, wanted in module.state_dict().items():
        if name in tensors and tensors[name].dtype != wanted.dtype:
            raise ValueError(f"the tensor {name} holds {tensors[name].dtype}, and {wanted.dtype} was expected")
    module.to_empty(device=device)
    for name, buffer in kept.items():  # they are part of the schema, not of what was learnt
        if not buffer.is_meta:
            module.get_buffer(name).copy_(buffer)
    module.requires_grad_(False).load_state_dict(dict(tensors))
