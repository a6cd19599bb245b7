"""Another process that holds a folder."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = "import sys; from pathlib import Path; from neurise import locks\n" + (
    "with getattr(locks, sys.argv[2])(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
)


@contextmanager
def held_elsewhere(folder: Path, how: str = "running_in") -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a folder until the end of the block."""
    command = [sys.executable, "-c", HOLD, str(folder), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
