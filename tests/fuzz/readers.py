"""Every reader of foreign files, with how its inputs are changed and how it is called."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from mutations import (
    Mutation,
    mutate_bytes,
    mutate_json,
    mutate_npy,
    mutate_npz,
    mutate_safetensors,
    packed,
)

CORPUS = Path(__file__).parent / "corpus"
MODELS = Path(__file__).parents[1] / "saved_models" / "v0.1"


@dataclass(frozen=True)
class Reader:
    """A reader: the ending of its files, how they are changed, and what is done with one."""

    ending: str
    mutate: Mutation
    read: Callable[[Path], Any]
    corpus: str = ""  # whose corpus is used, where it is that of another reader

    def write(self, path: Path, data: bytes) -> None:
        """Bring an input where it is read from."""
        path.write_bytes(data)


@dataclass(frozen=True)
class ModelReader(Reader):
    """Reads model folders whose checksums fit what was changed: the values themselves are looked at."""

    def write(self, path: Path, data: bytes) -> None:
        folder = path.parent / path.stem
        if not folder.exists():
            shutil.copytree(MODELS, folder)
        described, place = data, folder / "neurise_one"
        try:
            config = json.loads(data)
            place = next((folder / name for name in NAMED if name == config.pop("folder", None)), place)
            config["weights_sha256"] = hashlib.sha256((place / "model.safetensors").read_bytes()).hexdigest()
            described = checksummed(config)
        except (ValueError, RecursionError, AttributeError, TypeError):
            pass
        (place / "config.json").write_bytes(described)
        path.write_text(place.name)


@dataclass(frozen=True)
class WeightsReader(Reader):
    """Reads model folders whose weights were changed, and whose description knows it."""

    def write(self, path: Path, data: bytes) -> None:
        folder = path.parent / path.stem / "neurise_one"
        if not folder.exists():
            shutil.copytree(MODELS / "neurise_one", folder)
        config = json.loads((MODELS / "neurise_one" / "config.json").read_bytes())
        config["weights_sha256"] = hashlib.sha256(data).hexdigest()
        (folder / "config.json").write_bytes(checksummed(config))
        (folder / "model.safetensors").write_bytes(data)
        path.write_text(folder.name)


@dataclass(frozen=True)
class CheckpointReader(Reader):
    """Reads checkpoints; where the changed file is still one of tensors, its checksum is made to fit."""

    def write(self, path: Path, data: bytes) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load, save

        state = importlib.import_module("neurise.training.state")
        try:
            size = int.from_bytes(data[:8], "little")
            described = json.loads(data[8 : 8 + size])["__metadata__"]["state"]
            tensors = load(data)
            metadata = {"state": described, "checksum": state._checksum(described, tensors)}
            data = save(tensors, metadata)
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError, OverflowError, AttributeError):
            pass
        path.write_bytes(data)


NAMED = (
    "neurise_one",
    "neurise_committee",
    "neurise_pairs",
    "pairwise",
    "d3pm",
    "dfm",
    "sedd",
    "memorize",
    "neurise_labels",
)


def checksummed(config: dict[str, Any]) -> bytes:
    """Write a description with the checksum that it should have."""
    own = {key: value for key, value in config.items() if key != "checksum"}
    own["checksum"] = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
    return json.dumps(own).encode()


def _files(**options: Any) -> Callable[[Path], Any]:
    from neurise.datasets import files

    return lambda path: files(path, **options)


def _clamp(path: Path) -> Any:
    from neurise.cli.sample import read_clamp

    alphabet = SimpleNamespace(symbols=np.array([-1, 1], dtype=np.int8))
    model: Any = SimpleNamespace(schema_=SimpleNamespace(alphabet=alphabet), space_=SimpleNamespace(sites=4))
    return read_clamp(path, model)


def _reads(path: Path) -> Any:
    from neurise.datasets import dwave

    return dwave(path)


def _problem(path: Path) -> Any:
    from neurise.datasets._annealers.imports import as_problem, variables_of

    return as_problem(path, variables_of(path))


def _couplings(path: Path) -> Any:
    from neurise.datasets._annealers.advantage import _couplings as couplings

    return couplings(path)


def _images(path: Path) -> Any:
    from neurise.datasets import idx

    return idx(path)


def _bits(path: Path) -> Any:
    from neurise.datasets._bits import check_bits, read_bits

    return check_bits(read_bits(path), str(path), 4)


def _config(path: Path) -> Any:
    from neurise import presets

    return presets.read(path)


def _results(path: Path) -> Any:
    from neurise.experiments import store

    return store.read(path)


def _model(path: Path) -> Any:
    import neurise

    return neurise.load(path.parent / path.stem / path.read_text(), device="cpu")


def _checkpoint(path: Path) -> Any:
    state = importlib.import_module("neurise.training.state")
    import torch

    network = torch.nn.Linear(3, 2)
    fresh = state.TrainingState(network, torch.optim.AdamW(network.parameters(), lr=0.1), torch.Generator())
    return fresh.restore(path, {"data": "abc", "seed": 0})


def readers() -> dict[str, Reader]:
    """List them, the fastest first."""
    return {
        "results": Reader(".jsonl", mutate_bytes, _results),
        "config": Reader(".json", mutate_json, _config),
        "idx": Reader(".idx", packed_or(mutate_bytes), _images),
        "bits": Reader(".data", mutate_bytes, _bits),
        "clamp": Reader(".csv", mutate_bytes, _clamp),
        "npy": Reader(".npy", mutate_npy, _files()),
        "bqpjson": Reader(".json", mutate_json, _reads),
        "problem": Reader(".json", mutate_json, _problem, "bqpjson"),
        "csv": Reader(".csv", mutate_bytes, _files()),
        "tsv": Reader(".tsv", mutate_bytes, _files(missing="drop"), "csv"),
        "histogram": Reader(".csv", mutate_bytes, _files(kind="histogram")),
        "fasta": Reader(".fasta", mutate_bytes, _files()),
        "stockholm": Reader(".sto", mutate_bytes, _files()),
        "counts": Reader(".json", mutate_json, _files()),
        "text": Reader(".txt", mutate_bytes, _files(window=4, stride=2), "fasta"),
        "csv_gz": Reader(".csv.gz", packed(mutate_bytes), _files()),
        "npz": Reader(".npz", mutate_npz, _files()),
        "reads_npz": Reader(".npz", mutate_npz, _reads),
        "couplings": Reader(".npz", mutate_npz, _couplings),
        "model": ModelReader(".txt", mutate_json, _model),
        "weights": WeightsReader(".txt", mutate_safetensors, _model),
        "checkpoint": CheckpointReader(".safetensors", mutate_safetensors, _checkpoint),
    }


def packed_or(inner: Mutation) -> Mutation:
    """Mutate a file, or what it holds where it is packed."""
    unpacking = packed(inner)
    return lambda rng, data, others: (unpacking if data[:2] == b"\x1f\x8b" else inner)(rng, data, others)


def corpus_of(name: str, reader: Reader) -> list[bytes]:
    """Return the good files that inputs are made of."""
    if name == "model":
        configs = {folder: json.loads((MODELS / folder / "config.json").read_bytes()) for folder in NAMED}
        return [json.dumps({**config, "folder": folder}).encode() for folder, config in configs.items()]
    if name == "weights":
        return [(MODELS / "neurise_one" / "model.safetensors").read_bytes()]
    if name == "checkpoint":
        return [_made_checkpoint()]
    if name == "couplings":
        return [_made_couplings()]
    return [path.read_bytes() for path in sorted((CORPUS / (reader.corpus or name)).iterdir())]


def _made_checkpoint() -> bytes:
    """A small checkpoint, made here: its form belongs to this version."""
    import tempfile

    import torch

    state = importlib.import_module("neurise.training.state")
    network = torch.nn.Linear(3, 2)
    made = state.TrainingState(
        network, torch.optim.AdamW(network.parameters(), lr=0.1), torch.Generator().manual_seed(0)
    )
    network(torch.ones(1, 3)).sum().backward()
    made.optimizer.step()
    made.step = 1
    made.history.append({"step": 1.0, "seconds": 0.5, "loss": 0.25})
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "c", {"data": "abc", "seed": 0})
        return (Path(folder) / "c").read_bytes()


def _made_couplings() -> bytes:
    """A dictionary that numpy pickled, as published couplings are; no pickle is kept in the repository."""
    stream = io.BytesIO()
    np.savez(stream, J=np.array({(0, 1): 0.5, (1, 2): np.float64(-1.0), (0, 2): 1}, dtype=object))
    return stream.getvalue()
