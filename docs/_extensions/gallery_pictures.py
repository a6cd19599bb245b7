"""Pictures of the gallery: animations as GIF files, which need nothing of another host, and a text for every picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def title_of(script: Path) -> str:
    """Return the title of a script, the line below its first quotes, without marks."""
    return script.read_text(encoding="utf-8").splitlines()[1].replace("`", "")


class Pictures:
    """A scraper of sphinx-gallery: takes the figures that are open, animations first, and names them by their script."""

    def __repr__(self) -> str:
        return type(self).__name__

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """Return the reStructuredText of the pictures of one block."""
        import matplotlib.pyplot as plt
        from matplotlib.animation import Animation, PillowWriter
        from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

        paths = []
        for animation in list(block_vars["example_globals"].values()):
            if isinstance(animation, Animation) and plt.fignum_exists(animation._fig.number):
                path = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
                animation.save(path, writer=PillowWriter(fps=1000 / animation._interval))
                paths.append(str(path))
                plt.close(animation._fig)
        moving = figure_rst(paths, gallery_conf["src_dir"]) if paths else ""
        still = matplotlib_scraper(block, block_vars, gallery_conf)
        return re.sub(r":alt:.*", f":alt: {title_of(Path(block_vars['src_file']))}", moving + still)


def _get_sg_image_scraper() -> Pictures:
    """Say what sphinx-gallery shall use where this module is named."""
    return Pictures()


def name_thumbnails(app: Any, doctree: Any) -> None:
    """Give the small pictures of the gallery's first page the titles of their scripts."""
    from docutils import nodes

    for image in doctree.findall(nodes.image):
        found = re.search(r"sphx_glr_(plot_\w+)_thumb", image["uri"])
        if found and not image.get("alt"):
            image["alt"] = title_of(EXAMPLES / f"{found[1]}.py")


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", name_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
