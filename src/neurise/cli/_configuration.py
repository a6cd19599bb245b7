"""The ``--config`` option: parameters that a search found."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Config = Annotated[
    str | None,
    typer.Option(help="Parameters that neurise tune found: its file, or a preset by its name. Options given here win."),
]


def configured(model: str | None, config: str | None) -> tuple[str, dict[str, Any]]:
    """Find out which model is meant, and the parameters that a configuration gives it."""
    if config is None:
        return model or "neurise", {}
    from neurise import presets

    found = presets.load(config)
    if model not in (None, found.model):
        raise ValueError(f"--config {config} is for the model {found.model}, and --model says {model}")
    return found.model, dict(found.params)
