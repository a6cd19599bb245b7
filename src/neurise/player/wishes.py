"""What a page may ask for, checked: every error names the field and what it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neurise.player.stage import Actor, Stage

LARGEST_SEED = 2**31 - 1


class Wish:
    """The fields of one request."""

    def __init__(self, stage: Stage, fields: Any) -> None:
        if not isinstance(fields, Mapping):
            raise ValueError(f"a request is an object with fields, got {type(fields).__name__}")
        self.stage, self.fields = stage, fields

    def whole(self, name: str, least: int, most: int, default: int) -> int:
        """Return a whole number between two bounds."""
        value = self.fields.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{name} must be a whole number from {least} to {most}, got {_short(value)}")
        return value

    def word(self, name: str, known: tuple[str, ...]) -> str:
        """Return one of some words; the first where there is none."""
        value = self.fields.get(name, known[0])
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {_short(value)}")
        return str(value)

    @property
    def actor(self) -> Actor:
        """Return the model that is asked, the first unless another is named."""
        return self.stage.actor(self.fields.get("model", self.stage.actors[0].name))

    @property
    def seed(self) -> int:
        """Return the seed."""
        return self.whole("seed", 0, LARGEST_SEED, 0)

    @property
    def label(self) -> int | None:
        """Return the class number of a label, if one is asked for."""
        if self.fields.get("label") is None:
            return None
        classes = self.stage.schema.classes
        if not classes:
            raise ValueError("label: the models were fitted without labels")
        return self.whole("label", 0, classes - 1, 0)

    @property
    def clamp(self) -> dict[int, int]:
        """Return the tokens that are held, by site."""
        given = self.fields.get("clamp", {})
        if not isinstance(given, Mapping):
            raise ValueError(f"clamp must be an object from sites to tokens, got {_short(given)}")
        found = dict[int, int]()
        for site, token in given.items():
            if not (isinstance(site, str) and site.isascii() and site.isdigit() and int(site[:9]) < self.sites):
                raise ValueError(f"clamp: the sites are 0 to {self.sites - 1}, got {_short(site)}")
            found[int(site[:9])] = self._token(token, int(site[:9]), "clamp")
        return found

    @property
    def row(self) -> np.ndarray:
        """Return one row of tokens, (sites,)."""
        given = self.fields.get("row")
        if not isinstance(given, list) or len(given) != self.sites:
            length = f"{len(given)} of them" if isinstance(given, list) else _short(given)
            raise ValueError(f"row must be a list of {self.sites} tokens, got {length}")
        return np.array([self._token(token, site, "row") for site, token in enumerate(given)], dtype=np.uint8)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return len(self.stage.symbols)

    def _token(self, token: Any, site: int, what: str) -> int:
        states = len(self.stage.symbols[site])
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < states:
            raise ValueError(f"{what}: site {site} has the tokens 0 to {states - 1}, got {_short(token)}")
        return token


def read_row(stage: Stage, text: str) -> list[int]:
    """Read a row that was typed, pasted or dropped: symbols one after another, or with commas, tabs or spaces between."""
    symbols, names = stage.symbols, stage.names
    line = next((line.strip() for line in text.splitlines() if line.strip()), "").strip("[]")
    if not line:
        raise ValueError("there is no row: type its symbols, one per site")
    split = next((line.split(sign) for sign in ",\t; " if sign in line), None)
    parts = [part.strip().strip("\"'") for part in split if part.strip()] if split else list(line)
    if split is None and len(parts) != len(symbols) and len(symbols) == 1:
        parts = [line]
    if len(parts) != len(symbols):
        raise ValueError(f"the row has {len(parts)} symbols, and there are {len(symbols)} sites")
    found = []
    for site, part in enumerate(parts):
        if part not in symbols[site]:
            own = ", ".join(symbols[site][:10])
            raise ValueError(f"{_short(part)} at site {names[site]} is none of its symbols: {own}")
        found.append(symbols[site].index(part))
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
