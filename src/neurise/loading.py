"""Load a saved model of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from neurise import devices, discovery
from neurise.hub.address import is_address, parsed
from neurise.hub.download import downloaded
from neurise.persistence import load_folder

if TYPE_CHECKING:
    from neurise.modeling.model import Model


def load(path: str | Path, device: str | torch.device | None = None) -> Model:
    """Load a model that ``model.save(path)`` wrote. Nothing in the files is run: they hold numbers and settings.

    ``path`` is a folder, or the address of a model on the Hugging Face Hub: ``hf://owner/name``, or
    ``hf://owner/name@revision`` for a branch, a tag or a commit (extra ``hub``). Of a hub two files are downloaded, once,
    into the hub's own cache.

    >>> import neurise
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> neurise.Independent().fit([[0, 1], [1, 0]]).save(folder)
    >>> neurise.load(folder).sample(3, seed=0).shape
    (3, 2)
    """
    place = devices.resolve(device)
    folder = downloaded(parsed(path)) if is_address(path) else Path(path)
    config, tensors = load_folder(folder)
    try:
        if config["format"] == 1:
            from neurise.modeling import format_1

            config, tensors = format_1.converted(config, tensors)
        model: Model = discovery.find("neurise.models", config["model"]).restored(config, tensors, place)
    except MemoryError as error:
        raise MemoryError(f"{path}: {error}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{path} does not describe a model that this version of neurise knows: {error}") from error
    return model
