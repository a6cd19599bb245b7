"""The page in a real browser: every view, by mouse and by keyboard, on a desk and on a phone, in the light and in the dark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pytest
import tiny

from neurise import Independent, datasets
from neurise.player.feed import TrainingFeed
from neurise.player.open import stage_of
from neurise.player.server import serve
from neurise.player.stage import Stage

pytestmark = pytest.mark.slow
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1180, "height": 900}
PATIENCE = 60
"""Seconds that anything may take on a machine that is busy with other things: no test depends on a faster clock."""
VIEWS = ("watch", "ask", "compare", "structure", "likelihood")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path, playwright = pages.chromium()
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=path, args=pages.QUIET)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    page = serve(pages.glass())
    yield page.url
    page.stop()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    contexts = []

    def opened(place: str = "", url: str = address, **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": DESK, "accept_downloads": True} | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.complaints, page.asked = [], []
        page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(f"{url}{place}", wait_until="load")
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()


def until(page: Any, script: str, wanted: Callable[[Any], bool] = bool) -> Any:
    """Look at the page again and again: its policy forbids Playwright's own waiting, which evaluates text."""
    end = time.monotonic() + PATIENCE
    while True:
        found = page.evaluate(script)
        if wanted(found):
            return found
        assert time.monotonic() < end, f"{script} is {found!r}"
        page.wait_for_timeout(50)


def text(page: Any, place: str) -> str:
    return str(page.inner_text(place))


def click_site(page: Any, site: int, field: str = "#ask-field") -> None:
    box = page.locator(field).bounding_box()
    page.mouse.click(*_middle(box, site))


def _middle(box: dict[str, float], site: int) -> tuple[float, float]:
    return box["x"] + box["width"] * (site % 4 + 0.5) / 4, box["y"] + box["height"] * (site // 4 + 0.5) / 4


MEAN = "() => window.neurisePlay.views.ask?.found?.mean ?? null"
CLAMP = "() => window.neurisePlay.state.clamp"


# --- the page as a whole -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone in the dark", "desk"])
def test_every_view_shows_without_complaint_or_outside_request(
    visit: Any, address: str, size: dict[str, int], scheme: str
) -> None:
    page = visit(viewport=size, color_scheme=scheme)
    for view in VIEWS:
        page.click(f"#tab-{view}")
        assert page.locator(f"#{view}").is_visible()
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], view
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, dark[4:-1].split(","))) < 200) == (scheme == "dark")
    assert page.complaints == []
    assert [url for url in page.asked if not url.startswith((address, "blob:", "data:"))] == []


def test_every_control_has_a_name_and_can_be_reached(visit: Any) -> None:
    page = visit()
    for view in VIEWS:
        page.click(f"#tab-{view}")
        nameless = """() => [...document.querySelectorAll('input, select, textarea, button, canvas, progress')]
            .filter(part => part.offsetParent && !part.closest('label') && !part.labels?.length
                && !part.getAttribute('aria-label') && !part.textContent.trim()).map(part => part.outerHTML.slice(0, 90))"""
        assert page.evaluate(nameless) == [], view
        hidden = """() => [...document.querySelectorAll('input, select, textarea, button')]
            .filter(part => part.offsetParent && part.tabIndex < 0 && part.getAttribute('role') !== 'tab').length"""
        assert page.evaluate(hidden) == 0
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"


def test_the_keyboard_alone_is_enough(visit: Any) -> None:
    page = visit()
    page.focus("#tab-watch")
    page.keyboard.press("ArrowRight")
    assert page.locator("#ask").is_visible()
    until(page, MEAN)
    page.focus("#ask-field")
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate(CLAMP) == {"5": 1}
    assert "held at 1" in text(page, "#said") or "site 5" in page.evaluate(
        "document.querySelector('#said').textContent"
    )
    page.keyboard.press("Delete")
    assert page.evaluate(CLAMP) == {}
    page.keyboard.press("Control+z")
    assert page.evaluate(CLAMP) == {"5": 1}


# --- watch -----------------------------------------------------------------------------------------------------------------


