"""Downloads against a real server on this machine that drops connections, cannot resume, or sends the wrong thing."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from local_web import Site, serving

module = importlib.import_module("neurise.datasets._download")
CONTENT = np.random.default_rng(0).bytes(300_000)  # several blocks
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "set" / "data.bin"


def left_in(target: Path) -> set[str]:
    """What a download has left behind, apart from its lock."""
    return {path.name for path in target.parent.iterdir()} - {".lock"}


@pytest.mark.parametrize("checksum", [SHA256, MD5, MD5.upper().replace("MD5", "md5"), None])
def test_a_file_arrives_whole_and_is_asked_for_once(target: Path, checksum: str | None) -> None:
    with serving(Site({"/data.bin": CONTENT})) as site:
        for _ in range(2):
            assert module.download([f"{site.address}/data.bin"], target, checksum=checksum) == target
    assert target.read_bytes() == CONTENT
    assert left_in(target) == {"data.bin"}
    assert len(site.requests) == 1


@pytest.mark.parametrize("drops", [[100_000], [1, 70_000, 200_000]])
def test_a_lost_connection_is_taken_up_where_it_was_lost(target: Path, drops: list[int]) -> None:
    with serving(Site({"/data.bin": CONTENT}, drop_after=list(drops))) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    assert target.read_bytes() == CONTENT
    starts = np.cumsum(drops).tolist()
    assert [wanted for _, wanted in site.requests] == [None, *(f"bytes={start}-" for start in starts)]


def test_an_interrupted_download_goes_on_at_the_next_call(target: Path) -> None:
    target.parent.mkdir(parents=True)
    (target.parent / "data.bin.part").write_bytes(CONTENT[:123_456])
    with serving(Site({"/data.bin": CONTENT})) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    assert site.requests == [("/data.bin", "bytes=123456-")]
    assert target.read_bytes() == CONTENT
    assert left_in(target) == {"data.bin"}


def test_what_was_complete_but_for_its_name_is_not_asked_for_again(target: Path) -> None:
    target.parent.mkdir(parents=True)
    (target.parent / "data.bin.part").write_bytes(CONTENT)
    module.download(["http://127.0.0.1:9/data.bin"], target, checksum=SHA256)
    assert target.read_bytes() == CONTENT


def test_a_server_that_cannot_resume_sends_everything_again(target: Path) -> None:
    with serving(Site({"/data.bin": CONTENT}, ranges=False, drop_after=[50_000])) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    assert target.read_bytes() == CONTENT
    assert len(site.requests) == 2


def test_without_a_checksum_nothing_is_glued_together(target: Path) -> None:
    target.parent.mkdir(parents=True)
    (target.parent / "data.bin.part").write_bytes(b"of another time")
    with serving(Site({"/data.bin": CONTENT}, drop_after=[50_000])) as site:
        module.download([f"{site.address}/data.bin"], target)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in site.requests] == [None, None]


@pytest.mark.parametrize("older", [b"x" * 1000, CONTENT + b"more than the file has"])
def test_a_beginning_of_another_file_is_thrown_away(target: Path, older: bytes) -> None:
    target.parent.mkdir(parents=True)
    (target.parent / "data.bin.part").write_bytes(older)
    with serving(Site({"/data.bin": CONTENT})) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    assert target.read_bytes() == CONTENT
    assert left_in(target) == {"data.bin"}


def test_a_server_that_sends_another_part_is_asked_for_everything(target: Path) -> None:
    with serving(Site({"/data.bin": CONTENT}, shift_ranges=True, drop_after=[50_000])) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in site.requests] == [None, "bytes=50000-", None]


def test_a_wrong_checksum_names_file_and_both_hashes_and_leaves_nothing(target: Path) -> None:
    wrong = b"an error page"
    with serving(Site({"/data.bin": wrong})) as site, pytest.raises(ValueError, match="cannot download") as caught:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    for part in ("data.bin", SHA256, f"sha256:{hashlib.sha256(wrong).hexdigest()}", site.address):
        assert part in str(caught.value)
    assert left_in(target) == set()


def test_content_that_fails_its_check_leaves_nothing(target: Path) -> None:
    def check(path: Path) -> None:
        if path.read_bytes()[:1] == b"<":
            raise ValueError("this is a web page")

    with serving(Site({"/data.bin": b"<html>", "/other/data.bin": CONTENT})) as site:
        with pytest.raises(ValueError, match="this is a web page"):
            module.download([f"{site.address}/data.bin"], target, check=check)
        assert left_in(target) == set()
        module.download([f"{site.address}/data.bin", f"{site.address}/other/data.bin"], target, check=check)
    assert target.read_bytes() == CONTENT


def test_mirrors_are_tried_in_turn(target: Path) -> None:
    files = {"/wrong/data.bin": b"?", "/right/data.bin": CONTENT}
    with serving(Site(files)) as site:
        urls = [f"{site.address}/{place}/data.bin" for place in ("missing", "wrong", "right")]
        module.download(urls, target, checksum=SHA256)
    assert [path for path, _ in site.requests] == ["/missing/data.bin", "/wrong/data.bin", "/right/data.bin"]
    assert target.read_bytes() == CONTENT


def test_a_busy_server_is_tried_again_and_a_missing_file_is_not(target: Path) -> None:
    with serving(Site({"/data.bin": CONTENT}, status=[503, 429])) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
        assert len(site.requests) == 3
        with pytest.raises(OSError, match=r"cannot download none: .*/none: HTTP Error 404"):
            module.download([f"{site.address}/none"], target.with_name("none"), checksum=SHA256)
    assert len(site.requests) == 4
    assert left_in(target) == {"data.bin"}


def test_a_server_that_never_gets_further_is_given_up(target: Path) -> None:
    with serving(Site({"/data.bin": CONTENT}, ranges=False, drop_after=[1000] * 99)) as site:
        with pytest.raises(OSError, match=r"closed after 1,000 of 300,000 bytes"):
            module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
        assert len(site.requests) == 1 + module.TRIES  # the first one got further than nothing
        assert left_in(target) == {"data.bin.part"}  # for the next call
        with pytest.raises(OSError, match=r"closed after 1,000 of 300,000 bytes"):
            module.download([f"{site.address}/data.bin"], target.with_name("other.bin"))
        assert left_in(target) == {"data.bin.part"}


def test_a_file_of_unknown_length(target: Path) -> None:
    with serving(Site({"/data.bin": CONTENT}, length=False)) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    assert target.read_bytes() == CONTENT


def test_a_silent_server_is_given_up(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/data.bin"
        with pytest.raises(OSError, match="timed out"):
            module.download([url], target, checksum=SHA256)
    assert left_in(target) == set()


def test_ctrl_c_leaves_nothing_under_the_final_name(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(bar: object, done: int, fraction: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.Progress, "update", interrupt)
    with serving(Site({"/data.bin": CONTENT})) as site:
        for checksum, left in ((SHA256, {"data.bin.part"}), (None, set())):
            with pytest.raises(KeyboardInterrupt):
                module.download([f"{site.address}/data.bin"], target, checksum=checksum)
            assert left_in(target) == left


# The file alone, without the package: a process that imports torch would take seconds to start.
WORKER = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("download", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.download([sys.argv[2]], pathlib.Path(sys.argv[3]), checksum=sys.argv[4])
"""


def test_several_processes_bring_it_once(target: Path) -> None:
    with serving(Site({"/data.bin": CONTENT}, drop_after=[100_000])) as site:
        arguments = [module.__file__, f"{site.address}/data.bin", str(target), SHA256]
        workers = [subprocess.Popen([sys.executable, "-c", WORKER, *arguments]) for _ in range(3)]
        assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    assert target.read_bytes() == CONTENT
    assert [wanted for _, wanted in site.requests] == [None, "bytes=100000-"]


def test_a_terminal_shows_how_far_it_is(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(step=0.4)
    monkeypatch.setattr("neurise.progress.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    with serving(Site({"/data.bin": CONTENT})) as site:
        module.download([f"{site.address}/data.bin"], target, checksum=SHA256)
    shown = capsys.readouterr().err
    assert f"━━━━━━━━━━━━━━━━━━━━ downloading data.bin  100%  {len(CONTENT):,} bytes" in shown
    assert shown.endswith("\n")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"NEURISE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/neurise"),
        ({}, "/home/someone/.cache/neurise"),
    ],
)
def test_where_the_cache_is(variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEURISE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/someone"))
    assert module.cache_folder() == Path(expected)
