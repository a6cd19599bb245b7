"""Where the real files are that some tests read: the folder that NEURISE_DATA names, or nowhere."""

import os
from pathlib import Path

import pytest


def real_file(name: str) -> Path:
    """Return a file of NEURISE_DATA; without it the test is skipped, and says why."""
    root = os.environ.get("NEURISE_DATA")
    if not root:
        pytest.skip("NEURISE_DATA is not set, and this test reads real files")
    if not (Path(root) / name).exists():
        pytest.skip(f"the folder NEURISE_DATA has no {name}")
    return Path(root) / name
