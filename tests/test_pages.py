"""The pages are laid out for reading: no line of prose, without its comments, is longer than 100 columns."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "NOTATION.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COLUMNS = 100
WHOLE = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)")
"""Code and links, which are not broken over lines."""
COMMENT = re.compile(r"\s*<!--.*?-->")
FENCE = re.compile(r"\s*(`{3,}|:{3,})")


def prose(text: str) -> list[tuple[int, str]]:
    """Numbered lines outside code blocks, tables and comments."""
    lines, fence, comment = [], "", False
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        comment = comment or (not fence and line.lstrip().startswith("<!--"))
        if comment:
            comment = "-->" not in line
        elif fence:
            fence = "" if mark and line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith("|"):
            lines.append((number, COMMENT.sub("", line).rstrip()))
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page: Path) -> None:
    found = prose(page.read_text(encoding="utf-8"))
    long = [(number, line) for number, line in found if len(line) > COLUMNS and len(WHOLE.sub("x", line).split()) > 2]
    assert not long, "\n".join(f"{page.name}:{number}: {line}" for number, line in long)


def test_code_and_tables_are_no_prose() -> None:
    text = "one\n```python\ntwo\n```\n| three |\n<!-- four -->\n<!-- more\nthan a line -->\nfive\n"
    text += "::::{tip}\n:::\nsix\n::::\nseven"
    assert [line for _, line in prose(text)] == ["one", "five", "seven"]


LOCAL = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files(page: Path) -> None:
    text = "\n".join(line for _, line in prose(page.read_text(encoding="utf-8")))
    generated = ROOT / "docs" / "gallery"  # made from examples/ when the site is built
    targets = [(page.parent / found).resolve() for found in LOCAL.findall(text)]
    missing = [target for target in targets if not target.exists() and generated not in target.parents]
    assert not missing, missing


def test_links_of_the_readme_work_on_a_package_index() -> None:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    text = hook.with_addresses((ROOT / "README.md").read_text(encoding="utf-8"), "https://a.example/b")
    assert not LOCAL.findall(text)
    assert "](https://a.example/b/raw/main/docs/figures/overview.png)" in text
    assert "](https://a.example/b/blob/main/CONTRIBUTING.md)" in text
