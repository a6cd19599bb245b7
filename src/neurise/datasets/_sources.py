"""Where the files of a data set come from: a folder of the user's, ``NEURISE_DATA``, the cache, or a download."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from neurise.datasets._download import cache_folder, download


def locate(
    names: Sequence[str],
    *,
    within: str,
    folder: str | Path | None = None,
    urls: Sequence[str] = (),
    checksum: str | None = None,
    check: Callable[[Path], object] | None = None,
) -> Path:
    """Find a file that may bear any of several names, or download it.

    With a ``folder``, it is there or nowhere. Otherwise it is sought in the subfolder ``within`` of ``NEURISE_DATA``, then in
    the cache, and at last downloaded from ``urls`` into the cache. ``checksum`` and ``check`` are for what is downloaded
    (see :func:`neurise.datasets._download.download`).
    """
    own = str(Path(within) / names[0])
    place = _folder(folder, "folder") if folder is not None else _folder(os.environ.get("NEURISE_DATA"), "NEURISE_DATA")
    if place is not None:
        place = place if folder is not None else place / within
        for name in names:
            if (place / name).is_file():
                return place / name
    if folder is not None:
        raise FileNotFoundError(f"the folder {place} has no file {' or '.join(names)}")
    if not urls:
        raise FileNotFoundError(
            f"{names[0]} is not at hand, and there is no public address to download it from: get a copy, and set the "
            f"environment variable NEURISE_DATA to a folder that has it as {own}, or say folder=…"
        )
    target = cache_folder() / within / urls[0].rpartition("/")[2]
    try:
        return download(urls, target, checksum=checksum, check=check)
    except (ValueError, OSError) as error:
        raise type(error)(f"{error}. A copy is also found as {own} in the folder NEURISE_DATA") from error


def _folder(path: str | Path | None, what: str) -> Path | None:
    if not path:
        return None
    place = Path(path).expanduser()
    if not place.is_dir():
        raise ValueError(f"{what} is {str(path)!r}, and there is no such folder")
    return place
