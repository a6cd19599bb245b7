"""The scripts of the gallery. ``make docs`` runs them; here it is checked that each is made like the others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from neurise.drawing import COLOURS

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
LONGEST = 80
"""Lines of a script, at most: a gallery is read at a glance."""


def test_there_are_enough() -> None:
    assert len(EXAMPLES) >= 14


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_has_a_title_a_picture_and_a_claim(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line = (ast.get_docstring(tree) or "").splitlines()[:2]
    assert title
    assert line == "=" * len(title)
    assert 'plt.style.use("neurise.look")' in text
    assert "plt.show()" in text
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree)), "a script ends by checking what it claims"
    assert len(text.splitlines()) <= LONGEST


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_figure_is_made_and_shown_in_one_block(path: Path) -> None:
    for block in re.split(r"\n# %%\n", path.read_text(encoding="utf-8")):
        makes = "plt.subplots(" in block or "plt.figure(" in block
        assert makes == ("plt.show()" in block), "sphinx-gallery takes the open figures at the end of every block"


def test_the_style_has_the_colours_of_the_library() -> None:
    with plt.style.context("neurise.look"):
        assert (
            tuple(f"#{colour.lstrip('#')}" for colour in plt.rcParams["axes.prop_cycle"].by_key()["color"]) == COLOURS
        )