def test_a_chain_is_played_stopped_and_dragged_back(visit: Any) -> None:
    page = visit("#seed=3&chains=2")
    until(page, "() => window.neurisePlay.views.watch.chain?.steps.length", lambda steps: steps == 16)
    assert page.locator("#watch-fields canvas").count() == 2
    rows = "() => window.neurisePlay.views.watch.chain.now.map(row => [...row])"
    start = page.evaluate(rows)
    page.fill("#speed", "100")
    page.click("#play")
    until(page, "() => window.neurisePlay.views.watch.chain.at", lambda at: at == 16)
    model = pages.glass().actors[0].model
    symbols = np.array([[-1, 1][token] for row in page.evaluate(rows) for token in row]).reshape(2, 16)
    np.testing.assert_array_equal(symbols, model.sample(2, seed=3))
    assert text(page, "#watch-told").startswith("step 16 of 16 · time 0")
    assert page.locator("#law svg").count() == 1
    box = page.locator("#time").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert page.evaluate(rows) == start
    page.click("#next")
    assert text(page, "#watch-told").startswith("step 1 of 16")
    page.click("#back")
    assert page.evaluate(rows) == start


def test_pause_speed_and_the_forward_noise(visit: Any) -> None:
    page = visit("#direction=forward")
    until(page, "() => window.neurisePlay.views.watch.chain?.steps.length", lambda steps: steps == 16)
    assert page.evaluate("() => window.neurisePlay.views.watch.chain.steps[0].t") == 1
    page.fill("#speed", "0")
    page.click("#play")
    assert text(page, "#play") == "Pause"
    page.click("#play")
    assert text(page, "#play") == "Play"
    assert page.evaluate("() => window.neurisePlay.views.watch.chain.at") < 16
    page.select_option("#direction", "reverse")
    until(page, "() => window.neurisePlay.views.watch.chain?.steps[0]?.t", lambda time: time == 15)
    page.select_option("#model", "independent")
    until(page, "() => document.querySelector('#watch-told').textContent", lambda told: "no steps to show" in told)


# --- hold and ask ------------------------------------------------------------------------------------------------------------


def test_sites_are_held_by_clicking_and_painted_by_dragging(visit: Any) -> None:
    page = visit("#view=ask")
    free = until(page, MEAN)
    click_site(page, 5)
    assert page.evaluate(CLAMP) == {"5": 1}
    held = until(page, MEAN, lambda mean: mean is not None and mean[5] == [0, 1])
    truth = pages.glass().truth.reshape([2] * 16)
    given = truth.take(1, 5)
    want = given.sum(axis=tuple(range(1, 15))) / given.sum()
    assert abs(held[0][1] - want[1]) < abs(free[0][1] - want[1]) + 0.1
    assert max(abs(a[1] - b[1]) for a, b in zip(held, free, strict=True)) > 0.1
    box = page.locator("#ask-field").bounding_box()
    page.check("input[name=brush][value='0']")
    page.mouse.move(*_middle(box, 8))
    page.mouse.down()
    page.mouse.move(*_middle(box, 10), steps=10)
    page.mouse.up()
    assert page.evaluate(CLAMP) == {"5": 1, "8": 0, "9": 0, "10": 0}
    address = page.evaluate("location.hash")
    shared = visit(address)
    assert shared.evaluate(CLAMP) == page.evaluate(CLAMP)
    page.click("#undo")
    page.click("#clear")
    assert page.evaluate(CLAMP) == {}
    page.click("#undo")
    assert len(page.evaluate(CLAMP)) >= 1
    until(page, "() => document.querySelectorAll('#ask-rows canvas').length", lambda count: count == 12)
    assert "independent rows" in text(page, "#ask-told")
    assert page.complaints == []


def test_few_effective_samples_and_models_that_cannot_hold_are_told(visit: Any) -> None:
    everything = "-".join(f"{site}.{site % 2}" for site in range(15))
    page = visit(f"#view=ask&clamp={everything}")
    until(page, "() => document.querySelector('#ask-progress').value", lambda done: done == 1)
    low = page.evaluate("() => window.neurisePlay.views.ask.found.low")
    assert page.locator("#few").is_visible() == low
    page.select_option("#model", "d3pm")
    until(page, "() => document.querySelector('#ask-told').textContent", lambda told: "cannot hold sites" in told)


# --- compare, structure, likelihood ------------------------------------------------------------------------------------------


