"""Find the files that hold the rows of one data set."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

ARROW = (".parquet", ".arrow", ".feather")
ENDINGS = (*ARROW, ".npy")


def find_files(source: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the files of a folder and its folders, of a pattern, or those that are named; all of one kind."""
    if isinstance(source, str | Path):
        found = _found(Path(source))
    elif isinstance(source, Iterable):
        found = [path for each in source for path in _found(Path(each))]
    else:
        raise ValueError(f"rows are in a file, a folder, a pattern or a list of files; got {source!r:.80}")
    if not found:
        raise FileNotFoundError(f"there is no file that ends in {', '.join(ENDINGS)} in {source}")
    for path in found:
        if _ending(path) not in ENDINGS:
            raise ValueError(f"{path}: the ending {path.suffix!r} is not known here; there are: {', '.join(ENDINGS)}")
        if _ending(path) != _ending(found[0]):
            raise ValueError(
                f"{found[0]} and {path} are of two kinds; give a pattern such as 'folder/*{found[0].suffix}'"
            )
    return found


def _found(place: Path) -> list[Path]:
    if place.is_dir():
        inside = sorted(path for path in place.rglob("*") if _ending(path) in ENDINGS and path.is_file())
        found = [path for path in inside if not path.name.startswith((".", "_"))]
        for path in found:
            if key := next((part for part in path.relative_to(place).parts[:-1] if "=" in part), None):
                raise ValueError(
                    f"{path} lies in a folder that is named after a value ({key}), which is no column of the file: give a pattern, "
                    f"'{place}/**/*{path.suffix}', to learn without it, or write the value into the files"
                )
        return found
    if place.exists():
        return [place]
    if any(sign in str(place) for sign in "*?["):
        return sorted(Path(name) for name in glob.glob(str(place), recursive=True) if Path(name).is_file())  # noqa: PTH207
    raise FileNotFoundError(f"there is no file or folder {place}")


def _ending(path: Path) -> str:
    return path.suffix.lower()
