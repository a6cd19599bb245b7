"""Every public name has an example in its docstring, and the examples of all docstrings show what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import neurise
from neurise import discovery

SOURCE = Path(neurise.__file__).parent
SECTIONS = ("datasets", "dimod_bridge", "exact", "losses", "metrics", "povm", "presets", "structure", "theory")
WITH_EXAMPLES = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
DOWNLOADED = ("caltech101_silhouettes", "debd", "fashion_mnist", "mnist", "rydberg", "tfim")
"""Data sets that are files of others: their examples run where the files are."""
WITHOUT_FILES = ("fashion_mnist",)
"""Those of them that lie in no folder of data beside the checkout, and would be downloaded."""


def names_of(module: ModuleType) -> list[str]:
    """List what a module offers: its ``__all__``, the files of its folder, or the functions and classes that it defines."""
    if module.__name__ in {"neurise.datasets", "neurise.metrics"}:
        return list(discovery.names(module.__name__))
    own = [name for name, it in vars(module).items() if callable(it) and it.__module__ == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def public() -> Iterator[tuple[str, Any]]:
    for name in neurise.__all__:
        if name != "__version__":
            yield f"neurise.{name}", getattr(neurise, name)
    for section in SECTIONS:
        for name in names_of(getattr(neurise, section)):
            yield f"neurise.{section}.{name}", getattr(getattr(neurise, section), name)


PUBLIC = dict(public())


def test_every_public_name_has_an_example() -> None:
    assert {"neurise.NeurISE", "neurise.metrics.kl", "neurise.povm.find", "neurise.theory.terms"} <= PUBLIC.keys()
    without = [name for name, it in PUBLIC.items() if ">>> " not in (inspect.getdoc(it) or "")]
    assert not without, f"no example in the docstring of {', '.join(without)}"


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (SOURCE.parents[1] / "docs" / "api").glob("*.md"))
    missing = [name for name in PUBLIC if f"{name.rpartition('.')[2]}\n" not in pages]
    assert not missing, f"no page of docs/api shows {', '.join(missing)}"


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in DOWNLOADED and (path.stem in WITHOUT_FILES or "NEURISE_DATA" not in os.environ):
        pytest.skip("needs files of others: set NEURISE_DATA")
    parts = ("neurise", *path.relative_to(SOURCE).with_suffix("").parts)
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(example, out=said.append)
    assert not said, "".join(said)
    assert runner.tries, f"{path.name} has an example that is not found"
