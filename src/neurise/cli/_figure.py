"""The ``--figure`` option of several verbs."""

from __future__ import annotations

from pathlib import Path

from neurise.cli._output import ask_before_overwriting

ENDINGS = (".png", ".svg", ".pdf")


def check_figure(path: Path | None, *, force: bool) -> None:
    """Check that a figure can be written, before anything is computed for it."""
    if path is None:
        return
    from neurise.extras import need

    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"--figure {path}: a figure is a {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file")
    ask_before_overwriting(path, force=force)
    need("matplotlib", "plots")
