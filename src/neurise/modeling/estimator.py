"""scikit-learn's rules for constructor arguments, without importing it; rarely used ones stand in groups."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from neurise import shown


class Estimator:
    """The constructor only stores its arguments, each under its own name; this class reads them back.

    An argument whose default is a dataclass is a *group* of further parameters: ``Model(training=Training(patience=5))``.
    ``set_params``, ``GridSearchCV``, ``--set`` and configuration files reach what is in it as ``training__patience``.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    """Names that parameters had in earlier versions, and those that they have now."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Raise TypeError for an unknown parameter, with the name that it has now or one that is near."""
        for name in params:
            if name not in cls.parameters():
                raise TypeError(cls.unknown(name))
        return super().__new__(cls)

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Return the constructor's arguments and their defaults, a model's own before those that it shares with others."""
        return dict(_signature(cls))  # type: ignore[arg-type]

    @classmethod
    def leaves(cls) -> dict[str, Any]:
        """Return all parameters and their defaults, those of a group as ``group__name`` in the place of the group."""
        return flat(cls.parameters())

    @classmethod
    def switches(cls) -> set[str]:
        """Return the parameters that are True or False, by their annotations, those of a group as ``group__name``."""
        found = {name for name, hint in _hints(cls).items() if name in cls.parameters() and "bool" in hint}
        for name, default in cls.parameters().items():
            if _is_group(default):
                found |= {f"{name}__{own}" for own, hint in _hints(type(default)).items() if "bool" in hint}
        return found

    @classmethod
    def unknown(cls, name: str) -> str:
        """Say what to write instead of a parameter that is not there."""
        known = cls.leaves()
        if name in known:  # of a group, given to the constructor
            group, _, own = name.partition("__")
            kind = type(cls.parameters()[group]).__name__
            return f"{cls.__name__} takes {name} as {group}={kind}({own}=…), or by set_params({name}=…)"
        now = cls.renamed.get(name) or next((leaf for leaf in known if leaf.endswith(f"__{name}")), None)
        if now is None:
            close = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"it has: {', '.join(known)}"
            return f"{cls.__name__} has no parameter {name!r}; {hint}"
        group, _, own = now.partition("__")
        if not own:
            return f"{cls.__name__} has no parameter {name!r}; its name is {now} now"
        kind = type(cls.parameters()[group]).__name__
        return (
            f"{cls.__name__} has no parameter {name!r}; its name is {now} now: write "
            f"{cls.__name__}({group}={kind}({own}=…)) or set_params({now}=…)"
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments as they were given; ``deep`` adds what is in the groups, as ``group__name``."""
        own = {name: getattr(self, name) for name in self.parameters()}
        return {**own, **flat(own)} if deep else own

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments, also those in groups as ``group__name``; an unknown one is an error."""
        known, leaves = self.parameters(), self.leaves()
        for name in params:
            if name not in known and name not in leaves:
                raise ValueError(self.unknown(name))
        for name, value in params.items():
            if name in known:  # whole groups first, then what is in them
                setattr(self, name, value)
        for name, value in params.items():
            group, _, own = name.partition("__")
            if name not in known:
                if not _is_group(getattr(self, group)):
                    raise ValueError(f"{name} cannot be set: {group} is {getattr(self, group)!r}, which is no group")
                setattr(self, group, dataclasses.replace(getattr(self, group), **{own: value}))
        return self

    def flat_params(self) -> dict[str, Any]:
        """Return all parameters, those in groups as ``group__name``: what files hold."""
        return flat({name: getattr(self, name) for name in self.parameters()})

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags  # only scikit-learn itself asks for this

        accepted = InputTags(categorical=True, string=True, allow_nan=getattr(self, "takes_gaps", False))
        return Tags("density_estimator", target_tags=TargetTags(required=False), input_tags=accepted)

    def __repr__(self) -> str:
        changes = []
        for name, default in self.parameters().items():
            value = getattr(self, name)
            if _is_group(default) and type(value) is type(default):
                changed = _changes(value, default)
                if changed:
                    changes.append(f"{name}={type(value).__name__}({', '.join(changed)})")
            elif plain(value) != plain(default):
                changes.append(f"{name}={shown.value(value)}")
        return f"{type(self).__name__}({', '.join(changes)})"


@lru_cache
def _signature(kind: type[Estimator]) -> dict[str, Any]:
    signature = dict(inspect.signature(kind.__init__).parameters)
    del signature["self"]
    own_first = [name for base in kind.__mro__ for name in inspect.get_annotations(base) if name in signature]
    return {name: signature[name].default for name in dict.fromkeys([*own_first, *signature])}


def _hints(kind: type) -> dict[str, str]:
    """Return the annotations of a class and its bases as text, a class's own before those of its bases."""
    found: dict[str, str] = {}
    for base in kind.__mro__:
        for name, hint in inspect.get_annotations(base).items():
            found.setdefault(name, hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint)))
    return found


def _is_group(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(group: Any) -> dict[str, Any]:
    return {field.name: getattr(group, field.name) for field in dataclasses.fields(group)}


def _changes(group: Any, default: Any) -> list[str]:
    usual = _fields(default)
    return [
        f"{name}={shown.value(value)}" for name, value in _fields(group).items() if plain(value) != plain(usual[name])
    ]


def flat(params: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is in groups in the place of the groups, as ``group__name``."""
    flat: dict[str, Any] = {}
    for name, value in params.items():
        if _is_group(value):
            flat |= {f"{name}__{own}": entry for own, entry in _fields(value).items()}
        else:
            flat[name] = value
    return flat


def plain(value: Any) -> Any:
    """Give a constructor argument in JSON's types."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if _is_group(value):
        return plain(_fields(value))
    if isinstance(value, np.ndarray | Tensor | np.generic):
        return plain(value.tolist())
    if hasattr(value, "nodes") and hasattr(value, "edges"):  # a networkx graph, written down as its edges
        return [plain(edge[:2]) for edge in value.edges]
    if isinstance(value, list | tuple | range):
        return [plain(entry) for entry in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, datetime.date):  # a symbol of a column
        return value.isoformat()
    return value
