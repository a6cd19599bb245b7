"""Two of everything at once: both may win, one may be refused, but what is there in the end is whole and nothing is lost."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from faults.child import CRASHED
from faults.runs import Launcher
from faults.training import Train
from faults.trials import Bench, Count
from faults.works import Work


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
    try:
        damage = bench.work.damage_by_two(folder, winners)
    except Exception as error:
        damage = f"{type(error).__name__}: {error}"
    if not damage:
        shutil.rmtree(folder)
    return damage
