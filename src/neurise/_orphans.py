"""Worker processes that do not outlive the program they work for. Light, because every worker imports it."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Let this process end as soon as its parent does, even when the parent is killed and can tell nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_exit, args=(parent,), daemon=True).start()


def _wait_and_exit(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
