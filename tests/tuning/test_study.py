"""Where trials are kept: in a file that survives a crash, or in a real PostgreSQL server."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tuning_cases as cases

from neurise.tuning.search import Search, counts, tune
from neurise.tuning.study import open_storage, without_password


def test_half_a_line_at_the_end_of_a_journal_is_set_aside(tmp_path: Path) -> None:
    journal = tmp_path / "study.journal"
    tune(cases.search(tmp_path, 2), verbose=False)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 5, "wor')
    search = cases.search(tmp_path, 3)
    tune(search, verbose=False)
    assert counts(search.open())["finished"] + counts(search.open())["pruned"] == 3
    assert journal.read_bytes().startswith(whole)
    assert (tmp_path / "study.journal.damaged").read_bytes() == b'{"op_code": 5, "wor'


@pytest.mark.parametrize("content", ["rows, of, something\nelse\n1\n", '{"a": 1}\n{"b": 2}\n'], ids=["text", "json"])
def test_a_file_that_is_no_journal_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    place = tmp_path / "study.journal"
    place.write_text(content)
    with pytest.raises(ValueError, match=r"study\.journal is no journal of a study, or is damaged"):
        cases.search(tmp_path).open()
    assert place.read_text() == content


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder; a study is kept in a file"):
        open_storage(str(tmp_path))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (cases.task("ggm"), "model: 'neurise' there, 'ggm' here"),
        (cases.task(rows=cases.data(190)), "data: '[0-9a-f]+' there, '[0-9a-f]+' here"),
        (cases.task(steps=21), "steps a trial: 20 there, 21 here"),
        (cases.task(keep_prob=0.5), "another search space"),
        (replace(cases.task(), seed=1), "seed: 0 there, 1 here"),
    ],
    ids=["model", "data", "budget", "space", "seed"],
)
def test_a_study_of_something_else_is_refused(tmp_path: Path, other: Any, message: str) -> None:
    cases.search(tmp_path).open()
    with pytest.raises(ValueError, match=f"'test' in .*study.journal was made for something else .*{message}"):
        cases.search(tmp_path, wanted=other).open()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:s3cret@host:5432/db", "postgresql://me@host:5432/db"),
        ("postgresql://me:p%40ss@host/db?password=other", "postgresql://me@host/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("study.journal", "study.journal"),
    ],
)
def test_passwords_are_not_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown


def test_another_kind_of_database_is_refused_without_its_password() -> None:
    with pytest.raises(ValueError, match="mysql://… is not known: give postgresql://") as caught:
        open_storage("mysql://me:s3cret@host/db")
    assert "s3cret" not in str(caught.value)


def test_a_database_that_cannot_be_reached_is_named_without_its_password() -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ConnectionError, match=f"postgresql://me@127.0.0.1:{port}/db cannot be used") as caught:
            open_storage(f"postgresql://me:s3cret@127.0.0.1:{port}/db")
    assert "PGPASSWORD" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None  # --debug shows causes


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a PostgreSQL server that asks for a password, and give its address."""
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.environ["PATH"].split(os.pathsep))]
    binaries = next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)
    if binaries is None:
        pytest.skip("there is no PostgreSQL server on this machine")
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # the server refuses to run as root
    owner: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="neurise-postgres-"))
    try:
        (folder / "password").write_text("s3cret\n")
        for place in (folder, folder / "password"):
            if user is not None:
                os.chown(place, user.pw_uid, user.pw_gid)
        data = folder / "data"
        made = [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "me",
            f"--pwfile={folder / 'password'}",
            "-A",
            "scram-sha-256",
            "-N",
        ]
        subprocess.run(made, check=True, capture_output=True, cwd=folder, **owner)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [
            binaries / "postgres",
            "-D",
            data,
            "-p",
            str(port),
            "-k",
            folder,
            "-F",
            "-c",
            "listen_addresses=127.0.0.1",
        ]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder, **owner)
        try:
            ready = [binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
            while subprocess.run(ready, capture_output=True).returncode != 0:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield f"postgresql://me:s3cret@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGINT)  # do not wait until pooled connections are closed
            process.wait()
    finally:
        shutil.rmtree(folder)


def in_database(server: str, study: str, trials: int, **options: Any) -> Search:
    return Search(cases.task(), server, study, trials, **options)


@pytest.mark.slow
def test_a_search_in_postgresql_goes_on_and_finds_what_a_journal_does(server: str, tmp_path: Path) -> None:
    tune(in_database(server, "one", 2, sampler="random"), verbose=False)
    best = tune(in_database(server, "one", 4, sampler="random", output=tmp_path / "best.json"), verbose=False)
    assert best.score == tune(cases.search(tmp_path, 4, sampler="random"), verbose=False).score
    assert "s3cret" not in (tmp_path / "best.json").read_text()
    assert best.study["storage"] == without_password(server)


@pytest.mark.slow
def test_two_processes_share_a_search(server: str) -> None:
    search = in_database(server, "two", 6)
    tune(search, workers=2, verbose=False)
    assert sum(counts(search.open()).values()) == 6


@pytest.mark.slow
def test_a_wrong_password_is_not_shown(server: str) -> None:
    with pytest.raises(ConnectionError, match="password authentication failed") as caught:
        open_storage(server.replace("s3cret", "guess99"))
    assert "guess99" not in str(caught.value)
