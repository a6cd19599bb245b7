"""``neurise completion``: a script for the completion of commands in a shell."""

from __future__ import annotations

from typing import Annotated

import typer

SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"Your shell: {', '.join(SHELLS)}.")],
) -> None:
    """Print a script that completes verbs, options, files, and the names of models, networks and data sets.

    bash: put eval "$(neurise completion bash)" into ~/.bashrc. zsh: eval "$(neurise completion zsh)" goes into ~/.zshrc,
    below compinit. fish: neurise completion fish > ~/.config/fish/completions/neurise.fish
    """
    from neurise.cli import app
    from neurise.cli._completion_scripts import SCRIPTS
    from neurise.cli._completion_words import commands_of

    if shell not in SHELLS:
        raise ValueError(f"there is no completion for {shell!r}; it must be one of: {', '.join(SHELLS)}")
    typer.echo(SCRIPTS[shell](commands_of(typer.main.get_command(app))), nl=False)
