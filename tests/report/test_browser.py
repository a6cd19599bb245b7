"""The page in a real browser: on a desk, on a phone, in the dark and on paper."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_rows

from neurise import experiments
from neurise.report import build

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=QUIET)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    for name in experiments.names():
        report_rows.write(folder / "all.jsonl", report_rows.rows(name))
    build([folder / "all.jsonl"]).write(folder / "report.html")
    return f"file://{folder / 'report.html'}"


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    contexts = []

    def opened(**options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": DESK} | options))
        page = contexts[-1].new_page()
        page.complaints, page.asked = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address, wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()


def test_every_figure_is_seen_and_nothing_is_complained_of_or_asked_for(visit: Any, address: str) -> None:
    page = visit()
    for name in experiments.names():
        for figure in experiments.find(name).figures:
            drawn = page.locator(f"#{name}-smoke-{figure.name} svg[role=img]")
            assert drawn.count() >= 1, f"{name}: {figure.name}"
            box = drawn.first.bounding_box()
            assert box["width"] > 200
            assert box["height"] > 150
            assert drawn.first.get_attribute("aria-label").startswith(figure.title)
            assert drawn.first.locator("g.series").count() >= 1
    broken = "[...document.images].filter(image => !image.complete || !image.naturalWidth).length"
    assert page.locator("figure.samples img").count() >= 5
    assert page.evaluate(broken) == 0
    assert page.complaints == []
    assert [url for url in page.asked if not url.startswith("data:")] == [address]


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_sticks_out_to_the_side(visit: Any, size: dict[str, int]) -> None:
    page = visit(viewport=size)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    outside = """() => [...document.querySelectorAll('main *')].filter(part => !part.closest('.wide, svg')
        && part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML.slice(0, 80))"""
    assert page.evaluate(outside) == []


def test_letters_of_a_figure_can_be_read_on_a_phone(visit: Any) -> None:
    page = visit(viewport=PHONE)
    width = page.locator("svg[role=img]").first.bounding_box()["width"]
    drawn = page.locator("svg[role=img]").first.get_attribute("viewBox").split()
    assert 12 * width / float(drawn[2]) >= 9  # pixels of letters that are 12 high in the drawing


def test_text_is_light_on_dark_in_the_dark(visit: Any) -> None:
    looks = {}
    for scheme in ("light", "dark"):
        page = visit(color_scheme=scheme)
        parts = ("getComputedStyle(document.body).backgroundColor", "getComputedStyle(document.body).color")
        axis = "getComputedStyle(document.querySelector('svg[role=img] text')).fill"
        looks[scheme] = [_brightness(page.evaluate(part)) for part in (*parts, axis)]
    assert looks["light"][0] > 200 > 100 > max(looks["light"][1:])
    assert looks["dark"][0] < 60 < 180 < min(looks["dark"][1:])


def test_files_are_saved_from_the_page_itself(visit: Any, tmp_path: Path) -> None:
    page = visit()
    for name, kind in (("ising_curves-smoke-tv.csv", "CSV"), ("ising_curves-smoke-tv.svg", "SVG")):
        with page.expect_download() as caught:
            page.locator(f'a[download="{name}"]').click()
        assert caught.value.suggested_filename == name, kind
        caught.value.save_as(tmp_path / name)
    lines = list(csv.reader((tmp_path / "ising_curves-smoke-tv.csv").read_text().splitlines()))
    assert lines[0][0] == "series"
    alone = page.context.new_page()
    alone.goto(f"file://{tmp_path / 'ising_curves-smoke-tv.svg'}")
    assert alone.locator("svg text").count() > 5
    assert _brightness(alone.evaluate("getComputedStyle(document.querySelector('text')).fill")) == 0


def test_links_lead_to_what_they_name_and_the_page_has_one_head(visit: Any) -> None:
    page = visit()
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    jumps = """() => [...document.querySelectorAll('h1,h2,h3')].map(head => +head.tagName[1])
        .some((level, place, levels) => place && level > levels[place - 1] + 1)"""
    assert page.evaluate(jumps) is False
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("img:not([alt])").count() == 0


def test_the_page_can_be_printed(visit: Any, tmp_path: Path) -> None:
    page = visit()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    pages = re.findall(rb"/Type\s*/Page[^s]", (tmp_path / "report.pdf").read_bytes())
    assert len(pages) >= len(experiments.names())
    page.emulate_media(media="print", color_scheme="dark")
    assert _brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) == 255
    assert not page.locator("p.downloads").first.is_visible()


def _brightness(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
