"""Fuzz every reader for long: ``python tests/fuzz/run.py``, or ``make fuzz``.

Prints a line per reader, and keeps the inputs that showed a fault. ``--engine atheris`` lets coverage choose the inputs
(one process per reader, which ends at the first fault); it needs the extra ``fuzz``, and Linux.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from readers import corpus_of, readers  # noqa: E402
from trial import CAP, Report, attempt, fuzz, place_of  # noqa: E402


def main() -> int:
    everything = readers()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--readers", nargs="+", choices=list(everything), default=list(everything))
    parser.add_argument("--inputs", type=int, default=10**6, help="per reader")
    parser.add_argument("--seconds", type=float, help="per reader, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    parser.add_argument("--keep", type=Path, help="write inputs that show a fault to this folder")
    parser.add_argument("--engine", choices=["mutations", "atheris"], default="mutations")
    asked = parser.parse_args()
    if asked.engine == "atheris":
        return max(guided_apart(name, asked.inputs) for name in asked.readers)
    found, rows = 0, []
    print(f"{'reader':12}{'inputs':>12}{'seconds':>10}{'a second':>10}{'crashes':>9}{'slowest s':>11}{'memory MB':>11}")
    for name in asked.readers:
        report = fuzz(name, everything[name], asked.inputs, asked.seed, asked.seconds)
        rows.append(report.facts())
        rate = report.inputs / max(report.seconds, 1e-9)
        print(
            f"{name:12}{report.inputs:12,}{report.seconds:10.1f}{rate:10,.0f}{len(report.faults):9}"
            f"{report.slowest_seconds:11.3f}{report.most_memory_bytes / 1e6:11.1f}",
            flush=True,
        )
        tell(report, asked.keep)
        found += len(report.faults)
        if asked.json is not None:
            described = {"seed": asked.seed, "cap_bytes": CAP, "python": platform.python_version(), "readers": rows}
            asked.json.write_text(json.dumps(described, indent=1) + "\n")
    return int(found > 0)


def tell(report: Report, keep: Path | None) -> None:
    for number, (fault, data) in enumerate(report.faults.items()):
        print(f"    {fault}: {data[:120]!r}{'…' if len(data) > 120 else ''}", flush=True)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{report.reader}-{number}").write_bytes(data)


def guided_apart(name: str, inputs: int) -> int:
    """Run atheris on one reader: it never comes back, so that it has a process of its own."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import run; run.guided({name!r}, {inputs})"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def guided(name: str, inputs: int) -> None:
    """Let atheris choose inputs by the lines of ours that they reach."""
    import random
    import tempfile

    import atheris

    with atheris.instrument_imports(
        include=["neurise.datasets", "neurise.json_text", "neurise.presets", "neurise.alphabet"]
    ):
        reader = readers()[name]
    good = corpus_of(name, reader)
    report = Report(name)

    with tempfile.TemporaryDirectory() as folder, place_of(name, reader) as path:
        for number, data in enumerate(good):
            (Path(folder) / str(number)).write_bytes(data)

        def one(data: bytes) -> None:
            attempt(reader, path, data, report)
            if report.faults:
                tell(report, None)
                raise RuntimeError(next(iter(report.faults)))

        def change(data: bytes, most: int, seed: int) -> bytes:
            return reader.mutate(random.Random(seed), data, good)[:most]

        words = [sys.argv[0], f"-runs={inputs}", "-max_len=65536", "-rss_limit_mb=4096", folder]
        atheris.Setup(words, one, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
