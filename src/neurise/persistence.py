"""A model as a folder: ``config.json`` + ``model.safetensors``.

Nothing is ever unpickled, and nothing in a file names code to run. The two files of a model are made current by two
renames; between them, and after a crash there, the new weights stand beside the old description, and the new description
beside it as ``config.json.new``. Every description holds the SHA-256 of the weights that it belongs to, so
:func:`load_folder` finds a whole model at every moment. Savers wait for each other (:mod:`neurise.locks`).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from neurise import json_text
from neurise.files import rename, staged, write_text
from neurise.locks import saving_in

FORMAT = 2
"""Raised whenever a file of an older version can no longer be read as it stands."""

READABLE = (1, FORMAT)
"""Formats that can be read: 1 is that of version 0.1."""

CONFIG, WEIGHTS = "config.json", "model.safetensors"
MOST_BYTES = 10**8
"""Of a description; that of a large model has a few thousand."""
PENDING = f"{CONFIG}.new"
"""The description of weights that are about to be, or have just been, made current."""
LOOKS, PAUSE = 1000, 0.002
"""How often a folder is looked at that others save to meanwhile, and the seconds between two looks."""


class Stored(NamedTuple):
    """What a folder holds: the description and the weights of one and the same model."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]


class _Replaced(Exception):
    """Another process has saved a model while this one was reading."""


def save_tensors(place: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(contiguous, place, metadata=metadata)
    except SafetensorError as error:  # its writer's only word for a full disk
        raise OSError(f"cannot write {place}: {error}") from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file, with a clear error for one that is cut short or of another kind."""
    try:
        return dict(load_file(path))
    except (
        SafetensorError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:  # a header that promises what torch has not
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error


def save_folder(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a model; whatever fails on the way (a full disk, say), the model that was there before is still whole."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a model is saved as a folder")
    with saving_in(folder), staged(folder / WEIGHTS) as weights:
        _finish_renaming(folder)
        save_tensors(weights.place, tensors)
        weights.flush()
        described = {"format": FORMAT, **config, "weights_sha256": _sha256(weights.place)}
        described["checksum"] = _checksum(described)
        try:
            write_text(folder / PENDING, json.dumps(described, indent=2, ensure_ascii=False) + "\n")
            weights.commit()
        except BaseException:
            if weights.place.exists():  # else they are current, and this is their description
                (folder / PENDING).unlink(missing_ok=True)
            raise
        rename(folder / PENDING, folder / CONFIG)


def load_folder(folder: Path) -> Stored:
    """Read a model's description and weights, after checking that both are whole and belong together.

    Where another process saves at the same time, it is either model, never a part of each.
    """
    for _ in range(LOOKS):
        try:
            return _read_folder(folder)
        except _Replaced:
            time.sleep(PAUSE)
    raise OSError(f"{folder} was saved to {LOOKS} times while it was read; try again when it is not")


def _read_folder(folder: Path) -> Stored:
    """Read a model; raise _Replaced where a file was exchanged meanwhile."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no model folder {folder}")
    path, before = folder / WEIGHTS, _identities(folder)
    try:
        # While it is open, no other file can get the same identity.
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            pending = _description(folder / PENDING, digest)
            config = pending if pending is not None else _read_config(folder / CONFIG)
            if config["weights_sha256"] != digest:
                raise ValueError(
                    f"{path} is damaged or not the file that {CONFIG} describes: its SHA-256 is {digest}, and "
                    f"{config['weights_sha256']} was expected; restore the folder from a copy or train again"
                )
            tensors = load_tensors(path)
            if not _is_open(path, file.fileno()):
                raise _Replaced
    except (OSError, ValueError) as error:
        if _identities(folder) != before:  # what looks like damage is a save under way
            raise _Replaced from error
        if isinstance(error, FileNotFoundError) and not path.exists():
            raise FileNotFoundError(f"{folder} is no model folder: {WEIGHTS} is missing") from None
        raise
    return Stored(config, tensors)


def _identities(folder: Path) -> list[tuple[int, ...]]:
    """Tell the files of a model from those of any other save."""
    found: list[tuple[int, ...]] = []
    for name in (WEIGHTS, PENDING, CONFIG):
        try:
            facts = (folder / name).stat()
            found.append((facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size))
        except OSError:
            found.append(())
    return found


def _is_open(path: Path, descriptor: int) -> bool:
    """Whether a name still belongs to the file that is open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _finish_renaming(folder: Path) -> None:
    """Do the second rename if a crash left it undone: the next save would write over the only fitting description."""
    weights = folder / WEIGHTS
    if (folder / PENDING).is_file() and weights.is_file() and _description(folder / PENDING, _sha256(weights)):
        rename(folder / PENDING, folder / CONFIG)


def _description(path: Path, digest: str) -> dict[str, Any] | None:
    """Read a description if it is there, is whole, and belongs to the weights of a digest."""
    with suppress(OSError, ValueError):
        config = _read_config(path)
        return config if config["weights_sha256"] == digest else None
    return None


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} is no model folder: {path.name} is missing")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes; a description has at most {MOST_BYTES:,}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error
    config = json_text.parse(text, str(path))
    if not isinstance(config, dict) or "format" not in config:
        raise ValueError(f"{path} does not describe a model of neurise")
    if type(config["format"]) is not int or config["format"] not in READABLE:
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
