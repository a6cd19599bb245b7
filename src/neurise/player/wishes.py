"""What a page may ask for, checked: every error names the field and what it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neurise.player.stage import Actor, Stage
from neurise.player.typed_rows import short

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
            raise ValueError(f"{name} must be a whole number from {least} to {most}, got {short(value)}")
        return value

    def word(self, name: str, known: tuple[str, ...]) -> str:
        """Return one of some words; the first where there is none."""
        value = self.fields.get(name, known[0])
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {short(value)}")
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
            raise ValueError(f"clamp must be an object from sites to tokens, got {short(given)}")
        found = dict[int, int]()
        for site, token in given.items():
            if not (isinstance(site, str) and site.isascii() and site.isdigit() and int(site[:9]) < self.sites):
                raise ValueError(f"clamp: the sites are 0 to {self.sites - 1}, got {short(site)}")
            found[int(site[:9])] = self._token(token, int(site[:9]), "clamp")
        return found

    @property
    def row(self) -> np.ndarray:
        """Return one row of tokens, (sites,)."""
        given = self.fields.get("row")
        if not isinstance(given, list) or len(given) != self.sites:
            length = f"{len(given)} of them" if isinstance(given, list) else short(given)
            raise ValueError(f"row must be a list of {self.sites} tokens, got {length}")
        return np.array([self._token(token, site, "row") for site, token in enumerate(given)], dtype=np.uint8)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return len(self.stage.symbols)

    def _token(self, token: Any, site: int, what: str) -> int:
        states = len(self.stage.symbols[site])
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < states:
            raise ValueError(f"{what}: site {site} has the tokens 0 to {states - 1}, got {short(token)}")
        return token
