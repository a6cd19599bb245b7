"""How fast the page of ``neurise play`` is, in a real browser: first paint, frames per second, answers to a clamp.

    python benchmarks/play.py --json benchmarks/measured/play.json

The server runs in a process of its own, as ``neurise play`` starts it, and Chromium on the same machine. A clamp is timed in the
page, from the click to the first marginals that are shown; frames are those of ``requestAnimationFrame`` in which the chain
moved. ``ten pages`` asks for the same from ten pages at once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser, Page, sync_playwright

from neurise.experiments._code import machine, script_version
from neurise.modeling import by_tokens
from neurise.player.asking import FIRST, GROUP, MANY_SITES
from neurise.player.open import opened as opened_stage

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]
VIEWPORT = {"width": 1180, "height": 900}
TIMES = 8
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
WATCH, ASK = "window.neurisePlay.views.watch", "window.neurisePlay.views.ask"


@contextmanager
def served(name: str) -> Iterator[str]:
    words = [sys.executable, "-m", "neurise", "play", name, "--no-browser", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout is not None
        told = json.loads("".join(iter(run.stdout.readline, "}\n")) + "}")
        yield str(told["url"])
        run.terminate()


def opened(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport=VIEWPORT).new_page()  # type: ignore[arg-type]
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    return page


def until(page: Page, script: str) -> Any:
    while not (found := page.evaluate(script)):
        page.wait_for_timeout(20)
    return found


def first_paint(browser: Browser, url: str) -> list[float]:
    found = []
    for _ in range(TIMES):
        page = opened(browser, url)
        found.append(float(until(page, PAINT)))
        page.context.close()
    return found


def frames(browser: Browser, url: str, seconds: float = 4.0) -> float:
    page = opened(browser, f"{url}#view=watch")
    until(page, f"() => {WATCH}.chain && {WATCH}.chain.steps.length === {WATCH}.total")
    page.evaluate(f"() => {{ {WATCH}.speed.value = 100 * Math.log({WATCH}.total / {seconds} > 60 ? {WATCH}.total / {seconds} : 60)"
                  " / Math.log(2000); }")  # fmt: skip
    count = f"""() => new Promise((done) => {{
        const view = {WATCH}; let drawn = 0, began = performance.now();
        view.go(0); view.toggle(); view.frames = 0;
        const look = (now) => {{
            if (now - began > {1000 * seconds}) {{ view.pause(); done([drawn + view.frames, now - began]); return; }}
            if (!view.playing) {{ drawn += view.frames; view.frames = 0; view.go(0); view.toggle(); }}
            requestAnimationFrame(look);
        }};
        requestAnimationFrame(look); }})"""
    drawn, spent = page.evaluate(count)
    page.context.close()
    return 1000 * float(drawn) / float(spent)


def clamps(browser: Browser, url: str, sites: int) -> list[float]:
    page = opened(browser, f"{url}#view=ask")
    found = [_clamp(page, (37 * number + sites // 2) % sites) for number in range(TIMES)]
    page.context.close()
    return found


def _clamp(page: Page, site: int) -> float:
    page.evaluate(
        f"() => {{ {ASK}.first = null; {ASK}.brush = 0; {ASK}.paint({site}, 'begin'); {ASK}.paint(-1, 'end'); }}"
    )
    return float(until(page, f"() => {ASK}.first"))


def processor(name: str, site: int) -> list[float]:
    """Time the first answer to a clamp by the clock of one processor, which other work does not disturb."""
    torch.set_num_threads(1)
    model, found = opened_stage([name], None, layout=None).actors[0].model, []
    for number in range(TIMES + 1):
        began = time.process_time()
        by_tokens.group(model, FIRST if model.space_.sites > MANY_SITES else GROUP, {site: 0}, None, number)
        found.append(1000 * (time.process_time() - began))
    return found[1:]


def ten_pages(browser: Browser, url: str, sites: int) -> list[float]:
    pages = [opened(browser, f"{url}#view=ask") for _ in range(10)]
    for number, page in enumerate(pages):
        site = (5 * number) % sites
        page.evaluate(
            f"() => {{ {ASK}.first = null; {ASK}.brush = 0; {ASK}.paint({site}, 'begin'); {ASK}.paint(-1, 'end'); }}"
        )
    found = [float(until(page, f"() => {ASK}.first")) for page in pages]
    for page in pages:
        page.context.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    asked = parser.parse_args()
    figures = []
    with sync_playwright() as started:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = started.chromium.launch(executable_path=path, args=QUIET)
        for name, sites in (("glass", 16), ("digits", 784)):
            with served(name) as url:
                rows: dict[str, list[float]] = {
                    "first paint, ms": first_paint(browser, url),
                    "frames per second": [frames(browser, url) for _ in range(3)],
                    "clamp, ms": clamps(browser, url, sites),
                    "clamp, ms of one core": processor(name, sites // 2),
                    "clamp in ten pages at once, ms": ten_pages(browser, url, sites),
                }
            for what, values in rows.items():
                figures.append({
                    "model": name, "sites": sites, "what": what, "median": round(statistics.median(values), 1),
                    "least": round(min(values), 1), "most": round(max(values), 1), "times": len(values),
                })  # fmt: skip
                print(f"{name:8} {what:32} {figures[-1]['median']:10.1f}  ({min(values):.1f} … {max(values):.1f})")
        browser.close()
    if asked.json is not None:
        load = [round(part, 1) for part in os.getloadavg()]
        made = {
            "command": " ".join(["python benchmarks/play.py", *sys.argv[1:]]),
            "code": script_version(__file__),
            "machine": machine("cpu"),
            "cores": os.cpu_count(),
            "load": load,
            "figures": figures,
        }
        asked.json.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
