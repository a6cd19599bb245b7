"""Class labels: any symbols ⇄ tokens, and how often each occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise.alphabet import NO_MISSING, as_array, is_text, refuse_where, settle_objects


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
    def from_dict(cls, fields: dict[str, Any]) -> Labels:
        """Undo :meth:`to_dict`."""
        return cls(np.array(fields["classes"], dtype=fields["dtype"]), np.array(fields["frequencies"], dtype=float))


def as_labels(y: Any) -> np.ndarray:
    """Insist on a vector of plain labels, all numbers or all text."""
    values = as_array(y, "y")
    if values.ndim != 1:
        raise ValueError(f"y must be a vector of one label a row; its shape is {values.shape}")
    if values.dtype.kind == "O" and values.size:
        values = settle_objects(values, "y")
    if values.dtype.kind == "f":
        refuse_where(~np.isfinite(values), values, "y", f"is missing or not finite; {NO_MISSING}")
    if values.dtype.kind == "S":  # labels never come back, so that text of one kind is enough, and JSON has no other
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind not in "biufU":
        raise ValueError(f"labels must be numbers or text, got type {values.dtype}")
    return values
