"""Download a model from the Hugging Face Hub: two files, of known names and sizes, of one revision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from neurise import devices
from neurise.extras import need
from neurise.hub.address import Address
from neurise.persistence import CONFIG, MOST_BYTES, WEIGHTS

FILES = (CONFIG, WEIGHTS)
"""All that is ever downloaded: nothing in them is run (:mod:`neurise.persistence`)."""


def downloaded(address: Address) -> Path:
    """Return the folder of the cache that holds the model, downloaded if it is not there yet.

    Without a connection, the revision that was downloaded last is used.
    """
    hub = need("huggingface_hub", "hub")
    errors = need("huggingface_hub.errors", "hub")
    options: dict[str, Any] = {"library_name": "neurise"}
    reason = ""
    try:
        _check(hub, address)
    except (errors.GatedRepoError, errors.RepositoryNotFoundError) as error:
        raise FileNotFoundError(
            f"{address}: there is no such model, or it is private; check the name, or sign in with: hf auth login"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(f"{address}: the model has no revision {address.revision!r}") from error
    except unreachable(errors) as error:
        if 400 <= status_of(error) < 500:
            raise OSError(f"{address}: the hub refuses to answer: {first_line(error)}") from error
        options["local_files_only"], reason = True, first_line(error)
    try:
        config = Path(hub.hf_hub_download(address.repository, CONFIG, revision=address.revision, **options))
        commit = config.parent.name  # the weights are those of the same commit, whatever is put there meanwhile
        hub.hf_hub_download(address.repository, WEIGHTS, revision=commit, **options)
    except (errors.LocalEntryNotFoundError, *unreachable(errors)) as error:
        raise OSError(
            f"{address}: the hub cannot be reached ({reason or first_line(error)}), and the model was not downloaded before; "
            "check the connection (and HF_ENDPOINT and HF_HUB_OFFLINE, where they are set)"
        ) from error
    return config.parent


def _check(hub: Any, address: Address) -> None:
    """Raise an error where the address lacks the files of a model, or where these are too large."""
    found = hub.HfApi(library_name="neurise").model_info(
        address.repository, revision=address.revision, files_metadata=True
    )
    sizes = {file.rfilename: file.size for file in found.siblings or ()}
    missing = [name for name in FILES if name not in sizes]
    if missing:
        raise ValueError(
            f"{address} is no model of neurise: it has no {' and no '.join(missing)}; such a model is put there by "
            "model.push_to_hub"
        )
    for name in FILES:
        if type(sizes[name]) is not int or sizes[name] < 0:
            raise ValueError(f"{address}: the hub does not say how large {name} is")
    if sizes[CONFIG] > MOST_BYTES:
        raise ValueError(f"{address}: {CONFIG} has {sizes[CONFIG]:,} bytes; a description has at most {MOST_BYTES:,}")
    devices.require_memory(sizes[WEIGHTS], torch.device("cpu"), f"{address} has weights of {sizes[WEIGHTS]:,} bytes")


def unreachable(errors: Any) -> tuple[type[Exception], ...]:
    """Return what is raised where there is no connection, by the system or by whichever HTTP client the package uses."""
    return (ConnectionError, TimeoutError, errors.HfHubHTTPError.__bases__[0])


def status_of(error: BaseException) -> int:
    """Return the status that a hub answered with; 0 where it did not answer."""
    return int(getattr(getattr(error, "response", None), "status_code", 0) or 0)


def first_line(error: BaseException) -> str:
    """Return what an error says first: the rest is advice for other programs."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
