"""Folder + file name → the one thing that file offers.

A model, data set, metric or network is found by its file: the file ``site_mlp.py`` offers ``SiteMLP``, the file
``total_variation.py`` offers ``total_variation``. Nothing is registered anywhere.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
from typing import Any

NOT_OFFERED = ("base",)
"""Files that hold what the others of their folder share. So does a file whose name begins with an underscore."""


def names(package: str) -> list[str]:
    """List what a package offers, by looking at its file names only: nothing is imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"there is no package {package!r}")
    files = (module.name for module in pkgutil.iter_modules(spec.submodule_search_locations))
    return sorted(name for name in files if name not in NOT_OFFERED and not name.startswith("_"))


def find(package: str, name: str) -> Any:
    """Import one file of a package and return what it offers; near names are suggested for an unknown one."""
    offered = names(package)
    if name not in offered:
        kind = package.rpartition(".")[2].rstrip("s")
        close = difflib.get_close_matches(str(name), offered, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(offered)}"
        raise ValueError(f"unknown {kind} {name!r}; {hint}")
    module = importlib.import_module(f"{package}.{name}")
    wanted = name.replace("_", "")
    for attribute in vars(module):
        if not attribute.startswith("_") and attribute.replace("_", "").lower() == wanted:
            return getattr(module, attribute)
    raise AttributeError(f"{module.__name__} offers nothing called {name!r}")


def bind(package: str) -> dict[str, Any]:
    """Import every file of a package and return what each offers, by name: to bind a function over its own module."""
    return {name: find(package, name) for name in names(package)}
