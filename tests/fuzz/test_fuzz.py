"""A short run of the fuzzer, the same every time; ``make fuzz`` is the long one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from mutations import HOSTILE
from readers import corpus_of, readers
from trial import Report, attempt, fuzz, place_of

INPUTS = 300
READERS = readers()
BELIEVED = ("results", "model", "weights", "checkpoint")
OPEN = pytest.mark.xfail(reason="these readers believe some of the values in their files", strict=False)
CELLS = st.sampled_from([*HOSTILE, b"0", b"1", b"-1", b"0", b"1", b"A", b"C", b"12", b"0110"])
LINES = st.lists(st.lists(CELLS, max_size=5), max_size=8)


@pytest.mark.parametrize("name", READERS)
def test_the_corpus_is_read(name: str) -> None:
    """Inputs that are made of good files go deeper than noise does; those of another reader may be refused."""
    reader = READERS[name]
    report = fuzz(name, reader, len(corpus_of(name, reader)))
    assert not report.faults
    assert report.read >= 1


@pytest.mark.parametrize("name", [pytest.param(name, marks=OPEN if name in BELIEVED else ()) for name in READERS])
def test_hostile_files_are_read_or_refused_in_a_sentence(name: str) -> None:
    report = fuzz(name, READERS[name], INPUTS)
    assert not report.faults, "\n".join(f"{fault}: {data[:200]!r}" for fault, data in report.faults.items())


@pytest.mark.parametrize("name", ["csv", "tsv", "histogram", "fasta", "text", "clamp", "bits"])
@settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=LINES, delimiter=st.sampled_from([b",", b"\t", b"", b" "]), end=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_hostile_lines(name: str, lines: list[list[bytes]], delimiter: bytes, end: bytes) -> None:
    report, reader = Report(name), READERS[name]
    with place_of(name, reader) as path:
        attempt(reader, path, end.join(delimiter.join(cells) for cells in lines), report)
    assert not report.faults


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200))
def test_noise(name: str, data: bytes) -> None:
    report, reader = Report(name), READERS[name]
    with place_of(name, reader) as path:
        attempt(reader, path, data, report)
    assert not report.faults


def test_a_fault_is_found(tmp_path: Path) -> None:
    """The trial itself: a reader that fails without a word, and one that does not name its file."""
    good = READERS["csv"]
    for wrong, told in ((KeyError("x"), "KeyError"), (ValueError("wrong"), "names no file: ValueError")):

        def read(path: Path, wrong: Exception = wrong) -> None:
            raise wrong

        report = Report("csv")
        attempt(type(good)(".csv", good.mutate, read), tmp_path / "x.csv", b"", report)
        assert [fault.startswith(told) for fault in report.faults] == [True]
