"""The server itself: its address, what may reach it, a training that is watched, notebooks and the command line."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pytest
import tiny
from typer.testing import CliRunner

import neurise
from neurise.cli import app
from neurise.cli.play import SHIPPED
from neurise.player import references
from neurise.player.feed import TrainingFeed
from neurise.player.layouts import choose
from neurise.player.open import opened, stage_of
from neurise.player.server import serve
from neurise.player.stage import Stage


def get(url: str, **headers: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_page_is_served_to_this_machine_alone_and_ends() -> None:
    page = serve(pages.potts())
    host, port = page.url.split("/")[2].split(":")
    assert host == "127.0.0.1"
    assert get(f"{page.url}api/about")[0] == 200
    assert get(f"http://{host}:{port}/api/about")[0] == 403
    assert get(f"{page.url}api/about", Host="elsewhere.example")[0] == 400
    with pytest.raises(OSError, match="--port 0 takes a free one"):
        serve(pages.potts(), port=int(port))
    page.stop()
    assert not page.thread.is_alive()
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0
    assert serve.__kwdefaults__["host"] == "127.0.0.1"


def test_another_host_is_warned_of_and_wrong_ports_are_refused() -> None:
    with pytest.warns(UserWarning, match="reached from other machines"):
        page = serve(pages.potts(), host="0.0.0.0")
    page.stop()
    for port in (-1, 70_000, "80", True):
        with pytest.raises(ValueError, match="port must be"):
            serve(pages.potts(), port=port)  # type: ignore[arg-type]


def test_notebooks_show_the_page_below_the_cell() -> None:
    X = tiny.spins()
    page = neurise.play(tiny.model().fit(X, max_steps=3), X)
    try:
        assert f'<iframe src="{page.url}"' in page._repr_html_()
        about = get(f"{page.url}api/about")[1]
        assert about["data"] == {"name": "data", "rows": 60}
    finally:
        page.stop()


def test_what_cannot_be_shown_is_refused() -> None:
    fitted = tiny.model().fit(tiny.spins(), max_steps=2)
    with pytest.raises(ValueError, match="not fitted"):
        stage_of(tiny.model())
    with pytest.raises(ValueError, match="not a model"):
        stage_of({"x": 3})
    with pytest.raises(ValueError, match="no model to show"):
        stage_of([])
    with pytest.raises(ValueError, match="same rows"):
        stage_of([fitted, tiny.model().fit(tiny.spins(sites=4), max_steps=2)])
    with pytest.raises(ValueError, match="other labels"):
        stage_of([fitted, tiny.model().fit(tiny.spins(), np.arange(len(tiny.spins())) % 2, max_steps=2)])
    with pytest.raises(ValueError, match="X"):
        stage_of(fitted, np.array([[7, 7, 7]]))
    with pytest.raises(FileNotFoundError, match="the shipped ones are: digits, ghz, glass"):
        opened(["no/such/folder"], None, layout=None)


@pytest.mark.parametrize(
    ("asked", "kind", "size"),
    [(None, "lattice", (4, 4)), ("image", "image", (4, 4)), ("lattice:2x8", "lattice", (2, 8)), ("register", "register", (1, 16)),
     ("sequence", "sequence", (1, 16)), ("table", "table", (1, 16)), ("graph", "graph", (1, 16))],
)  # fmt: skip
def test_layouts_that_are_asked_for(asked: str | None, kind: str, size: tuple[int, int]) -> None:
    stage = pages.glass()
    found = choose(stage.schema, stage.data, None, asked)
    assert (found.kind, found.rows, found.columns) == (kind, *size)


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (np.array(list("ACGT"))[np.arange(40).reshape(10, 4) % 4], "sequence"),
        (np.arange(50).reshape(10, 5) % 2, "register"),
        (np.arange(1690).reshape(10, 169) % 2, "image"),
        (np.array([["f", "x"], ["m", "long"], ["m", "x"]], dtype=object), "table"),
    ],
)
def test_layouts_suit_the_data(X: np.ndarray, kind: str) -> None:
    assert choose(neurise.Independent().fit(X).schema_, None).kind == kind


@pytest.mark.parametrize("asked", ["circle", "lattice:3x3", "lattice:axb", "lattice:0x0"])
def test_wrong_layouts_are_refused(asked: str) -> None:
    stage = pages.glass()
    with pytest.raises(ValueError, match="--layout"):
        choose(stage.schema, stage.data, None, asked)


def test_shipped_models_are_small_whole_and_good() -> None:
    assert set(references.names()) - {"nltcs"} == set(SHIPPED)  # `make models` adds nltcs where its rows are
    total = 0
    for name in SHIPPED:
        files = [file for file in (references.FOLDER / name).rglob("*") if file.is_file()]
        total += sum(file.stat().st_size for file in files)
        card = (references.FOLDER / name / "neurise" / "README.md").read_text(encoding="utf-8")
        assert re.search(r"^license: [\w.-]+$", card, re.MULTILINE)
        assert "| measure | value | floor |" in card
    assert total < 2_000_000  # of the 8 MB that a wheel may have
    digits = opened(["digits"], None, layout=None)
    assert (digits.layout.kind, digits.layout.rows, len(digits.about()["labels"])) == ("image", 28, 10)
    stage = pages.glass()
    law = neurise.exact.law(stage.actors[0].model).numpy()
    assert 0.5 * np.abs(law - stage.truth).sum() < 0.1  # 20,000 rows of the law itself are 0.3 away from it


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models_are_shown_by_their_names(name: str) -> None:
    reference, stage = references.find(name), opened([name], None, layout=None)
    assert stage.title == reference.title
    assert stage.layout.rows * stage.layout.columns == stage.schema.space.sites


def test_a_training_is_shown_while_it_goes_on() -> None:
    data = neurise.datasets.potts(side=2, states=3)
    stage = Stage([], data, "training")
    stage.feed = TrainingFeed(stage)
    assert stage.about()["models"] == []
    told = []

    def callback(step: int, seconds: float, losses: Any, model: Any) -> None:
        stage.feed(step, seconds, losses, model)
        told.append(stage.feed.told(0))

    rows = data.sample(300, seed=0)
    model = tiny.model().fit(rows, max_steps=20, callback=callback)
    stage.feed.end(model)
    assert told[0]["ready"]
    assert len(told[0]["samples"]) == 12
    assert told[-1]["points"][-1]["step"] == 20
    assert np.isfinite(told[-1]["points"][-1]["validation"])
    last = stage.feed.told(len(told[-1]["points"]))
    assert last["points"] == []
    assert last["ended"] == model.stopped_
    assert stage.about()["training"]
    # Looking does not change what is learnt.
    assert tiny.same_weights(model, tiny.model().fit(rows, max_steps=20))


def test_wrong_words_are_answered_in_one_line() -> None:
    for words, message in (
        (["play", "no/such"], "the shipped ones are"),
        (["play", "--layout", "circle", "--no-browser"], "--layout must be one of"),
        (["play", "--data", "no_such_data", "--no-browser"], "no_such_data"),
    ):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 1
        assert message in done.output.replace("\n", " ")
        assert "Traceback" not in done.output
    assert CliRunner().invoke(app, ["play", "--port", "99999999"]).exit_code == 2


@pytest.mark.slow
def test_the_command_line_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "neurise", "play", "potts", "--no-browser", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        told = json.loads("".join(iter(run.stdout.readline, "}\n")) + "}")
        assert told["models"] == ["neurise", "d3pm"]
        assert get(f"{told['url']}api/about")[1]["title"].startswith("a 3 × 3 Potts glass")
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 0
        assert "the page has ended" in run.stderr.read()  # type: ignore[union-attr]


@pytest.mark.slow
def test_training_from_the_command_line_can_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURISE_NO_BROWSER", "1")
    words = ["train", "potts:side=2", "-o", str(tmp_path / "m"), "--width", "8", "--max-steps", "20", "--watch"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "watch the training at http://127.0.0.1:" in done.output
    assert (tmp_path / "m" / "config.json").exists()
