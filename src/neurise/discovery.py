"""Find things by name: a file of a folder of the library, or an entry point of another package.

A model, data set, metric or network is found by its file: the file ``site_mlp.py`` offers ``SiteMLP``, the file
``total_variation.py`` offers ``total_variation``. Another package offers its own by an entry point of the group that bears
the folder's name; in its ``pyproject.toml``::

    [project.entry-points."neurise.networks"]
    my_network = "my_package.my_network"          # the module; or "my_package.my_network:MyNetwork"

Nothing is registered anywhere else.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

NOT_OFFERED = ("base",)
"""Files that hold what the others of their folder share. So does a file whose name begins with an underscore, or a folder."""


@lru_cache
def names(package: str) -> tuple[str, ...]:
    """List what a package offers, by file names and entry points only: nothing is imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"there is no package {package!r}")
    files = (module.name for module in pkgutil.iter_modules(spec.submodule_search_locations) if not module.ispkg)
    own = {name for name in files if name not in NOT_OFFERED and not name.startswith("_")}
    return tuple(sorted(own | set(_others(package))))


def _others(package: str) -> dict[str, EntryPoint]:
    """What other packages offer, by name."""
    return {point.name: point for point in entry_points(group=package)}


def find(package: str, name: str) -> Any:
    """Import what a name stands for; near names are suggested for an unknown one."""
    if not isinstance(name, str):  # which may be what cannot be looked up at all
        raise ValueError(f"a {package.rpartition('.')[2].rstrip('s')} is called by its name, got {name!r}")
    return found(package, name)


@lru_cache
def found(package: str, name: str) -> Any:
    """Do as :func:`find` does, for a name that is known to be text; what was found once is remembered."""
    offered = names(package)
    if name not in offered:
        kind = package.rpartition(".")[2].rstrip("s")
        close = difflib.get_close_matches(str(name), offered, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(offered)}"
        raise ValueError(f"unknown {kind} {name!r}; {hint}")
    point = _others(package).get(name)
    if point is None:
        return offered_by(importlib.import_module(f"{package}.{name}"), name)
    loaded = point.load()
    return offered_by(loaded, name) if point.attr == "" or point.attr is None else loaded


def in_file(path: str | Path, name: str) -> Any:
    """Run a Python file that is in no package, and return what it calls ``name``. The same contents are run once."""
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}, which {name} was to be taken from")
    module = _module_of(place.resolve(), hashlib.sha256(place.read_bytes()).hexdigest()[:12])
    if not hasattr(module, name):
        offered = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        raise ValueError(f"{place} has nothing called {name!r}; it has {', '.join(offered) or 'no class'}")
    return getattr(module, name)


@lru_cache
def _module_of(place: Path, digest: str) -> ModuleType:
    """Run a file under a name that no other file has, not even the same one with other contents."""
    name = f"neurise_file_{digest}.{place.stem}"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ImportError(f"{place} cannot be run: {type(error).__name__}: {error}") from error
    return module


def offered_by(module: Any, name: str) -> Any:
    """Return the one thing of a module that bears a name, whatever its capitals and underscores."""
    wanted = name.replace("_", "")
    for attribute in vars(module):
        if not attribute.startswith("_") and attribute.replace("_", "").lower() == wanted:
            return getattr(module, attribute)
    raise AttributeError(f"{module.__name__} offers nothing called {name!r}")


def name_of(kind: type) -> str:
    """Return the name under which a class is found: that of its file."""
    return kind.__module__.rpartition(".")[2]


def bind(package: str, *, others: bool = True) -> dict[str, Any]:
    """Import every file of a package and return what each offers, by name: to bind a function over its own module.

    ``others`` adds what other packages offer. A package that binds itself leaves them for later: they may import it.
    """
    foreign = _others(package)
    return {name: find(package, name) for name in names(package) if others or name not in foreign}
