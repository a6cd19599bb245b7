"""Stages of small models for the tests of the page, fitted once, and a browser where there is one."""

from __future__ import annotations

import functools
import shutil
from typing import Any

import numpy as np
import pytest
import tiny

from neurise import datasets
from neurise.player.open import opened, stage_of
from neurise.player.stage import Stage

TOKEN = "a-token"
HOST = "127.0.0.1:1"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


@functools.cache
def glass() -> Stage:
    """The shipped models of a 4 × 4 glass."""
    return opened([], None, layout=None)


@functools.cache
def potts() -> Stage:
    """Small models of a 2 × 2 Potts law with its data."""
    data = datasets.potts(side=2, states=3)
    rows = data.sample(300, seed=0)
    models = {name: tiny.model(name).fit(rows, max_steps=20) for name in ("neurise", "d3pm", "independent")}
    return stage_of(models, data)


@functools.cache
def labelled() -> Stage:
    """A table with columns of their own, labels, and no data."""
    rng = np.random.default_rng(0)
    sex, town = rng.integers(2, size=80), rng.integers(3, size=80)
    X = np.stack([np.array(["f", "m"], dtype=object)[sex], np.array(["Bonn", "Rome", "Oslo"], dtype=object)[town]], 1)
    y = np.where(sex > 0, "yes", "no")
    return stage_of(tiny.model().fit(X, y, max_steps=10))


def chromium() -> Any:
    """Return the path of Chromium and Playwright, or skip."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    return path, playwright
