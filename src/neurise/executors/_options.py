"""Options of an executor, ``name=value,name=value``: what each may be, checked before anything starts.

Values of Slurm's options become lines of a job script, so each has a form that cannot end a line, a word or a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+@-]*"
PATH = r"[\w./%+@:-]+"


class Form(NamedTuple):
    """What a value may be: a pattern, and the same in words."""

    pattern: str
    words: str


TLS_OPTIONS: Mapping[str, Form] = {
    name: Form(PATH, "a path of letters, digits and . / _ % + @ : -") for name in ("ca", "cert", "key")
}
"""PEM files: who signed the certificates, the own certificate, and its key."""
SLURM_OPTIONS: Mapping[str, Form] = {
    "queue": Form(NAME, "the name of a partition: letters, digits and . _ + @ -"),
    "account": Form(NAME, "the name of an account: letters, digits and . _ + @ -"),
    "memory": Form(r"(?!0+(\.0+)?[a-zA-Z]*$)\d+(\.\d+)?([kKMGT]i?)?B?", "an amount with its unit, as 500MB or 16GB"),
    "walltime": Form(
        r"(?![0:-]+$)(\d{1,6}-\d{1,2}(:\d{1,2}(:\d{1,2})?)?|\d{1,6}(:\d{1,2}){0,2})",
        "a time as Slurm writes it: minutes, HH:MM:SS or days-HH:MM:SS",
    ),
    "gpus": Form(rf"({NAME}:)?[1-9]\d{{0,3}}", "a number of GPUs from 1 on, also of a kind, as 2 or a100:2"),
    "interface": Form(r"[A-Za-z0-9_.@-]{1,15}", "the name of a network interface, as ib0"),
    "logs": Form(PATH, "a folder, its path of letters, digits and . / _ % + @ : -"),
    **TLS_OPTIONS,
}


def parsed(spec: str, text: str, known: Mapping[str, Form], written: str) -> dict[str, str]:
    """Read ``name=value,name=value``; ``written`` says how it is done, in the error for what is not."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else []:
        name, equals, value = part.partition("=")
        if not equals or not value or name not in known:
            raise ValueError(f"{spec!r}: options are written {written}, names {', '.join(known)}; got {part!r}")
        if name in found:
            raise ValueError(f"{spec!r}: {name} was given twice, as {found[name]!r} and as {value!r}")
        if not re.fullmatch(known[name].pattern, value):
            raise ValueError(f"{spec!r}: {name} must be {known[name].words}; got {value!r}")
        found[name] = value
    return found
