"""Ctrl-C and SIGTERM are one and the same, and neither breaks an import off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neurise.deadline import noted_interrupts
from neurise.interrupts import raised_outside_imports

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_both_are_a_keyboard_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), raised_outside_imports():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@SIGNALS
def test_an_import_is_brought_to_its_end_first(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slowly_imported.py").write_text(
        f"import os\nos.kill(os.getpid(), {int(number)})\nfor _ in range(1000):\n    pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def use() -> None:
        import slowly_imported  # type: ignore[import-not-found]

        assert slowly_imported.whole
        signal.pause()  # until the timer asks again

    with pytest.raises(KeyboardInterrupt), raised_outside_imports():
        use()
    assert sys.modules.pop("slowly_imported").whole


def test_what_is_asked_for_inside_holds_outside() -> None:
    with noted_interrupts() as outer:
        with noted_interrupts() as inner:
            os.kill(os.getpid(), signal.SIGINT)
            assert inner.asked
        assert outer.asked
    with noted_interrupts() as later:
        assert not later.asked


@pytest.mark.slow
@SIGNALS
@pytest.mark.parametrize("verb", ["sample", "evaluate"])
def test_a_verb_ends_as_after_ctrl_c(number: signal.Signals, verb: str, tmp_path: Path) -> None:
    """The process sends itself the signal while the verb works."""
    code = f"""
import os, sys, tiny
from neurise.cli import main
from neurise.modeling import model
tiny.model("independent").fit(tiny.spins()).save(sys.argv[1])
genuine = model.Model.sample
def sample(*args, **options):
    os.kill(os.getpid(), {int(number)})
    return genuine(*args, **options)
model.Model.sample = sample
sys.argv = ["neurise", *sys.argv[2:]]
main()
"""
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b,c\n1,-1,1\n-1,-1,1\n1,1,-1\n")
    folder = tmp_path / "model"
    words = ["sample", str(folder)] if verb == "sample" else ["evaluate", str(folder), "--data", str(rows)]
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), *words],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
