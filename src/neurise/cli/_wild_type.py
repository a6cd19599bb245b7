"""The row that ``neurise mutate`` starts from: a sequence as it is typed, or a row of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neurise.cli._data import is_file, resolve, split
from neurise.cli._output import say
from neurise.cli._symbols import known_symbols

if TYPE_CHECKING:
    import numpy as np

    from neurise.modeling.model import Model


def read_wild_type(text: str, model: Model, row: str | None) -> np.ndarray:
    """Find the wild type, (sites,) symbols: a row of a file, by its number or the name of its sequence, or what was typed."""
    if is_file(split(text)[0]):
        return _row_of_file(text, row)
    if row is not None:
        raise ValueError(f"--row {row} is for files, and {text[:20]!r} is none")
    return _typed(text, model)


def _row_of_file(text: str, row: str | None) -> np.ndarray:
    import numpy as np

    data = resolve(text, rows=None, weigh=False)
    if data.train is None:
        raise ValueError(f"{text} has no rows")
    rows: np.ndarray = data.train
    names = list(data.info.get("sequences") or [])
    if row is None:
        if len(rows) > 1:
            called = f" ({names[0]})" if names else ""
            say(f"the wild type is row 0{called} of the {len(rows):,} of {text}; --row takes another")
        return np.asarray(rows[0])
    if row in names:
        return np.asarray(rows[names.index(row)])
    if not row.isdecimal() or int(row) >= len(rows):
        named = " or the name of a sequence" if names else ""
        raise ValueError(f"--row {row}: give a number from 0 to {len(rows) - 1}{named} of {text}")
    return np.asarray(rows[int(row)])


def _typed(text: str, model: Model) -> np.ndarray:
    """Read symbols with commas or blanks between them, or one after another where each has one character."""
    import numpy as np

    known, sites = known_symbols(model), model.space_.sites
    words = [word.strip() for word in text.split(",")]
    if len(words) != sites:
        words = text.replace(",", " ").split()
    if len(words) != sites and all(len(word) == 1 for own in known for word in own.symbols):
        words = list("".join(words))
    if len(words) != sites:
        raise ValueError(
            f"--wild-type {text[:30]!r} is no file, and as a sequence it has {len(words)} sites; the model has {sites}"
        )
    for place, (word, own) in enumerate(zip(words, known, strict=True)):
        if word not in own:
            raise ValueError(f"--wild-type: {word[:20]!r} at site {place} is no symbol of the model, {own}")
    row = np.empty(sites, dtype=object)
    row[:] = [own[word] for word, own in zip(words, known, strict=True)]
    return row if hasattr(model.schema_.alphabet, "columns") else np.array(row.tolist())
