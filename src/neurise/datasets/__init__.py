"""One file a source of data; each offers the function that bears its name. Those of other packages are found when they are used.

>>> import neurise
>>> neurise.datasets.potts(side=2, states=3).sample(5, seed=0).shape
(5, 4)
"""

from typing import Any

from neurise.discovery import bind, find, names

globals().update(bind("neurise.datasets", others=False))


def __getattr__(name: str) -> Any:
    if name in names("neurise.datasets"):
        return find("neurise.datasets", name)
    raise AttributeError(f"module 'neurise.datasets' has no attribute {name!r}")
