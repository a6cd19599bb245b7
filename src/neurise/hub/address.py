"""Addresses of models on a hub: ``hf://owner/name`` and ``hf://owner/name@revision``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

SCHEME = "hf:"
_NAME = r"[A-Za-z0-9][\w.-]{0,95}"
_ADDRESS = re.compile(rf"hf:/{{1,2}}(?P<repository>{_NAME}/{_NAME})(@(?P<revision>[\w./-]{{1,250}}))?/?")


class Address(NamedTuple):
    """A repository of a hub and a revision of it; None is the newest one."""

    repository: str
    revision: str | None

    def __str__(self) -> str:
        return f"hf://{self.repository}" + ("" if self.revision is None else f"@{self.revision}")


def is_address(path: str | Path) -> bool:
    """Whether a path is meant to be an address."""
    return str(path).startswith(SCHEME)


def parsed(text: str | Path) -> Address:
    """Read an address; a ``Path`` of one, which has lost a slash, too."""
    found = _ADDRESS.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text} is no address of a model; write hf://owner/name or hf://owner/name@revision")
    return Address(found["repository"], found["revision"])
