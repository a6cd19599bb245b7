"""The Dataset record: rows, what belongs to them, and what is known of the law they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from neurise import devices
from neurise.space import Space


@dataclass(frozen=True, eq=False)
class Dataset:
    r"""Data, or a known law that data can be drawn from, or both.

    Rows are (N, sites) arrays of ``symbols``. A law is known through any of ``law`` (all p^q probabilities), ``draw``
    (exact samples) and, for pairwise models, ``edges``, ``couplings`` and ``fields`` in the sign of
    :math:`\mu \propto \exp(\sum_{ij} J_{ij}\sigma_i\sigma_j + \sum_i h_i\sigma_i)`.
    """

    name: str
    space: Space
    symbols: np.ndarray  # (states,), in the order of the tokens
    train: np.ndarray | None = None
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    validation: np.ndarray | None = None
    validation_labels: np.ndarray | None = None
    validation_weights: np.ndarray | None = None
    test: np.ndarray | None = None
    test_labels: np.ndarray | None = None
    test_weights: np.ndarray | None = None
    law: Callable[[], np.ndarray] | None = None
    draw: Callable[[int, np.random.Generator], np.ndarray] | None = None
    log_weight: Callable[[np.ndarray], np.ndarray] | None = None
    edges: np.ndarray | None = None  # (couplers, 2) site numbers
    couplings: np.ndarray | None = None  # (couplers,)
    fields: np.ndarray | None = None  # (sites,), or (sites, states) where fields depend on the state
    shape: tuple[int, ...] | None = None  # the grid that the sites form, for pictures
    info: Mapping[str, Any] = field(
        default_factory=dict
    )  # where it comes from: source, licence, qubit ids, diagnostics

    def __repr__(self) -> str:
        parts = {"": self.train, " validation": self.validation, " test": self.test}
        rows = " + ".join(f"{len(part):,}{name}" for name, part in parts.items() if part is not None)
        known = ", law known" if self.law is not None or self.draw is not None else ""
        size = f"{self.space.sites:,} sites, {self.space.states} states"
        return f"Dataset({self.name}: {f'{rows} rows of ' if rows else ''}{size}{known})"

    def _repr_html_(self) -> str:
        from neurise import notebook, shown  # notebooks alone ask for this

        parts = {"rows": self.train, "validation": self.validation, "test": self.test}
        couplers = None if self.edges is None else len(self.edges)
        known = {"all probabilities": self.law, "exact samples": self.draw, "energies": self.log_weight}
        facts = {
            **{name: f"{len(part):,}" for name, part in parts.items() if part is not None},
            "sites": f"{self.space.sites:,}" + (f" ({' × '.join(map(str, self.shape))})" if self.shape else ""),
            "symbols": f"{self.space.states}: {shown.value(self.symbols.tolist())}",
            "labels": "" if self.labels is None else f"{len(np.unique(self.labels)):,} classes",
            "weights": "" if self.weights is None else f"{self.weights.sum():,.6g} in all",
            "known": ", ".join(name for name, part in known.items() if part is not None),
            "couplers": "" if couplers is None else f"{couplers:,}",
            **{name: entry for name, entry in self.info.items() if isinstance(entry, str)},
            **{name: f"{entry:,.6g}" for name, entry in self.info.items() if isinstance(entry, int | float)},
        }
        return notebook.box(self.name, "data set", notebook.facts({name: text for name, text in facts.items() if text}))

    @cached_property
    def pmf(self) -> np.ndarray | None:
        """All p^q probabilities, first site most significant; None where they are not known."""
        return None if self.law is None else self.law()

    def sample(self, n: int, seed: int | None = None) -> np.ndarray:
        """Draw n independent rows from the known law."""
        if self.draw is None:
            raise ValueError(f"{self.name} is data alone: there is no law to draw from")
        if n < 1:
            raise ValueError(f"n must be positive, got {n}")
        needed = devices.sampling_bytes(n, self.space.sites, self.symbols.itemsize)
        devices.require_memory(needed, torch.device("cpu"), f"draw fewer than {n:,} rows at a time")
        return self.draw(n, np.random.default_rng(seed))

    def energy(self, X: np.ndarray) -> np.ndarray:
        r"""Energy E(x) of each row, (N,): :math:`\mu \propto e^{-E}`, so likely rows have low energy."""
        if self.log_weight is None:
            raise ValueError(f"{self.name} has no known energy")
        return -self.log_weight(np.asarray(X))