def test_models_are_compared_and_one_that_cannot_hold_is_greyed_out(visit: Any) -> None:
    page = visit("#view=compare&clamp=0.1")
    done = "() => document.querySelector('#compare-told').textContent"
    until(page, done, lambda told: "measured against the exact law" in told)
    names = "() => [...document.querySelectorAll('#entries .entry')].map(part => [part.dataset.name, part.className])"
    entries = dict(page.evaluate(names))
    assert set(entries) == {"neurise", "d3pm", "independent", "pairwise", "data"}
    assert "greyed" in entries["d3pm"]
    assert "cannot hold sites" in text(page, "[data-name=d3pm]")
    assert "floor" in text(page, "[data-name=neurise]")
    assert page.locator("#correlations svg, #energies svg").count() == 2
    assert page.locator("#top tbody tr").count() == 8
    page.uncheck("#compare input[value=pairwise]")
    until(page, done, lambda told: "measured against the exact law" in told)
    assert page.locator("[data-name=pairwise]").count() == 0


def test_couplings_are_a_graph_and_a_matrix_above_a_threshold(visit: Any) -> None:
    page = visit("#view=structure")
    told = "() => document.querySelector('#structure-told').textContent"
    until(page, told, lambda told: "of 120 pairs" in told)
    page.fill("#threshold", "0")
    all_pairs = page.locator("#couplings path").count()
    page.fill("#threshold", "60")
    assert 0 < page.locator("#couplings path").count() < all_pairs
    page.select_option("#structure-kind", "matrix")
    cells = page.locator("#couplings rect[role=img]")
    assert cells.count() > 0
    cells.first.hover()
    assert "J =" in text(page, "#pair")
    assert "±" in text(page, "#pair")
    assert "true" in text(page, "#pair")
    page.check("#truth")
    assert "true couplings" in text(page, "#structure-told")


def test_a_row_is_typed_dropped_drawn_and_improved(visit: Any) -> None:
    page = visit("#view=likelihood")
    value = "() => Number(document.querySelector('#row-told').dataset.value)"
    until(page, value, lambda value: value < 0)
    page.fill("#row", ",".join(["1", "-1"] * 8))
    page.click("#read-row")
    model = pages.glass().actors[0].model
    want = float(model.log_prob(np.array([[1, -1] * 8]))[0])
    until(page, value, lambda value: abs(value - want) < 1e-3)
    until(page, "() => document.querySelectorAll('#nearest canvas').length", lambda count: count == 5)
    page.locator("#changes button").first.click()
    better = until(page, value, lambda value: value > want)
    assert better > want
    click_site(page, 0, "#row-field")
    until(page, value, lambda value: value != better)
    drop = """(line) => { const data = new DataTransfer(); data.items.add(new File([line], 'row.csv'));
        document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true })); }"""
    page.evaluate(drop, ",".join(["-1", "-1", "1", "1"] * 4))
    dropped = float(model.log_prob(np.array([[-1, -1, 1, 1] * 4]))[0])
    until(page, value, lambda value: abs(value - dropped) < 1e-3)
    page.fill("#row", "1,2,3")
    page.click("#read-row")
    until(page, "() => document.querySelector('#row-told').textContent", lambda told: "3 symbols" in told)


def test_a_symbol_with_a_comma_is_shown_as_it_is_read(visit: Any) -> None:
    X = np.array([["Bonn, Rhine", "f"], ["Rome, Tiber", "m"], ["Rome, Tiber", "x"]] * 4, dtype=object)
    served = serve(stage_of(Independent().fit(X)))
    try:
        page = visit("#view=likelihood&row=0.1", url=served.url)
        until(page, "() => document.querySelector('#row').value", lambda shown: shown == '"Bonn, Rhine",m')
        page.click("#read-row")
        until(page, "() => document.querySelector('#row-told').textContent", lambda told: "log-probability" in told)
        assert page.complaints == []
    finally:
        served.stop()


def test_a_training_is_looked_at_while_it_goes_on(browser: Any) -> None:
    data = datasets.potts(side=2, states=3)
    stage = Stage([], data, "training")
    stage.feed = TrainingFeed(stage)
    served, context = serve(stage), browser.new_context(viewport=DESK)
    try:
        page = context.new_page()
        page.goto(served.url)
        until(page, "() => document.querySelector('#training-told')?.textContent ?? ''", lambda told: "Waiting" in told)
        model = tiny.model().fit(data.sample(300, seed=0), max_steps=20, callback=stage.feed)
        page.wait_for_selector("html[data-ready]")
        until(page, "() => document.querySelectorAll('#fresh canvas').length", lambda count: count == 12)
        until(page, "() => document.querySelectorAll('#curves path').length", lambda count: count >= 1)
        stage.feed.end(model)
        until(page, "() => document.querySelector('#training-told').textContent", lambda told: "ended" in told)
        page.click("#tab-watch")
        until(page, "() => window.neurisePlay.views.watch.chain?.steps.length", lambda steps: steps == 4)
    finally:
        context.close()
        served.stop()


