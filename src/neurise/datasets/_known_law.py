"""A model whose weights are known as a data set: its law written out, eliminated, or followed by Markov chains."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch

from neurise.dataset import Dataset
from neurise.enumeration import LIMIT, draw_from_law, tokens_at
from neurise.mcmc import Target, parallel_tempering

SAMPLERS = ("auto", "enumerate", "exact", "tempering")


class Eliminated(Protocol):
    """The outcome of eliminating one site after the other."""

    log_z: float

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n independent rows of tokens."""


class KnownLaw(ABC):
    """All that is known of a model, each thing computed when it is first asked for.

    A kind of model says how its law is written out, and how its sites are eliminated where that is possible.

    ``sampler`` says how rows are drawn: ``"enumerate"`` inverts the law written out, ``"exact"`` eliminates one site after
    the other, ``"tempering"`` runs Markov chains for ``sweeps`` sweeps. ``"auto"`` takes the first of them that the size
    allows.
    """

    def __init__(self, model: Target, symbols: np.ndarray, *, name: str, sampler: str, sweeps: int | None) -> None:
        self.model, self.symbols, self.name, self.asked = model, symbols, name, sampler
        self.info = Info({"sampler": self._sampler, "log_z": self._log_z})
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler must be one of {', '.join(map(repr, SAMPLERS))}, got {sampler!r}")
        if sweeps is not None and (sweeps != int(sweeps) or sweeps < 1):
            raise ValueError(f"sweeps must be a positive whole number, got {sweeps}")
        self.sweeps = None if sweeps is None else int(sweeps)
        size = f"{model.states}^{model.sites} configurations"
        if sampler == "enumerate" and not self.enumerable:
            raise ValueError(f"{name} has {size}, too many to enumerate (the limit is {LIMIT:,}); use sampler='auto'")
        if sampler == "exact" and not self.narrow:
            raise ValueError(f"the graph of {name} is too wide to eliminate its sites exactly; use sampler='tempering'")

    @property
    @abstractmethod
    def narrow(self) -> bool:
        """Whether the sites can be eliminated exactly."""

    @abstractmethod
    def _eliminate(self) -> Eliminated:
        """Eliminate the sites of a narrow model."""

    @abstractmethod
    def _write_out(self) -> tuple[np.ndarray, float]:
        """Return all p^q probabilities, and log Z."""

    def dataset(self, nodes: Sequence[Any], **known: Any) -> Dataset:
        """Give the model as a data set, with its graph as the user knows it: edges, couplings, fields, shape."""
        self.info.put("nodes", nodes)
        return Dataset(
            self.name,
            self.model.space,
            self.symbols,
            law=self.pmf if self.enumerable else None,
            draw=self.draw,
            log_weight=self.log_weight,
            info=self.info,
            **known,
        )

    @property
    def enumerable(self) -> bool:
        """Whether the law can be written out."""
        return self.model.space.size <= LIMIT

    @cached_property
    def _enumerated(self) -> tuple[np.ndarray, float]:
        return self._write_out()

    @cached_property
    def _elimination(self) -> Eliminated:
        return self._eliminate()

    def pmf(self) -> np.ndarray:
        """All p^q probabilities."""
        return self._enumerated[0]

    def _log_z(self) -> float | None:
        if self.narrow:
            return self._elimination.log_z
        return self._enumerated[1] if self.enumerable else None

    def _sampler(self) -> str:
        if self.asked != "auto":
            return self.asked
        if self.enumerable:
            return "enumerate"
        return "exact" if self.narrow else "tempering"

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n rows of symbols: independent, or, by tempering, as nearly so as the diagnostics in ``info`` say."""
        sampler = self.info["sampler"]
        if sampler == "enumerate":
            tokens = tokens_at(self.model.space, draw_from_law(self.pmf(), n, rng))
        elif sampler == "exact":
            tokens = self._elimination.draw(n, rng)
        else:
            tokens = self._temper(n, rng)
        return np.asarray(self.symbols[tokens])

    def _temper(self, n: int, rng: np.random.Generator) -> np.ndarray:
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        result = parallel_tempering(self.model, n, generator=generator, sweeps=self.sweeps)
        found = result.diagnostics
        self.info.put("tempering", found.to_dict())
        way_out = "" if found.mixed else f"\n  a longer run may help: sweeps={4 * found.sweeps}"
        print(f"{self.name}: {found}{way_out}", file=sys.stderr)
        rows = result.rows.reshape(-1, self.model.sites).numpy()
        return np.asarray(rows[rng.permutation(len(rows))[:n]])  # rows of a chain side by side would be alike

    def log_weight(self, X: np.ndarray) -> np.ndarray:
        """H of each row of symbols, (N,)."""
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.model.sites:
            raise ValueError(f"rows of {self.model.sites} sites are needed; the shape is {rows.shape}")
        if rows.dtype.kind not in "iuf":
            raise ValueError(f"X holds values of type {rows.dtype}; the symbols of {self.name} are numbers")
        place = np.searchsorted(self.symbols, rows).clip(max=len(self.symbols) - 1)
        wrong = self.symbols[place] != rows
        if wrong.any():
            row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
            known = ", ".join(map(str, self.symbols[:10].tolist())) + (", …" if len(self.symbols) > 10 else "")
            raise ValueError(
                f"X has {rows[row, column]} at row {row}, column {column}; the symbols of {self.name} are {known}"
            )
        return self.model.log_weight(torch.from_numpy(place.astype(np.uint8))).numpy()


class Info(Mapping[str, Any]):
    """What is known of a data set; some of it is computed when it is first looked at."""

    def __init__(self, later: dict[str, Callable[[], Any]]) -> None:
        self._later, self._known = later, dict[str, Any]()

    def put(self, key: str, value: Any) -> None:
        """Add or replace an entry."""
        self._known[key] = value

    def __getitem__(self, key: str) -> Any:
        if key not in self._known and key in self._later:
            self._known[key] = self._later[key]()
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._later, *self._known]))

    def __len__(self) -> int:
        return len({*self._later, *self._known})

    def __repr__(self) -> str:
        waiting = {key: "…" for key in self._later if key not in self._known}
        return repr({**waiting, **self._known})
