"""A model's constructor parameters, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neurise.modeling.model import Model


def collect(kind: type[Model], common: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Join the options that were given (not None) and the ``name=value`` settings: parameters of the model, all of them."""
    params = {name: value for name, value in common.items() if value is not None}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise ValueError(f"--set {setting}: write it as name=value")
        if name in params:
            raise ValueError(f"--set {setting}: {name} was given twice")
        params[name] = _parsed(text)
    defaults, switches = kind.leaves(), kind.switches()
    for name, value in params.items():
        if name not in defaults:
            raise ValueError(kind.unknown(name))
        if name in switches and isinstance(value, str):
            value = WORDS.get(value.strip().lower(), value)
            if isinstance(value, str):
                raise ValueError(f"{name} must be {', '.join(WORDS)}; got {value!r}")
        if name in switches and defaults[name] is None and not isinstance(value, bool | None):
            raise ValueError(f"{name} must be true or false, or None, its default; got {value!r}")
        params[name] = _like(defaults[name], value, name)
    return params


WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""How a person says that something is so, or not."""
LITERALS = {"True": True, "False": False, "None": None}
"""Values as Python writes them; JSON has true, false and null."""


def _parsed(text: str) -> Any:
    if text.strip() in LITERALS:
        return LITERALS[text.strip()]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _like(default: Any, value: Any, name: str) -> Any:
    """Insist that a value is of the kind of the default: a model checks numbers, not that they are numbers."""
    if isinstance(default, bool):
        wanted, fits = "true or false", isinstance(value, bool)
    elif isinstance(default, int):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        wanted, fits = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    elif isinstance(default, float):
        wanted, fits = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    elif isinstance(default, str):
        wanted, fits = "text", isinstance(value, str)
    else:
        return value
    if not fits:
        raise ValueError(f"{name} must be {wanted}, like its default {default!r}; got {value!r}")
    return value
