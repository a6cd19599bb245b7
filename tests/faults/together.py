"""Two of everything at once: both may win, one may be refused, but what is there in the end is whole and nothing is lost."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from faults.child import CRASHED
from faults.runs import Launcher
from faults.trials import Bench, Count
from faults.works import Experiment, Train, Tune, Work


class OtherTrain(Train):
    """Another model, learnt into the same folder."""

    words = tuple("5" if word == "4" else word for word in Train.words)  # the width


def collide(bench: Bench, rival: Work, tries: int) -> Count:
    """Start a work and its rival at the same moment in one folder, so many times."""
    count = Count(bench.work.name, bench.work.executor, "two at once", "start")
    allowed = [bench.new, Bench(bench.launcher, rival, bench.place / "rival").new]
    for number in range(tries):
        began = time.monotonic()
        why = _once(bench, rival, bench.fresh(f"two-{number}"), allowed)
        count.add(why and f"pair {number}: {why}", time.monotonic() - began)
    return count


def _once(bench: Bench, rival: Work, folder: Path, allowed: list[object]) -> str:
    launcher: Launcher = bench.launcher
    pair = [launcher.start(work.run(folder), folder) for work in (bench.work, rival)]
    ended = [one.finish() for one in pair]
    for one in ended:
        if one.code is None:
            return "one hung"
        if one.code == CRASHED:
            return f"one ended in a traceback: {one.printed.strip().splitlines()[-1][:300]}"
    if all(one.code for one in ended):
        return f"both failed: {ended[0].printed.strip()[-200:]} / {ended[1].printed.strip()[-200:]}"
    winners = [allowed[place] for place, one in enumerate(ended) if one.code == 0]
    shared = isinstance(bench.work, Experiment | Tune)  # runs that share their work, where all cells are wanted by both
    if isinstance(bench.work, Train) and len(winners) > 1:
        return "both trained into one folder and said that all went well: one model is lost"
    try:
        found = bench.work.result(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if shared and not isinstance(bench.work, Experiment):
        if found[-1] < allowed[0][-1]:  # type: ignore[index]
            return f"{found[-1]} trials are there"
    elif found not in winners:
        return "what is there is of neither"
    shutil.rmtree(folder)
    return ""
