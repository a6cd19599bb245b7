"""Record what ``neurise play`` shows as an animation of about 20 seconds, for the README.

    python benchmarks/record_play.py docs/figures/play.gif

The frames are taken one by one while the script moves the page, so the animation is the same however slow the machine is.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from neurise.player.open import opened
from neurise.player.server import serve

SIZE = {"width": 860, "height": 600}
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
VIEWS = "window.neurisePlay.views"
COLOURS = 48


class Film:
    """Frames and how long each stands, in milliseconds."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int = 110) -> None:
        shot = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(shot.quantize(COLOURS, dither=Image.Dither.NONE))
        self.times.append(milliseconds)

    def until(self, script: str) -> None:
        while not self.page.evaluate(script):
            self.page.wait_for_timeout(50)


def watch_digits(film: Film) -> None:
    steps = "window.neurisePlay.views.watch.chain"
    film.until(f"() => {steps} && {steps}.steps.length === 784")
    for step in range(0, 785, 14):
        film.page.evaluate(f"() => {VIEWS}.watch.go({step})")
        film.shoot()
    film.shoot(900)
    for step in range(784, 300, -44):
        film.page.evaluate(f"() => {VIEWS}.watch.go({step})")
        film.shoot(80)


def hold(film: Film) -> None:
    film.until(f"() => {VIEWS}.ask?.found")
    film.shoot(900)
    for site in (5, 6, 10, 9):
        box = film.page.locator("#ask-field").bounding_box()
        assert box is not None
        film.page.mouse.click(
            box["x"] + box["width"] * (site % 4 + 0.5) / 4, box["y"] + box["height"] * (site // 4 + 0.5) / 4
        )
        film.page.wait_for_timeout(200)
        film.until("() => document.querySelector('#ask-progress').value === 1")
        film.shoot(850)


def main() -> None:
    torch.set_num_threads(1)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures/play.gif")
    digits, glass = serve(opened(["digits"], None, layout=None)), serve(opened([], None, layout=None))
    with sync_playwright() as started:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = started.chromium.launch(executable_path=chromium, args=QUIET)
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        film = Film(page)
        page.goto(f"{digits.url}#label=3&seed=4&chains=2")
        page.wait_for_selector("html[data-ready]")
        watch_digits(film)
        page.goto(f"{glass.url}#view=ask")
        page.wait_for_selector("html[data-ready]")
        hold(film)
        page.click("#tab-compare")
        film.until("() => document.querySelector('#compare-told').textContent.includes('measured')")
        film.shoot(1600)
        page.mouse.wheel(0, 420)
        page.wait_for_timeout(300)
        film.shoot(2200)
        page.click("#tab-structure")
        film.until("() => document.querySelector('#structure-told').textContent.includes('pairs above')")
        page.mouse.wheel(0, -1000)
        page.wait_for_timeout(300)
        film.shoot(1800)
        browser.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    film.frames[0].save(path, save_all=True, append_images=film.frames[1:], duration=film.times, loop=0, optimize=True)
    print(f"{path}: {sum(film.times) / 1000:.1f} s, {len(film.frames)} frames, {path.stat().st_size / 1e6:.2f} MB")
    for served in (digits, glass):
        served.stop()


if __name__ == "__main__":
    main()
