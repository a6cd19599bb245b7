"""Files that survive: atomic writes, and a model as ``config.json`` + ``model.safetensors``.

Nothing is ever unpickled, and nothing in a file names code to run. The two files of a model are made current by two
renames; a crash between them leaves the new weights beside the old description, and the new description beside it as
``config.json.new``. The checksums say which one belongs to the weights, so :func:`load_folder` finds a whole model at
every moment.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

FORMAT = 2
"""Raised whenever a file of an older version can no longer be read as it stands."""

READABLE = (1, FORMAT)
"""Formats that can be read: 1 is that of version 0.1."""

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Call ``write`` on a temporary name beside ``path`` and rename: the old file is whole until the new one is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp{path.suffix}")
    try:
        write(temporary)
        _flush(temporary)
        temporary.replace(path)
    except SafetensorError as error:  # its writer's only word for a full disk
        raise OSError(f"cannot write {path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def save_folder(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a model; whatever fails on the way (a full disk, say), the model that was there before is still whole."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a model is saved as a folder")
    _finish_renaming(folder)
    new_weights, new_config = folder / f"{WEIGHTS}.new", folder / f"{CONFIG}.new"
    try:
        contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        write_atomically(new_weights, lambda path: save_file(contiguous, path))
        described = {"format": FORMAT, **config, "weights_sha256": _sha256(new_weights)}
        described["checksum"] = _checksum(described)
        text = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
        write_atomically(new_config, lambda path: _write_text(path, text))
        new_weights.replace(folder / WEIGHTS)
    except BaseException:
        new_weights.unlink(missing_ok=True)
        new_config.unlink(missing_ok=True)
        raise
    new_config.replace(folder / CONFIG)


def load_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model's description and weights, after checking that both are whole and belong together."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no model folder {folder}")
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise FileNotFoundError(f"{folder} is no model folder: {WEIGHTS} is missing")
    digest = _sha256(weights)
    pending = folder / f"{CONFIG}.new"
    config = _read_config(pending if _describes(pending, digest) else folder / CONFIG)
    if config["weights_sha256"] != digest:
        raise ValueError(
            f"{weights} is damaged or not the file that {CONFIG} describes: its SHA-256 is {digest}, and "
            f"{config['weights_sha256']} was expected; restore the folder from a copy or train again"
        )
    return config, load_tensors(weights)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file, with a clear error for one that is cut short or of another kind."""
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error


def _finish_renaming(folder: Path) -> None:
    """Do the second rename if a crash left it undone: the next save would write over the only fitting description."""
    pending, weights = folder / f"{CONFIG}.new", folder / WEIGHTS
    if pending.is_file() and weights.is_file() and _describes(pending, _sha256(weights)):
        pending.replace(folder / CONFIG)


def _describes(config: Path, digest: str) -> bool:
    """Whether a description is there, is whole, and belongs to the weights of a digest."""
    try:
        return bool(_read_config(config)["weights_sha256"] == digest)
    except (OSError, ValueError):
        return False


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} is no model folder: {path.name} is missing")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(config, dict) or "format" not in config:
        raise ValueError(f"{path} does not describe a model of neurise")
    if config["format"] not in READABLE:
        raise ValueError(
            f"{path} has format {config['format']!r}, and this version of neurise reads formats 1 to {FORMAT}"
        )
    expected = _checksum({key: value for key, value in config.items() if key != "checksum"})
    if config.get("checksum") != expected or "weights_sha256" not in config:
        raise ValueError(f"{path} was changed after it was saved: its checksum does not match; restore it from a copy")
    return config


def _checksum(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _flush(path: Path) -> None:
    """Force a file's bytes to the disk before its name changes, or a power cut could leave an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
