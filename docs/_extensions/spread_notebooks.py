"""Notebooks are read by several processes at once, not one after the other because their names lie side by side."""

from typing import Any

from jupyter_cache import get_cache
from sphinx.application import Sphinx
from sphinx.util.parallel import make_chunks

SLOW = ("tutorials/", "start/tour")


def create_cache(app: Sphinx) -> None:
    """Create the database of executed notebooks before several processes look for it: two that create it collide."""
    _ = get_cache(app.config.nb_execution_cache_path).db


def spread(app: Sphinx, _: Any, names: list[str]) -> None:
    """Move every other page that runs code to the part of the pages that the next process reads."""
    slow = [name for name in names if name.startswith(SLOW)]
    others = [name for name in names if name not in slow]
    first = max(0, len(make_chunks(names, app.parallel)[0]) - len(slow[::2])) if names else 0
    names[:] = [*slow[::2], *others[:first], *slow[1::2], *others[first:]]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("builder-inited", create_cache)
    app.connect("env-before-read-docs", spread)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
