"""scikit-learn's rules for constructor arguments, without importing it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from torch import Tensor


class Estimator:
    """The constructor only stores its arguments, each under its own name; this class reads them back."""

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Return the constructor's arguments and their defaults, a model's own before those that it shares with others."""
        signature = dict(inspect.signature(cls.__init__).parameters)
        del signature["self"]
        own_first = [name for kind in cls.__mro__ for name in inspect.get_annotations(kind) if name in signature]
        return {name: signature[name].default for name in dict.fromkeys([*own_first, *signature])}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments as they were given."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; an unknown one is an error."""
        for name, value in params.items():
            if name not in self.parameters():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {list(self.parameters())}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags  # only scikit-learn itself asks for this

        return Tags("density_estimator", target_tags=TargetTags(required=False), input_tags=InputTags(categorical=True))

    def __repr__(self) -> str:
        defaults = self.parameters()
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if plain(v) != plain(defaults[k])]
        return f"{type(self).__name__}({', '.join(changed)})"


def plain(value: Any) -> Any:
    """Give a constructor argument in JSON's types."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | Tensor | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [plain(entry) for entry in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value
