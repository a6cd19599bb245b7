"""Show the animations of gallery scripts as GIF pictures, which need neither scripts nor fonts of another host."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class GifAnimations:
    """A scraper of sphinx-gallery: writes every animation whose figure is open, and closes the figure."""

    def __repr__(self) -> str:
        return type(self).__name__

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """Return the reStructuredText of the pictures of one block."""
        import matplotlib.pyplot as plt
        from matplotlib.animation import Animation, PillowWriter
        from sphinx_gallery.scrapers import figure_rst

        paths = []
        for animation in list(block_vars["example_globals"].values()):
            if not isinstance(animation, Animation):
                continue
            figure = animation._fig
            if not plt.fignum_exists(figure.number):
                continue
            path = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
            animation.save(path, writer=PillowWriter(fps=1000 / animation._interval))
            paths.append(str(path))
            plt.close(figure)
        title = Path(block_vars["src_file"]).read_text(encoding="utf-8").splitlines()[1]  # below the quotes
        return figure_rst(paths, gallery_conf["src_dir"], title) if paths else ""


def _get_sg_image_scraper() -> GifAnimations:
    """Say what sphinx-gallery shall use where this module is named."""
    return GifAnimations()
