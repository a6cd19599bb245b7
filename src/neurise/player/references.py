"""The small models that are shipped: one folder each, with models of the same rows and a card."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from neurise import discovery
from neurise.dataset import Dataset

FOLDER = Path(__file__).parent / "reference"
FIRST = "glass"
"""What is shown where nothing is named."""


@dataclass(frozen=True)
class Reference:
    """Models of the same rows, and where these come from."""

    name: str
    title: str
    data: str  # as the command line takes it
    shape: tuple[int, ...]
    models: tuple[Path, ...]  # NeurISE first


def names() -> list[str]:
    """List the shipped models."""
    return sorted(card.parent.name for card in FOLDER.glob("*/card.json"))


def find(name: str) -> Reference:
    """Read a card by its name."""
    folder = FOLDER / name
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    found = sorted(
        (file.parent for file in folder.glob("*/config.json")), key=lambda path: (path.name != "neurise", path)
    )
    return Reference(name, card["title"], card["data"], tuple(card["shape"]), tuple(found))


def rows_of(reference: Reference) -> Dataset | None:
    """Return the data of a reference where it is a law; None where it would have to be downloaded."""
    name, _, options = reference.data.partition(":")
    if not options:
        return None
    values = dict(part.split("=") for part in options.split(","))
    return discovery.find("neurise.datasets", name)(**{key: json.loads(text) for key, text in values.items()})  # type: ignore[no-any-return]
