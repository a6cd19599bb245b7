"""Class labels: any symbols ⇄ tokens, and how often each occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.alphabet import NO_MISSING, as_array, is_text, refuse_where, settle_objects
from neurise.fields import Field

LONGEST = 1024
"""Letters that the type of saved labels may have room for beyond the longest of them."""


@dataclass(frozen=True)
class Labels:
    """The classes that were seen, sorted, and their frequencies (by weight)."""

    classes: np.ndarray  # (classes,)
    frequencies: np.ndarray  # (classes,) float64, sum 1

    @classmethod
    def of(cls, y: Any, weights: np.ndarray | None) -> Labels:
        """Read the classes off the labels of the data."""
        classes, tokens = np.unique(as_labels(y), return_inverse=True)
        mass = np.bincount(tokens, weights, minlength=len(classes)).astype(float)
        return cls(classes, mass / mass.sum())

    def __len__(self) -> int:
        return len(self.classes)

    def encode(self, y: Any) -> Tensor:
        """Translate labels to class numbers, (n,) int64."""
        values = as_labels(y)
        if is_text(values.dtype) != is_text(self.classes.dtype):
            raise ValueError(f"labels of type {values.dtype}, but the model's are {self.classes[:5].tolist()}")
        tokens = np.searchsorted(self.classes, values).clip(max=len(self) - 1)
        wrong = self.classes[tokens] != values
        if wrong.any():
            place = int(wrong.argmax())
            known = ", ".join(repr(label) for label in self.classes.tolist()[:10])
            raise ValueError(f"the label {values[place].item()!r} at position {place} was not in the data: [{known}]")
        return torch.from_numpy(tokens.astype(np.int64))

    def draw(self, n: int, *, generator: torch.Generator) -> Tensor:
        """Draw n class numbers by their frequency, on the generator's device."""
        cdf = torch.from_numpy(self.frequencies).cumsum(0).to(generator.device)
        uniform = torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64)
        return torch.searchsorted(cdf, uniform * cdf[-1], right=True).clamp(max=len(self) - 1)

    def to_dict(self) -> dict[str, Any]:
        """Describe the labels in JSON's types."""
        return {
            "classes": self.classes.tolist(),
            "dtype": self.classes.dtype.str,
            "frequencies": self.frequencies.tolist(),
        }

    @classmethod
    def from_field(cls, field: Field) -> Labels:
        """Undo :meth:`to_dict`; whatever no data could have given is an error."""
        given, name = [entry.value for entry in field["classes"]], field["dtype"].text()
        longest = max((len(label) for label in given if isinstance(label, str)), default=0)
        try:
            dtype = np.dtype(name)
            usable = dtype.kind in "biuf" or (dtype.kind == "U" and dtype.itemsize <= 4 * max(longest, LONGEST))
            classes = np.array(given, dtype=dtype) if usable else np.zeros(0)
        except (TypeError, ValueError, OverflowError):
            classes = np.zeros(0)
        if not given or classes.tolist() != given:
            raise field["dtype"].wrong(f"a type that holds the classes {given[:5]}")
        if any(type(label) is not type(given[0]) for label in given) or not bool((classes[1:] > classes[:-1]).all()):
            raise field["classes"].wrong("different labels of one kind, in order")
        frequencies = np.array([entry.number(0, 1) for entry in field["frequencies"]])
        if len(frequencies) != len(classes) or abs(float(frequencies.sum()) - 1) > 1e-6:
            raise field["frequencies"].wrong(f"{len(classes)} shares that sum to 1")
        return cls(classes, frequencies)


def as_labels(y: Any) -> np.ndarray:
    """Insist on a vector of plain labels, all numbers or all text."""
    values = as_array(y, "y")
    if values.ndim != 1:
        raise ValueError(f"y must be a vector of one label per row; its shape is {values.shape}")
    if values.dtype.kind == "O" and values.size:
        values = settle_objects(values, "y")
    if values.dtype.kind == "f":
        refuse_where(~np.isfinite(values), values, "y", f"is missing or not finite; {NO_MISSING}")
    if values.dtype.kind == "S":  # labels never come back, so that text of one kind is enough, and JSON has no other
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind not in "biufU":
        raise ValueError(f"labels must be numbers or text, got type {values.dtype}")
    return values
