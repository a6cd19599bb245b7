"""``python -m faults``: run the fault suite, and print what was tried, what survived and what was lost."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from faults import injection, runs
from faults.plan import SECTIONS, Hall, blind_spots
from faults.trials import NOT_REACHED, Count
from neurise.files import write_text

COLUMNS = (("work", 20), ("executor", 9), ("fault", 29), ("event", 9))
NUMBERS = ("tries", "survived", "lost", "seconds")


def main() -> int:
    """Run the sections that were asked for; the exit code says whether anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], help="what to run; everything without any")
    parser.add_argument("--most", type=int, help="at most so many events of each work and fault, spread evenly")
    parser.add_argument("--json", type=Path, help="file to write the counts to")
    options = parser.parse_args()
    began, counts = time.monotonic(), list[Count]()
    with tempfile.TemporaryDirectory(prefix="neurise-faults-") as name:
        place = Path(name)
        library = injection.library(place)
        if library is None:
            sys.exit("the fault suite needs Linux and a C compiler (cc, gcc or clang)")
        with runs.launcher(library, place) as launcher:
            hall = Hall(launcher, place)
            if blind := blind_spots(hall):
                sys.exit(f"the suite is blind: it finds no loss in {', '.join(blind)}")
            print(_line({**{name: name for name, _ in COLUMNS}, **{name: name for name in NUMBERS}}))
            for section in options.sections or SECTIONS:
                for count in SECTIONS[section](hall, options.most):
                    counts.append(count)
                    print(_line(asdict(count)), *(f"    {loss}" for loss in count.losses), sep="\n", flush=True)
                    if options.json:
                        _keep(counts, options.json)
    killed = [count for count in counts if count.fault.startswith("kill") and count.event != NOT_REACHED]
    for title, some in (("kills", killed), ("all faults", counts)):
        tries, survived, lost = (sum(getattr(count, name) for count in some) for name in NUMBERS[:3])
        print(f"{title}: {tries:,} tries, {survived:,} survived, {lost:,} lost")
    print(f"{time.monotonic() - began:.0f} s")
    return int(any(count.lost for count in counts))


def _keep(counts: list[Count], path: Path) -> None:
    """Write the counts so far: a run that is stopped has not been in vain."""
    rows = [asdict(count) | {"seconds": round(count.seconds, 1)} for count in counts]
    write_text(path, json.dumps(rows, indent=1) + "\n")


def _line(fields: dict[str, object]) -> str:
    texts = [str(fields[name]).ljust(width) for name, width in COLUMNS]
    numbers = [f"{value:.1f}" if isinstance(value := fields[name], float) else str(value) for name in NUMBERS]
    return " ".join([*texts, *(number.rjust(8) for number in numbers)])


if __name__ == "__main__":
    sys.exit(main())
