"""What can be typed after each verb, for shells that complete it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from neurise import discovery
from neurise.cli.completion import SHELLS

LONGEST = 70
"""Letters of a description."""


@dataclass(frozen=True)
class Values:
    """What an option or an argument can be: some names, or a file, or either."""

    names: tuple[str, ...] = ()
    files: bool = True


@dataclass(frozen=True)
class Option:
    """An option: its spellings, what it does, and what may follow; None where nothing does."""

    spellings: tuple[str, ...]
    help: str
    values: Values | None = None


@dataclass(frozen=True)
class Command:
    """A verb: the words that lead to it, what it does, the verbs below it, its options, and what its argument may be."""

    path: tuple[str, ...]
    help: str
    verbs: tuple[str, ...]
    options: tuple[Option, ...]
    argument: Values


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Walk over a command and all below it; nothing but names is looked up, so that it takes no time."""
    below = dict(getattr(command, "commands", {}))
    options = [_option(parameter) for parameter in command.params if parameter.param_type_name == "option"]
    options.append(Option(("--help",), "Show this message and exit."))
    arguments = [parameter.name for parameter in command.params if parameter.param_type_name == "argument"]
    values = _values(arguments[0], path) if arguments else Values(files=False)
    yield Command(path, _first_line(command.help), tuple(below), tuple(options), values)
    for name, inner in below.items():
        yield from commands_of(inner, (*path, name))


def _option(parameter: Any) -> Option:
    spellings = (*parameter.opts, *parameter.secondary_opts)
    values = None if getattr(parameter, "is_flag", False) else _values(spellings[0], ())
    return Option(spellings, _first_line(parameter.help), values)


def _values(name: str, path: tuple[str, ...]) -> Values:
    if name in ("data", "source", "--data"):
        return Values(discovery.names("neurise.datasets"))
    if name in ("--model", "--methods"):
        return Values(discovery.names("neurise.models"), files=False)
    if name == "--network":
        return Values(discovery.names("neurise.networks"), files=False)
    if name == "shell":
        return Values(SHELLS, files=False)
    return Values(discovery.names("neurise.experiments"), files=False) if path == ("experiment", "run") else Values()


def _first_line(text: str | None) -> str:
    """Return the first sentence, as far as there is room for it."""
    line = " ".join((text or "").partition("\n\n")[0].split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rpartition(' ')[0]}…"
