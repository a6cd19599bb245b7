"""Alignments: gaps, insertions, letters that are not known, weights."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import real_file

from neurise.datasets import files
from neurise.datasets.formats import fasta as _fasta
from neurise.datasets.formats.fasta import LETTERS, read_fasta, sequence_weights, write_fasta

PROTEIN = LETTERS["protein"][0]


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


def joined(rows: np.ndarray) -> list[str]:
    return ["".join(row) for row in rows.tolist()]


def brute_force_weights(rows: np.ndarray, theta: float) -> np.ndarray:
    near = [
        sum(1 for other in rows if sum(a == b for a, b in zip(row, other, strict=True)) >= theta * len(row) - 1e-9)
        for row in rows
    ]
    return 1 / np.array(near)


@pytest.mark.parametrize("name", ["x.fasta", "x.fa", "x.faa", "x.FASTA", "x.fasta.gz", "x.csv", "x.txt"])
def test_an_alignment_is_known_by_its_ending_or_its_content(tmp_path: Path, name: str) -> None:
    content = b"\n>one first\nACDEF\r\n-GHiiI\n\n>two\nacACDEFA.CDE\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    data = files(tmp_path / name)
    assert joined(data.train) == ["ACDEF-GHI", "ACDEFACDE"]
    assert data.info["sequences"] == ["one first", "two"]


def test_the_alphabet_has_21_symbols_whatever_occurs(tmp_path: Path) -> None:
    data = files(text(tmp_path / "x.fasta", ">a\nAC\n>b\nCC\n"))
    assert "".join(data.symbols.tolist()) == "-ACDEFGHIKLMNPQRSTVWY"
    assert data.space.states == 21
    assert data.info["sequences"] == ["a", "b"]


def test_insertions_are_dropped_and_unknown_letters_are_gaps(tmp_path: Path) -> None:
    path = text(tmp_path / "x.fasta", ">a\nA.Cxyzde-\n>b\nBJO\n>c\nUXZ\n")
    assert joined(files(path).train) == ["AC-", "---", "---"]


@pytest.mark.parametrize(("alphabet", "symbols"), [("dna", "-ACGT"), ("rna", "-ACGU")])
def test_nucleotides(tmp_path: Path, alphabet: str, symbols: str) -> None:
    path = text(tmp_path / "x.fa", f">a\n{symbols}N\n>b\nACGA-R\n")
    data = files(path, alphabet=alphabet, theta=None)
    assert joined(data.train) == [f"{symbols}-", "ACGA--"]
    assert "".join(data.symbols.tolist()) == symbols
    assert data.weights is None


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            ">a\nACD\n>b\nAC\n",
            {},
            r"line 3: the sequence 'b' has 2 sites without its insertions, and those before have 3",
        ),
        (">a\nACD\n>b\nACDxx\n>c c\nACDE\n", {}, "line 5: the sequence 'c c' has 4 sites"),
        (">a\n>b\nAC\n", {}, "line 1: the sequence 'a' has 0 sites.*one at least"),
        (
            ">a\nAC\n>b\nAC\n\nA*\n",
            {},
            r"line 6, column 2: '\*' in the sequence 'b' is no letter of the alphabet 'protein'",
        ),
        (">a\nA C\n", {}, "line 2, column 2: ' ' in the sequence 'a'"),
        (">a\nACGU\n", {"alphabet": "dna"}, "line 2, column 4: 'U' in the sequence 'a'.*there are: protein, dna, rna"),
        (">a\nAÄ\n", {}, "line 2, column 2: 'Ä'"),
        ("\nACD\n>a\nACD\n", {}, "line 2, column 1: 'ACD'; a sequence begins with >"),
        ("", {}, "has no sequences"),
        (">a\nAC\n", {"alphabet": "latin"}, "alphabet must be one of 'protein', 'dna', 'rna', got 'latin'"),
        (">a\nAC\n", {"theta": 0}, "theta must be above 0 and at most 1, got 0"),
        (">a\nAC\n", {"theta": 80}, "theta must be above 0 and at most 1, got 80"),
    ],
)
def test_mistakes_are_placed(tmp_path: Path, content: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        files(text(tmp_path / "x.fasta", content), **options)


def test_cut_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b">s%d\nACDEF\n" % i for i in range(2000)))
    (tmp_path / "x.fasta.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"x\.fasta\.gz is a gzip file that is cut short"):
        files(tmp_path / "x.fasta.gz")


# --- weights ---------------------------------------------------------------------------------------------------------


def test_weights_by_hand() -> None:
    rows = np.array([list("AAAAA"), list("AAAAC"), list("AAACC"), list("GGGGG"), list("AAAAA")])
    # At 80 % of 5 sites, 4 must agree: 0, 1, 4 with each other, 1 with 2 as well; 3 is alone.
    np.testing.assert_allclose(sequence_weights(rows), [1 / 3, 1 / 4, 1 / 2, 1, 1 / 3])
    np.testing.assert_allclose(sequence_weights(rows, 1.0), [1 / 2, 1, 1, 1, 1 / 2])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 7).flatmap(
        lambda q: st.lists(st.lists(st.sampled_from("-AC"), min_size=q, max_size=q), min_size=1, max_size=25)
    ),
    st.sampled_from([0.2, 0.5, 0.6, 0.8, 1.0]),
    st.sampled_from([1, 10, 64, 2**21]),
)
def test_weights_are_those_of_a_double_loop(rows: list[list[str]], theta: float, block: int) -> None:
    before, _fasta.BLOCK = _fasta.BLOCK, block
    try:
        found = sequence_weights(np.array(rows), theta)
    finally:
        _fasta.BLOCK = before
    np.testing.assert_allclose(found, brute_force_weights(np.array(rows), theta), rtol=1e-12)  # 1 / small whole numbers


def test_weights_of_long_rows() -> None:
    """More sites than a byte counts: 300 agree, and not 300 − 256 = 44."""
    rows = np.full((3, 300), "A")
    rows[2, :100] = "C"
    np.testing.assert_allclose(sequence_weights(rows), [1 / 2, 1 / 2, 1])


def test_the_real_alignment() -> None:
    path = real_file("msa/PF00014_mgap6.fasta.gz")
    data = files(path)
    assert data.train.shape == (13_600, 53)
    assert data.space.states == 21
    assert set(np.unique(data.train)) == set(PROTEIN)
    assert data.info["sequences"][0] == "A0A0V1MAN1_9BILA/990-1042"
    assert joined(data.train[:1]) == ["-CLDELHPGRCSNYVERWYYDRGTKKCRSFQYGGCGGNRNHFYSKENCIFHC-"]
    rows, _, _ = read_fasta(path)
    codes = rows.view(np.uint32)
    for row in (0, 17, 6800, 13_599):  # their neighbours among all others, one by one
        near = ((codes == codes[row]).sum(axis=1) >= 0.8 * 53).sum()
        assert data.weights[row] == pytest.approx(1 / near, rel=1e-12)
    subset = rows[:150]
    effective = sequence_weights(subset).sum()
    assert effective == pytest.approx(brute_force_weights(subset, 0.8).sum(), rel=1e-12)


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([[0, 1]]), "an alignment holds letters"),
        (np.array([["A", "b"]]), "row 0, column 1 is 'b', which is no letter of an alignment"),
        (np.array([["A", "X"]]), "row 0, column 1 is 'X'"),
    ],
)
def test_what_would_not_come_back_is_not_written(rows: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_fasta(io.StringIO(), rows)


def test_small_letters_of_an_alignment_without_insertions_are_residues(tmp_path: Path) -> None:
    """Each row would lose another column, and still have as many as the others."""
    text = ">a\nACdEF\n>b\naCDEF\n>c\nACDeF\n"
    soft, inserted = tmp_path / "soft.fasta", tmp_path / "inserted.a2m"
    for path in (soft, inserted):
        path.write_text(text)
    assert ["".join(row) for row in read_fasta(soft)[0]] == ["ACDEF"] * 3
    assert ["".join(row) for row in read_fasta(inserted)[0]] == ["ACEF", "CDEF", "ACDF"]
    assert ["".join(row) for row in read_fasta(soft, inserts="drop")[0]] == ["ACEF", "CDEF", "ACDF"]
