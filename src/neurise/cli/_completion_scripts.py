"""Completion scripts for bash, zsh and fish, from what is known of the verbs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping

from neurise.cli._completion_words import Command, Option, Values

BASH = """\
_neurise() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" path="" i
    if [[ $current == "=" ]]; then current=""; fi  # --model=neurise is three words to bash
    if [[ $before == "=" ]]; then before="${{COMP_WORDS[COMP_CWORD - 2]}}"; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$path ${{COMP_WORDS[i]}}" in
            {paths}) path="$path ${{COMP_WORDS[i]}}" ;;
        esac
    done
    COMPREPLY=()
    case "$path|$before" in
{values}
    esac
    case "$path" in
{words}
    esac
}}
_neurise_names() {{ COMPREPLY+=($(compgen -W "$1" -- "$2")); }}
_neurise_files() {{ local IFS=$'\n'; COMPREPLY+=($(compgen -f -- "$1")); compopt -o filenames 2> /dev/null; }}
complete -o default -F _neurise neurise
"""
ZSH = """\
#compdef neurise
_neurise() {{
    local typed="" before="${{words[CURRENT - 1]}}" i
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        case "$typed ${{words[i]}}" in
            {paths}) typed="$typed ${{words[i]}}" ;;
        esac
    done
    if [[ $PREFIX == --*=* ]]; then before="${{PREFIX%%=*}}"; compset -P '*='; fi
    case "$typed|$before" in
{values}
    esac
    case "$typed" in
{words}
    esac
}}
compdef _neurise neurise
"""


def bash(commands: Iterable[Command]) -> str:
    """Write the script for bash."""
    listed, values, words = list(commands), [], []
    for command in listed:
        for option in command.options:
            if option.values is not None:
                values.append(f"        {_keys(command, option)}) {_bash_values(option.values)} return ;;")
        spellings = " ".join(spelling for option in command.options for spelling in option.spellings)
        found = Values((*command.verbs, *command.argument.names), command.argument.files)
        words.append(
            f"        {shlex.quote(_spaced(command))}) if [[ $current == -* ]]; "
            f"then {_bash_values(Values(tuple(spellings.split()), files=False))} else {_bash_values(found)} fi ;;"
        )
    return BASH.format(paths=_paths(listed), values="\n".join(values), words="\n".join(words))


def _bash_values(values: Values) -> str:
    names = [f'_neurise_names {shlex.quote(" ".join(values.names))} "$current";'] if values.names else []
    files = ['_neurise_files "$current";'] if values.files else []
    return " ".join([*names, *files]) or ":;"


def zsh(commands: Iterable[Command]) -> str:
    """Write the script for zsh, with a line about each verb and option."""
    listed, values, words = list(commands), [], []
    about = {command.path: command.help for command in listed}
    for command in listed:
        for option in command.options:
            if option.values is not None:
                names = f"compadd -- {' '.join(map(shlex.quote, option.values.names))};" if option.values.names else ""
                files = " _files;" if option.values.files else ""
                values.append(f"        {_keys(command, option)}) {names}{files} return ;;")
        lines = {verb: about[(*command.path, verb)] for verb in command.verbs}
        lines |= dict.fromkeys(command.argument.names, "")
        options = {spelling: option.help for option in command.options for spelling in option.spellings}
        words.append(
            f"        {shlex.quote(_spaced(command))})\n"
            f"            if [[ $PREFIX == -* ]]; then found=({_described(options)}); _describe option found\n"
            f"            else found=({_described(lines)}); _describe name found"
            f"{'; _files' if command.argument.files else ''}; fi ;;"
        )
    return ZSH.format(paths=_paths(listed), values="\n".join(values), words="\n".join(words))


def fish(commands: Iterable[Command]) -> str:
    """Write the script for fish, with a line about each verb and option."""
    listed = list(commands)
    return "\n".join([*(line for command in listed for line in _fish_lines(command, listed)), ""])


def _fish_lines(command: Command, every: list[Command]) -> Iterator[str]:
    verbs = {other.path[-1]: other.help for other in every if other.path and other.path[:-1] == command.path}
    conditions = [f"__fish_seen_subcommand_from {word}" for word in command.path] or ["__fish_use_subcommand"]
    if verbs and command.path:
        conditions.append(f"not __fish_seen_subcommand_from {' '.join(verbs)}")
    begin = f"complete -c neurise -n {_fish_text('; and '.join(conditions))}"
    for verb, text in verbs.items():
        yield f"{begin} -f -a {verb} -d {_fish_text(text)}"
    if command.argument.names:
        only = "" if command.argument.files else " -f"
        yield f"{begin}{only} -a {_fish_text(' '.join(command.argument.names))}"
    for option in command.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.spellings)
        value = "" if option.values is None else " -r" if option.values.files else " -x"
        if option.values is not None and option.values.names:
            value += f" -a {_fish_text(' '.join(option.values.names))}"
        yield f"{begin} {names}{value} -d {_fish_text(option.help)}"


def _keys(command: Command, option: Option) -> str:
    """Write the pattern of a verb and an option behind it."""
    return "|".join(shlex.quote(f"{_spaced(command)}|{spelling}") for spelling in option.spellings)


def _spaced(command: Command) -> str:
    return "".join(f" {word}" for word in command.path)


def _paths(commands: Iterable[Command]) -> str:
    return "|".join(shlex.quote(_spaced(command)) for command in commands if command.path)


def _described(lines: Mapping[str, str]) -> str:
    """Write names with descriptions as zsh wants them; a colon would end the name."""
    return " ".join(
        shlex.quote(name.replace(":", "\\:") + (f":{text.replace(':', '')}" if text else ""))
        for name, text in lines.items()
    )


def _fish_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: Mapping[str, Callable[[Iterable[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
