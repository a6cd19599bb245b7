"""Encrypted connections of a Dask cluster.

Without them whoever reaches the scheduler's port can read what is computed, and have it run any code. With them every
side shows a certificate that the same authority has signed, and nobody else is heard.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neurise.executors._options import TLS_OPTIONS


def files(spec: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the three files of an encrypted connection, as whole paths; an empty answer where none was given.

    Raises ValueError where some are missing, or cannot be used: a scheduler's answer would not say which.
    """
    given = {name: str(Path(options[name]).resolve()) for name in TLS_OPTIONS if name in options}
    if not given:
        return {}
    missing = [name for name in TLS_OPTIONS if name not in given]
    if missing:
        raise ValueError(f"{spec!r}: an encrypted connection needs ca, cert and key; {' and '.join(missing)} missing")
    for name, path in given.items():
        if not re.fullmatch(TLS_OPTIONS[name].pattern, path):  # it may become part of a job script
            raise ValueError(f"{spec!r}: {name} must be {TLS_OPTIONS[name].words}; it stands at {path!r}")
        if not Path(path).is_file():
            raise ValueError(f"{spec!r}: {name} must be a PEM file; there is none at {path}")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(given["ca"])
        context.load_cert_chain(given["cert"], given["key"], password=_refuse)
    except ssl.SSLError as error:
        raise ValueError(
            f"{spec!r}: ca and cert must be PEM certificates, and key the key of cert without a password; {error}"
        ) from error
    return given


def _refuse() -> str:
    raise ssl.SSLError("the key has a password")


def security(distributed: Any, given: Mapping[str, str]) -> Any:
    """Make what Dask asks for: the same certificate for client, scheduler and worker; None without files."""
    if not given:
        return None
    roles = ("client", "scheduler", "worker")
    certificates = {f"tls_{role}_cert": given["cert"] for role in roles}
    keys = {f"tls_{role}_key": given["key"] for role in roles}
    return distributed.Security(tls_ca_file=given["ca"], require_encryption=True, **certificates, **keys)
