"""Links that lead out of ``docs/``: to where the site shows that file, or to the repository.

``CONTRIBUTING.md`` and ``NOTATION.md`` lie beside ``docs/`` and are included by a page of the site. On a page and in an
included file, a relative link to such a file becomes a link to the page that shows it. A link to any other file outside
``docs/`` becomes an address in the repository.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(?=[)#])")


def relink(app: Sphinx, text: str, folder: Path, page: str) -> str:
    """Return the text of a file in ``folder`` as a part of ``page``."""
    source = Path(app.srcdir).resolve()
    root, shown = source.parent, app.config.root_pages

    def link(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        if root not in target.parents:
            return found[1]
        name = target.relative_to(root).as_posix()
        if name in shown or source in target.parents:
            return os.path.relpath(source / shown[name] if name in shown else target, (source / page).parent)
        return f"{app.config.root_files_url}{name}"

    return LINK.sub(link, text)


def _page_read(app: Sphinx, page: str, content: list[str]) -> None:
    path = Path(app.env.doc2path(page))
    if path.suffix == ".md":
        content[0] = relink(app, content[0], path.resolve().parent, page)


def _file_included(app: Sphinx, path: Path, page: str, content: list[str]) -> None:
    whole = (Path(app.srcdir) / path).resolve()
    content[0] = relink(app, content[0], whole.parent, app.env.docname)  # ``page`` may lack its folder


def _copy_reports(app: Sphinx, exception: Exception | None) -> None:
    """Put the reports, which are pages of their own, beside the page that links to them."""
    if exception is None:
        for report in (Path(app.srcdir) / "results").glob("*.html"):
            shutil.copy(report, Path(app.outdir) / "results" / report.name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both to the build."""
    app.add_config_value("root_pages", {}, "env")
    app.add_config_value("root_files_url", "", "env")
    app.connect("source-read", _page_read)
    app.connect("include-read", _file_included)
    app.connect("build-finished", _copy_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
