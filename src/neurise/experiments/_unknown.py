"""The error for a name that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: str, offered: Iterable[str], more: str = "") -> ValueError:
    """Make the error for a name that there is not, with those that it may have been meant for; ``more`` may be named too."""
    there = list(dict.fromkeys(offered))
    close = difflib.get_close_matches(name, there, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(there) or 'none'}"
    return ValueError(f"unknown {kind} {name!r}; {hint}{f' Also: {more}' if more else ''}")
