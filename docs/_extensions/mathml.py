"""Write formulas as MathML, which browsers draw themselves: no script, no font and no request to another host."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

ALIGNED = ("\\\\", "&")
"""What a formula of several lines holds; it is set as one aligned block."""


def _shown(latex: str) -> str:
    lines = any(mark in latex for mark in ALIGNED) and "\\begin" not in latex
    return convert(f"\\begin{{aligned}}{latex}\\end{{aligned}}" if lines else latex, display="block")


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{_shown(node.astext())}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
