"""``neurise train --watch``: a page that shows the training while it goes on."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neurise.cli._output import say

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.modeling.model import Model
    from neurise.player.feed import TrainingFeed

NO_BROWSER = "NEURISE_NO_BROWSER"
"""A variable that is set where no browser should be opened."""


@contextmanager
def watched(data: Dataset, model: Model) -> Iterator[TrainingFeed]:
    """Serve a page for the time of a training; it gives the callback that feeds the page."""
    from neurise.extras import need

    need("starlette", "play")
    need("uvicorn", "play")
    from neurise.player.feed import TrainingFeed
    from neurise.player.server import serve
    from neurise.player.stage import Stage

    stage = Stage([], data, f"training a {type(model).__name__}: {data.name}")
    stage.feed = TrainingFeed(stage)
    page = serve(stage)
    say(f"watch the training at {page.url}")
    if not os.environ.get(NO_BROWSER):
        webbrowser.open(page.url)
    try:
        yield stage.feed
        stage.feed.end(model)
    finally:
        page.stop()
