"""One process at a time works in a folder; a lock ends with its process."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lock_holder import held_elsewhere

from neurise.locks import RUN, FolderInUse, running_in, saving_in


def test_two_runs_in_one_folder_are_refused_and_the_error_names_the_other(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as other:
        for enter in (running_in, saving_in):
            with (
                pytest.raises(FolderInUse, match=rf"process {other.pid} on {socket.gethostname()} trains"),
                enter(tmp_path),
            ):
                pass


def test_a_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert (tmp_path / RUN).exists()  # the file is there, and nobody holds it
        with saving_in(tmp_path), running_in(tmp_path):
            pass
    assert not list(tmp_path.iterdir())


def test_a_run_may_save_and_hold_its_folder_again(tmp_path: Path) -> None:
    with running_in(tmp_path), running_in(tmp_path / "."), saving_in(tmp_path):
        assert (tmp_path / RUN).exists()
    assert not list(tmp_path.iterdir())


def test_another_thread_is_another_run_but_may_save(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with saving_in(tmp_path):
                pass
            with running_in(tmp_path):
                pass
        except FolderInUse as error:
            errors.append(error)

    with running_in(tmp_path):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [f"process {os.getpid()} " in str(error) for error in errors] == [True]


def test_a_save_waits_for_another_save(tmp_path: Path) -> None:
    order: list[str] = []

    def work() -> None:
        with saving_in(tmp_path):
            order.append("second")

    with saving_in(tmp_path):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_folders_made_for_the_lock_alone_are_removed(tmp_path: Path) -> None:
    with running_in(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert not list(tmp_path.iterdir())


def test_a_forked_process_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from neurise.locks import running_in\n"
        "with running_in(Path(sys.argv[1])):\n"
        "    if os.fork() == 0: print(os.getpid(), flush=True); time.sleep(60); os._exit(0)\n"
        "    time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())  # the child speaks once it runs, so that its copy of the lock is closed
        parent.kill()
        parent.wait()
        with running_in(tmp_path):
            pass
        os.kill(child, signal.SIGKILL)
