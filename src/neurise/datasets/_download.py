"""Files from the web into a cache: whole and checked, or not there at all."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from neurise.files import rename
from neurise.progress import Progress

BLOCK = 2**16
TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as lost."""
TRIES = 3
"""How often one address is tried in a row without getting any further."""
PAUSE = 1.0
"""Seconds before the second try of an address; twice as many before each further one."""


def cache_folder() -> Path:
    """Where downloads are kept: ``NEURISE_CACHE``, or ``neurise`` in the user's folder for such things."""
    if chosen := os.environ.get("NEURISE_CACHE"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser() / "neurise"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neurise"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "neurise" / "cache"
    return Path.home() / ".cache" / "neurise"


def download(
    urls: Sequence[str],
    target: Path,
    *,
    checksum: str | None = None,
    check: Callable[[Path], object] | None = None,
) -> Path:
    """Bring the file that stands at each of these addresses to ``target``, unless it is there; return ``target``.

    ``checksum`` is ``"md5:…"``, ``"sha256:…"`` or ``"git:…"``, which is what git calls the file; ``check`` raises a ValueError for
    a file that is not what it should be.
    The bytes go to ``target`` + ``.part`` and are renamed once they are complete and right. With a checksum, an
    interrupted download goes on where it stopped, at the next call too; without one it starts afresh, because nothing
    could tell whether two halves belong together. Addresses are tried in turn until one serves the right file.
    """
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent):
        if target.is_file():  # another process has brought it while this one waited
            return target
        part = target.with_name(f"{target.name}.part")
        problems: list[str] = []
        damaged = False
        try:
            for url in urls:
                try:
                    _bring(url, part, checksum, check)
                    rename(part, target)
                    return target
                except ValueError as error:
                    damaged = True
                    problems.append(str(error))
                except (OSError, HTTPException) as error:
                    problems.append(f"{url}: {error}")
        finally:
            if checksum is None:
                part.unlink(missing_ok=True)
    message = f"cannot download {target.name}: " + "; ".join(problems)
    raise ValueError(message) if damaged else OSError(message)


def _bring(url: str, part: Path, checksum: str | None, check: Callable[[Path], object] | None) -> None:
    """Leave the whole and right file at ``part``; a wrong one is removed."""
    if checksum is not None and part.is_file() and _digest(part, checksum) == checksum.lower():
        return  # everything was there but the new name
    older = checksum is not None and part.is_file()
    for resume in (True, False) if older else (False,):
        _fetch(url, part, resume=resume, again=checksum is not None)
        try:
            if checksum is not None and (found := _digest(part, checksum)) != checksum.lower():
                raise ValueError(f"{url} served {part.name[:-5]} with {found}, and {checksum.lower()} was expected")
            if check is not None:
                check(part)
        except ValueError:
            part.unlink(missing_ok=True)
            if not resume:
                raise
        else:
            with part.open("r+b") as file:
                os.fsync(file.fileno())
            return


def _fetch(url: str, part: Path, *, resume: bool, again: bool) -> None:
    """Receive all bytes, trying again after a lost connection; with ``again`` from where it was lost."""
    if not resume:
        part.unlink(missing_ok=True)
    farthest, barren = _size(part), 0
    while True:
        try:
            return _receive(url, part, _size(part))
        except HTTPError as error:
            error.close()  # it holds the connection open for whoever wants to read the page that came with it
            if error.code == 416 and part.exists():  # there is more here than there: not the beginning of that file
                part.unlink()
                farthest = -1
            elif error.code < 500 and error.code not in (408, 429):
                raise
            problem: Exception = error
        except (OSError, HTTPException) as error:
            problem = error
        barren = 0 if again and _size(part) > farthest else barren + 1
        farthest = max(farthest, _size(part))
        if barren >= TRIES:
            raise problem
        if not again:
            part.unlink(missing_ok=True)
        time.sleep(PAUSE * 2 ** max(barren - 1, 0))


def _receive(url: str, part: Path, have: int) -> None:
    """Receive what is missing of the file, in one connection."""
    headers = {"User-Agent": "neurise"} | ({"Range": f"bytes={have}-"} if have else {})
    with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as response:
        if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink(missing_ok=True)
            raise ConnectionError("the server sent another part of the file than was asked for")
        done = have if response.status == 206 else 0  # a server that cannot resume sends everything again
        length = response.headers.get("Content-Length")
        expected = None if length is None else done + int(length)
        whole = expected or math.inf  # of a server that does not say how much it sends, no share is known
        bar = Progress(f"downloading {part.name[:-5]}", "bytes", verbose=None, done=done, fraction=done / whole)
        try:
            with part.open("ab" if done else "wb") as file:
                while block := response.read(BLOCK):
                    file.write(block)
                    done += len(block)
                    bar.update(done, done / whole)
        finally:
            bar.close()
    if expected is not None and done < expected:
        raise ConnectionError(f"the connection closed after {done:,} of {expected:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _digest(path: Path, checksum: str) -> str:
    algorithm = checksum.partition(":")[0]
    # MD5 tells a damaged file from a whole one; where it is forbidden as a means of security, it may still do that.
    total = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":  # git names a file by the SHA-1 of its length and its bytes
        total.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        hashlib.file_digest(file, lambda: total)
    return f"{algorithm}:{total.hexdigest()}"


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let one process at a time write to a folder of the cache; where the system has no such locks, do nothing."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # given up when the file is closed, also by a crash
        yield
