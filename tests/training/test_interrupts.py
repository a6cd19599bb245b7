import os
import signal
import threading

import pytest

from neurise.training.interrupts import Interrupts


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_is_noted_and_the_second_interrupts() -> None:
    with Interrupts() as interrupts:
        assert not interrupts.asked
        ctrl_c()
        assert interrupts.asked
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()


@pytest.mark.parametrize("fails", [False, True])
def test_the_handler_before_is_put_back(fails: bool) -> None:
    def mine(*_: object) -> None: ...

    genuine = signal.signal(signal.SIGINT, mine)
    try:
        try:
            with Interrupts():
                assert signal.getsignal(signal.SIGINT) is not mine
                if fails:
                    raise RuntimeError
        except RuntimeError:
            pass
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, genuine)


def test_in_another_thread_signals_are_left_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with Interrupts() as interrupts:
            seen.append((signal.getsignal(signal.SIGINT), interrupts.asked))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(before, False)]
