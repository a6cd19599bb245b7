"""Which files of code a module depends on, read from its source: nothing is imported."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = "neurise"
ROOT = Path(__file__).parents[2]
"""The folder of the package."""

WITHOUT_INFLUENCE = (
    "_version",
    "bench",
    "cli",
    "drawing",
    "executors",
    "experiments._code",
    "experiments._method_table",
    "experiments.grid",
    "experiments.parts.figures",
    "experiments.parts.sources",
    "experiments.parts.unit",
    "notebook",
    "presets",
    "progress",
    "progress_display",
    "report",
    "stored",
    "structure",
    "tuning",
)
"""Parts of the package that show results, spread work or read what was learnt, and change no metric.

The settings of a preset are in the digest of its method; the rows of an experiment lie in memory."""
CHOSEN_BY_METHOD = "models"
"""The folder of which a cell uses one file, that of its method; of other folders whose files are found by name it may use any."""


def digest_of(roots: Iterable[str | Path], root: Path = ROOT) -> str:
    """Digest the code that some modules, or files outside of the package, depend on; comments and docstrings do not count."""
    total = hashlib.sha256()
    for name, path in sorted(dependencies(roots, root).items()):
        total.update(name.encode() + b"\0" + _parsed(path).code)
    return total.hexdigest()[:12]


def dependencies(roots: Iterable[str | Path], root: Path = ROOT) -> dict[str, Path]:
    """Find everything that modules import, and that this imports in turn, also inside of functions.

    A module counts where a name is taken from it: the ``__init__`` of a package that is only passed through does not. Where
    a name of a folder, as in ``discovery.find("neurise.networks", …)``, stands in the code, all files of it count; and all of
    the package where a script says ``import neurise``.
    """
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        path = one if isinstance(one, Path) else _path(one, root)
        name = one.name if isinstance(one, Path) else one
        if path is None or name in found or any(_inside(name, part) for part in WITHOUT_INFLUENCE):
            continue
        found[name] = path
        for wanted in _parsed(path).names:
            waiting += _modules(wanted, root)
    return found


class _Source:
    """What matters of a file: its code without words for readers, and the modules and folders that it names."""

    def __init__(self, text: str) -> None:
        self.found: set[str] = set()
        self.silent: set[int] = set()  # lines of docstrings
        self.inside: set[int] = set()  # lines within a text, where a # begins no comment
        self._walk(ast.parse(text).body)
        self.names = sorted(self.found)
        kept = [line.rstrip() for number, line in enumerate(text.splitlines(), 1) if self._counts(number, line.strip())]
        self.code = hashlib.sha256("\n".join(kept).encode()).digest()

    def _counts(self, number: int, line: str) -> bool:
        return number not in self.silent and (number in self.inside or (line != "" and not line.startswith("#")))

    def _walk(self, nodes: Iterable[ast.AST]) -> None:
        """Note what code imports, and the packages that stand in it as text; what only types need is left out."""
        for node in nodes:
            if isinstance(node, ast.Import):
                self.found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                self.found |= {f"{node.module}:{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Constant):
                self._note_text(node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                self.silent |= set(_lines(node))
            elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                self._walk(node.orelse)
            elif not isinstance(node, ast.Name | ast.expr_context | ast.operator):
                if isinstance(node, ast.JoinedStr):
                    self.inside |= set(_lines(node)[1:])
                self._walk(ast.iter_child_nodes(node))

    def _note_text(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.inside |= set(_lines(node)[1:])
            if re.fullmatch(rf"{PACKAGE}(\.\w+)+", node.value):
                self.found.add(f"{node.value}:*")


def _parsed(path: Path) -> _Source:
    return _source(path, path.stat().st_mtime_ns, path.stat().st_size)


@cache
def _source(path: Path, changed: int, size: int) -> _Source:
    """Read a file once for each state that it is in."""
    return _Source(path.read_text(encoding="utf-8"))


def _modules(wanted: str, root: Path) -> list[str]:
    """Resolve what an import names: a module, a name in one, or (``:*``) every file of a folder."""
    module, _, name = wanted.partition(":")
    if not _inside(module, ""):
        return []
    if wanted == PACKAGE:
        parts = (path.relative_to(root).with_suffix("").parts for path in sorted(root.rglob("*.py")))
        return [".".join((PACKAGE, *part)).removesuffix(".__init__") for part in parts]
    if name == "*":
        folder = root.joinpath(*module.split(".")[1:])
        if module == f"{PACKAGE}.{CHOSEN_BY_METHOD}" or not folder.is_dir():
            return []
        return [f"{module}.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    inner = f"{module}.{name}"
    return [inner if name and _path(inner, root) is not None else module]


def _path(module: str, root: Path) -> Path | None:
    """Return the file of a module of the package; None where there is none."""
    place = root.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py") if module != PACKAGE else (root / "__init__.py",):
        if path.is_file():
            return path
    return None


def _inside(module: str, part: str) -> bool:
    whole = f"{PACKAGE}.{part}" if part else PACKAGE
    return module == whole or module.startswith(f"{whole}.")


def _lines(node: ast.expr | ast.stmt) -> range:
    """Return the numbers of the lines that a piece of code stands on."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
