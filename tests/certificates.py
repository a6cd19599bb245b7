"""Certificates that this machine makes for itself, by openssl: an authority, and what it has signed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def made(folder: Path) -> dict[str, Path]:
    """Make an authority and one certificate with its key, as PEM files."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate with")
    folder.mkdir(parents=True, exist_ok=True)
    ca, ca_key, cert, key = (folder / name for name in ("ca.pem", "ca.key", "cert.pem", "cert.key"))
    new = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    )
    _run(*new, "-subj", "/CN=authority", "-keyout", ca_key, "-out", ca)
    _run(*new, "-subj", "/CN=member", "-CA", ca, "-CAkey", ca_key, "-keyout", key, "-out", cert)
    return {"ca": ca, "cert": cert, "key": key}


def as_options(files: dict[str, Path]) -> str:
    """Write them as an executor takes them."""
    return ",".join(f"{name}={path}" for name, path in files.items())


def as_words(files: dict[str, Path]) -> list[str]:
    """Write them as dask's own commands take them."""
    names = {"ca": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}
    return [word for name, path in files.items() for word in (names[name], str(path))]


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:  # openssl before 3.0 signs in another way
        pytest.skip(f"this openssl cannot make the certificates: {done.stderr[-200:]}")
