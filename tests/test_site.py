"""The built site: no broken link, no picture without words, nothing from another host, and readable on a phone."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pages
import pytest

SITE = Path(__file__).parents[1] / "build" / "site"
PHONE = {"width": 390, "height": 844}
PATIENCE = 60_000
"""Milliseconds that a page may take on a machine that is busy with other things."""
GENERATED = ("_static", "_sources", "_downloads", "reports")
REPORTS = ("laptop.html",)
"""Pages of ``neurise report``, which have tests of their own."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
]


class Page(HTMLParser):
    """What a page refers to, and what others can refer to on it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.targets, self.names, self.wordless = path, list[str](), set[str](), list[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.names |= {name for name in (found.get("id"), found.get("name")) if name}
        self.targets += [value for key in ("href", "src") if (value := found.get(key))]
        thumbnail = "_thumb." in str(found.get("src")) and found.get("alt") == ""  # its title stands below it
        if tag == "img" and not found.get("alt") and not thumbnail:
            self.wordless.append(str(found.get("src")))


@functools.cache
def page(path: Path) -> Page:
    return Page(path)


def all_pages() -> list[Path]:
    found = [path for path in SITE.rglob("*.html") if path.relative_to(SITE).parts[0] not in GENERATED]
    return sorted(path for path in found if path.name not in REPORTS)


def broken(path: Path) -> Iterator[str]:
    """Links of a page that lead nowhere inside the site."""
    for target in page(path).targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        goal = goal / "index.html" if goal.is_dir() else goal
        if not goal.exists():
            yield f"{target}: no such file"
        elif parts.fragment and goal.suffix == ".html" and unquote(parts.fragment) not in page(goal).names:
            yield f"{target}: no such place"


def test_every_part_is_there() -> None:
    parts = {path.relative_to(SITE).parts[0] for path in all_pages()}
    wanted = {"start", "tutorials", "gallery", "guide", "api", "evidence", "contribute", "search.html"}
    assert wanted <= parts


def test_links_lead_somewhere() -> None:
    found = {str(path.relative_to(SITE)): list(broken(path)) for path in all_pages()}
    assert not {name: links for name, links in found.items() if links}


def test_pictures_are_described() -> None:
    found = {str(path.relative_to(SITE)): page(path).wordless for path in all_pages()}
    assert not {name: pictures for name, pictures in found.items() if pictures}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def phone(address: str) -> Iterator[Any]:
    path, playwright = pages.chromium()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=pages.QUIET)
        opened = browser.new_context(viewport=PHONE).new_page()
        opened.set_default_timeout(PATIENCE)
        opened.complaints, opened.asked = [], set()
        opened.on("console", lambda said: opened.complaints.append(said.text) if said.type == "error" else None)
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.on("request", lambda request: opened.asked.add(request.url))
        yield opened
        browser.close()


def test_pages_on_a_phone(phone: Any, address: str) -> None:
    wide = {}
    for path in all_pages():
        name = path.relative_to(SITE).as_posix()
        phone.goto(f"{address}/{name}", wait_until="load")
        width = phone.evaluate("document.scrollingElement.scrollWidth")
        if width > PHONE["width"]:
            wide[name] = width
    assert not phone.complaints, phone.complaints
    outside = {url for url in phone.asked if not url.startswith((address, "data:", "blob:"))}
    assert not outside, outside
    assert not wide, f"wider than {PHONE['width']} pixels: {wide}"


def test_search_finds_a_function(phone: Any, address: str) -> None:
    phone.goto(f"{address}/search.html?q=total_variation", wait_until="load")
    phone.wait_for_selector("#search-results li a")
    found = phone.evaluate("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
    assert any(re.search(r"/api/metrics\.html", link) for link in found), found
