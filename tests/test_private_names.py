"""A name with an underscore is imported inside its own package only."""

import ast
from pathlib import Path

import neurise

SOURCE = Path(neurise.__file__).parent


def imported(path: Path) -> list[str]:
    """Dotted names that a file imports, each name of a ``from`` import with its module."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.startswith("neurise.")]


def test_private_names_stay_in_their_package() -> None:
    strangers = []
    for path in SOURCE.rglob("*.py"):
        package = ("neurise", *path.relative_to(SOURCE).parent.parts)
        for name in imported(path):
            parts = name.split(".")
            if "_version" in parts:
                continue
            private = next(
                (k for k, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None
            )
            if private is not None and not part_of(package, tuple(parts[:private])):
                strangers.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert not strangers


def part_of(package: tuple[str, ...], owner: tuple[str, ...]) -> bool:
    return package[: len(owner)] == owner
