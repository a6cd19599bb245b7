"""Configurations: a model and its parameters in a JSON file, written by a search. The good ones are shipped here.

A file ``ising.json`` of this folder is the preset ``ising``.

>>> import neurise
>>> neurise.presets.load('ising_5x5_ggm').model
'ggm'
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from neurise import discovery, json_text
from neurise._version import __version__
from neurise.fields import Field
from neurise.files import write_text

FORMAT = 1
"""Raised whenever a file of an older version can no longer be read as it stands."""

MOST_BYTES = 10**7
"""Of a configuration, which has a few hundred."""

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Configuration:
    """A kind of model, its parameters, and how well it did in the search that found them.

    >>> import neurise
    >>> neurise.presets.Configuration('neurise', {'width': 64}).params
    {'width': 64}
    """

    model: str
    params: Mapping[str, Any]
    score: float | None = None  # nats a row of the validation rows; lower is better
    study: Mapping[str, Any] = field(default_factory=dict)  # what was searched, on which data, how, at what budget
    neurise: str = __version__
    name: str = ""  # of the preset, or of the file

    def write(self, path: Path) -> None:
        """Write the file that ``neurise train --config`` takes."""
        fields = {"format": FORMAT, **asdict(self)}
        del fields["name"]
        write_text(path, json.dumps(fields, indent=2, ensure_ascii=False) + "\n")


def names() -> list[str]:
    """List the presets, by looking at file names alone.

    >>> import neurise
    >>> 'ising_4x4' in neurise.presets.names()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str | Path) -> Configuration:
    """Read a preset by its name, or a configuration from its file; near names are suggested for an unknown one.

    >>> import neurise
    >>> found = neurise.presets.load('ising_4x4')
    >>> found.model, len(found.params) > 0
    ('neurise', True)
    """
    path = Path(name)
    if path.is_file():
        return read(path)
    if str(name) in names():
        return read(FOLDER / f"{name}.json")
    if path.suffix == ".json" or len(path.parts) > 1:
        raise FileNotFoundError(f"there is no configuration file {path}")
    close = difflib.get_close_matches(str(name), names(), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"presets are: {', '.join(names())}"
    raise ValueError(f"there is neither a file nor a preset {str(name)!r}; {hint}")


def read(path: Path) -> Configuration:
    """Read a configuration, after checking that this version can use it.

    >>> import neurise
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / 'mine.json'
    >>> neurise.presets.Configuration('neurise', {'width': 64}).write(path)
    >>> neurise.presets.read(path).params
    {'width': 64}
    """
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes; a configuration has at most {MOST_BYTES:,}")
    fields = json_text.read(path)
    known = set(Configuration.__dataclass_fields__) - {"name"}
    if not isinstance(fields, dict) or not {"format", "model", "params"} <= fields.keys():
        raise ValueError(
            f"{path} is no configuration: it must have format, model and params, as neurise tune writes them"
        )
    if fields.pop("format") != FORMAT:
        raise ValueError(f"{path} has another format than this version of neurise reads, which is {FORMAT}")
    if unknown := sorted(fields.keys() - known):
        raise ValueError(f"{path} has the unknown entry {unknown[0]!r}; a configuration has {', '.join(sorted(known))}")
    described = Field(fields, str(path))
    if not isinstance(fields["params"], dict):
        raise ValueError(f"{path}: params must map names to values, got {fields['params']!r}")
    if "score" in described and fields["score"] is not None:
        described["score"].number()
    if "study" in described:
        list(described["study"].entries())
    if "neurise" in described:
        described["neurise"].text()
    named = described["model"].text()
    try:
        kind = discovery.find("neurise.models", named)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if strange := sorted(fields["params"].keys() - kind.leaves().keys()):
        raise ValueError(f"{path}: {kind.unknown(strange[0])}")
    return Configuration(**fields, name=path.stem)
