"""Make the README readable outside the repository: its relative links become addresses of the project.

A package index shows the README and none of the files that it links to. The address stands once, in ``[project.urls]``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)\s]+)\)")


def with_addresses(text: str, url: str) -> str:
    """Return the text with the address of a page for every relative link, and that of the file itself for every picture."""
    return LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({url}/{'raw' if found[1] else 'blob'}/main/{found[3]})", text
    )


class ReadmeHook(MetadataHookInterface):
    """Set the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md and complete its links."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_addresses(text, metadata["urls"]["Source"])}
