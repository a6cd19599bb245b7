"""Ctrl-C, and the SIGTERM of Slurm, Docker and Kubernetes, end a run between two steps."""

import os
import signal
import threading

import pytest

from neurise.deadline import noted_interrupts

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def send(number: signal.Signals) -> None:
    """Send this process a signal. None but what noted_interrupts, or a test, handles: SIGTERM would end the tests."""
    assert signal.getsignal(number) is not signal.SIG_DFL
    os.kill(os.getpid(), number)


@SIGNALS
def test_the_first_signal_is_noted_and_the_second_interrupts(number: signal.Signals) -> None:
    with noted_interrupts() as interrupts:
        assert not interrupts.asked
        send(number)
        assert interrupts.asked
        with pytest.raises(KeyboardInterrupt):
            send(number)


def test_a_sigterm_after_ctrl_c_is_the_second_signal() -> None:
    with noted_interrupts() as interrupts:
        send(signal.SIGINT)
        assert interrupts.asked
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGTERM)


@SIGNALS
@pytest.mark.parametrize("fails", [False, True])
def test_the_handler_before_is_put_back(number: signal.Signals, fails: bool) -> None:
    def mine(*_: object) -> None: ...

    genuine = signal.signal(number, mine)
    try:
        try:
            with noted_interrupts():
                assert signal.getsignal(number) is not mine
                if fails:
                    raise RuntimeError
        except RuntimeError:
            pass
        assert signal.getsignal(number) is mine
    finally:
        signal.signal(number, genuine)


@SIGNALS
def test_in_another_thread_signals_are_left_alone(number: signal.Signals) -> None:
    before, seen = signal.getsignal(number), []

    def work() -> None:
        with noted_interrupts() as interrupts:
            seen.append((signal.getsignal(number), interrupts.asked))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(before, False)]
