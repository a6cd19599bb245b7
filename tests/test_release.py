"""What is uploaded is whole: versions agree, extras hold what errors tell to install, and the packages install and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import neurise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = ROOT / "src" / "neurise"
MOST_BYTES = 8_000_000
"""Of a wheel, with the models that are shipped."""
BRINGS = {"networkx": "dwave-graphs"}
"""Packages that come with another one of the extra."""


def distributions(extra: str) -> set[str]:
    """Return the names of what an extra installs, those of other extras too."""
    found: set[str] = set()
    for wanted in PROJECT["optional-dependencies"][extra]:
        name, _, others = re.match(r"([\w-]+)(\[([\w,-]+)\])?", wanted).groups()  # type: ignore[union-attr]
        found |= {name} if name != "neurise" else set().union(*(distributions(part) for part in others.split(",")))
    return found


def needed() -> set[tuple[str, str]]:
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    return {found for text in texts for found in re.findall(r'need\("([\w.]+)", "(\w+)"\)', text)}


@pytest.mark.parametrize(("module", "extra"), sorted(needed()))
def test_an_extra_brings_what_is_missing(module: str, extra: str) -> None:
    assert extra in PROJECT["optional-dependencies"], f"{module}: there is no extra {extra!r}"
    top = module.partition(".")[0]
    names = {name.replace("-", "_") for name in distributions(extra)}
    assert {top, module.replace(".", "_"), BRINGS.get(top, top).replace("-", "_")} & names, f"{extra} lacks {module}"


def test_versions_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    first = re.search(r"^## (\S+) \((\S+)\)$", changelog, re.MULTILINE)
    assert first is not None
    assert {first[1], citation["version"], recipe["context"]["version"]} == {neurise.__version__}
    assert first[2] == str(citation["date-released"])
    assert (SOURCE / "py.typed").is_file()  # the classifier "Typing :: Typed" says so


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    run = {wanted.replace(" ", "") for wanted in recipe["requirements"]["run"]}
    own = {wanted.replace("torch>", "pytorch>") for wanted in PROJECT["dependencies"]}
    assert run == own | {f"python{PROJECT['requires-python']}"}
    assert recipe["build"]["python"]["entry_points"] == [f"neurise = {PROJECT['scripts']['neurise']}"]


def test_the_image_copies_what_a_build_needs() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line[0] == "!"}
    copied = {
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    }
    assert copied == sent == {"pyproject.toml", "README.md", "LICENSE", "src"}
    assert all((ROOT / name).exists() for name in sent)
    (asked,) = [line for line in lines if ".whl)[" in line]
    assert set(re.findall(r"\.whl\)\[([\w,]+)\]", asked)[0].split(",")) <= PROJECT["optional-dependencies"].keys()


def run(*words: Any, cwd: Path, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(words, cwd=cwd, env={**environment, **more}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_packages_are_built_installed_and_run(tmp_path: Path) -> None:
    for module in ("build", "hatchling", "twine"):
        pytest.importorskip(module)
    run(
        sys.executable, "-m", "build", "--no-isolation", "-o", tmp_path / "dist", ROOT, cwd=tmp_path
    )  # wheel of the sdist
    wheel, sdist = sorted((tmp_path / "dist").iterdir(), key=lambda path: path.suffix != ".whl")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=tmp_path)
    assert wheel.name == f"neurise-{neurise.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < MOST_BYTES
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {"neurise/py.typed", "neurise/player/reference/glass/neurise/README.md"} <= held
    assert not [name for name in held if "nltcs/" in name or name.startswith("tests")]

    # A fresh environment that finds torch and the others where they are, so that nothing is downloaded.
    venv.create(tmp_path / "fresh", symlinks=True)
    python = tmp_path / "fresh" / "bin" / "python"
    place = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    (Path(place) / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    where = run(python, "-c", "import neurise; print(neurise.__file__, neurise.__version__)", cwd=tmp_path)
    assert where.split() == [str(Path(place) / "neurise" / "__init__.py"), neurise.__version__]
    told = run(
        tmp_path / "fresh" / "bin" / "neurise", "demo", "-o", tmp_path / "demo", cwd=tmp_path, OMP_NUM_THREADS="1"
    )
    assert "hard" in told
    assert (tmp_path / "demo" / "hard" / "model.safetensors").is_file()
