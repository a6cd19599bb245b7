"""The options of a data set's function, as they are typed."""

from __future__ import annotations

import difflib
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neurise.cli._parameters import WORDS

WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}


def words_to_texts(words: Sequence[str]) -> dict[str, str]:
    """Read ``--side 4`` and ``--side=4``."""
    texts, rest = dict[str, str](), list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) < 3:
            raise ValueError(f"{word!r} is neither an option nor the value of one; options are written --name value")
        name, equals, text = word[2:].partition("=")
        if not equals:
            if not rest:
                raise ValueError(f"--{name} has no value; write --{name} VALUE")
            text = rest.pop(0)
        _put(texts, name, text)
    return texts


def settings_to_texts(settings: Sequence[str]) -> dict[str, str]:
    """Read ``name=value``."""
    texts = dict[str, str]()
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{setting!r}: write it as name=value")
        _put(texts, name.strip(), text)
    return texts


def _put(texts: dict[str, str], name: str, text: str) -> None:
    name = name.replace("-", "_")
    if name in texts:
        raise ValueError(f"{name} was given twice, as {texts[name]!r} and as {text!r}")
    texts[name] = text


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """List what a data set's function can be given."""
    return dict(inspect.signature(function).parameters)


def typed(name: str, function: Callable[..., Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Give options the types that the function wants; an unknown one, or one that is lacking, is an error."""
    known, hints = parameters_of(function), typing.get_type_hints(function)
    values = {}
    for option, text in texts.items():
        if option not in known:
            close = difflib.get_close_matches(option, known, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"it has: {', '.join(known) or 'none'}"
            raise ValueError(f"the data set {name} has no option {option!r}; {hint}")
        values[option] = _value(option, text, hints.get(option, Any))
    lacking = [option for option, parameter in known.items() if parameter.default is parameter.empty]
    for option in lacking:
        if option not in values:
            raise ValueError(f"the data set {name} needs the option {option!r}")
    return values


def _value(option: str, text: str, hint: Any) -> Any:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = typing.get_args(hint) if union else (hint,)
    if type(None) in kinds and text.lower() in ("none", "null"):
        return None
    for kind in (bool, int, float, Path, str):  # the narrow before the wide: text is always text
        if kind in kinds:
            value = _parsed(text, kind)
            if value is not None:
                return value
    plain = [kind for kind in kinds if kind in WANTED]
    if len(plain) == len([kind for kind in kinds if kind is not type(None)]):
        wanted = " or ".join(WANTED[kind] for kind in plain)
        raise ValueError(f"{option} must be {wanted}; got {text!r}")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _parsed(text: str, kind: type) -> Any:
    if kind is bool:
        return WORDS.get(text.strip().lower())
    try:
        return kind(text)
    except ValueError:
        pass
    if kind is int:  # 1e5 is a whole number too
        try:
            value = float(text)
        except ValueError:
            return None
        return int(value) if value.is_integer() else None
    return None