# --- export ------------------------------------------------------------------------------------------------------------------


def test_everything_on_the_screen_can_be_saved(visit: Any, tmp_path: Path) -> None:
    page = visit("#seed=3&chains=2")
    until(page, "() => window.neurisePlay.views.watch.chain?.steps.length", lambda steps: steps == 16)
    saved = {}
    for kind in ("png", "svg", "gif", "csv"):
        with page.expect_download() as caught:
            page.click(f"#export-{kind}")
        saved[kind] = tmp_path / caught.value.suggested_filename
        caught.value.save_as(saved[kind])
    assert saved["png"].read_bytes().startswith(b"\x89PNG")
    assert saved["svg"].read_text().count("<rect") == 32
    image = pytest.importorskip("PIL.Image")
    with image.open(saved["gif"]) as frames:
        assert frames.n_frames == 17
        frames.seek(16)
        last = np.asarray(frames.convert("RGB"))
    colours = "() => window.neurisePlay.views.watch.list[0].palettes[0]"
    palette, model = page.evaluate(colours), pages.glass().actors[0].model
    side = last.shape[0] / 4
    for site, symbol in enumerate(model.sample(2, seed=3)[0]):
        pixel = last[int((site // 4 + 0.5) * side), int((site % 4 + 0.5) * side)]
        assert pixel.tolist() == palette[int(symbol > 0)]
    rows = np.loadtxt(saved["csv"], delimiter=",", skiprows=1)
    np.testing.assert_array_equal(rows, model.sample(1000, seed=3))
    page.click("#export-python")
    code = text(page, "#python")
    names: dict[str, Any] = {}
    exec(compile(code, "python lines", "exec"), names)
    np.testing.assert_array_equal(names["chain"][-1], model.sample(2, seed=3))


def test_python_lines_repeat_what_is_held(visit: Any) -> None:
    page = visit("#view=ask&clamp=0.1-7.0&seed=2")
    page.click("#export-python")
    names: dict[str, Any] = {}
    exec(compile(text(page, "#python"), "python lines", "exec"), names)
    assert names["rows"].shape == (1000, 16)
    assert (names["rows"][:, [0, 7]] == [1, -1]).all()


# --- the connection ------------------------------------------------------------------------------------------------------------


def test_a_server_that_ends_is_told_and_found_again(visit: Any) -> None:
    first = serve(pages.potts(), token=pages.TOKEN)
    port = int(first.url.split(":")[2].split("/")[0])
    page = visit("#view=ask", url=first.url)
    until(page, MEAN)
    first.stop()
    click_site(page, 0)
    told = "() => document.querySelector('#connection').textContent"
    until(page, told, lambda told: "stopped" in told)
    second = serve(pages.potts(), token=pages.TOKEN, port=port)
    try:
        until(page, told, lambda told: told == "connected")
        until(page, "() => document.querySelector('#ask-progress').value", lambda done: done == 1)
    finally:
        second.stop()


def test_a_closed_tab_stops_its_work(visit: Any) -> None:
    page = serve(pages.glass())
    try:
        tab = visit("#view=watch", url=page.url)
        ask = """() => { for (let k = 0; k < 3; k++) fetch('api/ask', { method: 'POST', body: JSON.stringify({ rows: 32768,
            clamp: { 0: 1, 15: 0 } }) }); }"""
        tab.evaluate(ask)
        end = time.monotonic() + PATIENCE
        while not page.workers.running:
            assert time.monotonic() < end
            tab.wait_for_timeout(20)
        tab.close()
        while page.workers.running:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        page.stop()


def test_hostile_pages_cannot_ask(visit: Any, browser: Any, address: str) -> None:
    """A page of another origin can neither read nor be answered, even if it knows the address."""
    other = serve(pages.potts())
    try:
        page = visit(url=other.url)
        script = """async (url) => { try { return (await fetch(url + 'api/ask', { method: 'POST', body: '{}' })).status; }
            catch (error) { return String(error.name); } }"""
        assert page.evaluate(script, address) == "TypeError"
        context = browser.new_context()
        blank = context.new_page()
        blank.goto("data:text/html,<title>other</title>")
        assert blank.evaluate(script, address) == "TypeError"
        context.close()
    finally:
        other.stop()
    assert json.dumps(page.asked).count(address) <= 1
