"""One file per metric; each offers the function that bears its name. Those of other packages are found when they are used.

>>> import neurise
>>> neurise.metrics.total_variation([0.5, 0.5], [0.25, 0.75])
0.25 ± 0 (floor 0)
"""

from typing import Any

from neurise.discovery import bind, find, names

globals().update(bind("neurise.metrics", others=False))


def __getattr__(name: str) -> Any:
    if name in names("neurise.metrics"):
        return find("neurise.metrics", name)
    raise AttributeError(f"module 'neurise.metrics' has no attribute {name!r}")
