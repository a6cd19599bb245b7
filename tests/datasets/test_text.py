"""Texts as windows of characters."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurise.datasets import files
from neurise.datasets.formats.text import read_windows


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="")
    return path


def joined(rows: np.ndarray) -> list[str]:
    return ["".join(row) for row in rows.tolist()]


@pytest.mark.parametrize(
    ("window", "stride", "expected"),
    [
        (3, None, ["abr", "aca", "dab"]),
        (3, 1, ["abr", "bra", "rac", "aca", "cad", "ada", "dab", "abr", "bra"]),
        (4, 2, ["abra", "raca", "cada", "dabr"]),
        (11, None, ["abracadabra"]),
        (1, 5, ["a", "a", "a"]),
    ],
)
def test_windows(tmp_path: Path, window: int, stride: int | None, expected: list[str]) -> None:
    data = files(text(tmp_path / "x.txt", "abracadabra"), window=window, stride=stride)
    assert joined(data.train) == expected
    assert data.space.sites == window
    assert data.symbols.tolist() == sorted(set("".join(expected)))


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0\r\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=60),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_windows_are_slices(tmp_path_factory: pytest.TempPathFactory, content: str, window: int, stride: int) -> None:
    path = text(tmp_path_factory.mktemp("text") / "x.txt", content)
    expected = [content[s : s + window] for s in range(0, len(content) - window + 1, stride)]
    if expected:
        assert joined(read_windows(path, window, stride)) == expected
    else:
        with pytest.raises(ValueError, match=f"has {len(content)} characters, and a window has {window}"):
            read_windows(path, window, stride)


def test_spaces_are_joined_where_asked(tmp_path: Path) -> None:
    path = text(tmp_path / "x.txt", "  a b\n\n\tc \r\n")
    assert joined(files(path, window=5, join_spaces=True).train) == ["a b c"]
    assert joined(files(path, window=5).train) == ["  a b", "\n\n\tc "]


def test_gzip_and_other_endings(tmp_path: Path) -> None:
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress("häh\n".encode()))
    assert joined(files(tmp_path / "x.txt.gz", window=2).train) == ["hä", "h\n"]
    assert joined(files(text(tmp_path / "x.md", "abcd"), kind="text", window=2).train) == ["ab", "cd"]


def test_a_text_may_begin_like_an_alignment(tmp_path: Path) -> None:
    assert joined(files(text(tmp_path / "x.txt", "> he said"), window=9).train) == ["> he said"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("abc", {}, r"window= says of how many characters; other files end in \.npy, \.npz, \.csv"),
        ("abc", {"window": 4}, "has 3 characters, and a window has 4"),
        ("abc", {"window": 0}, "window must be a positive whole number, got 0"),
        ("abc", {"window": 2, "stride": -1}, "stride must be a positive whole number, got -1"),
        ("ab\nc\0d", {"window": 2}, "line 2, column 2: a zero byte"),
    ],
)
def test_mistakes(tmp_path: Path, content: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        files(text(tmp_path / "x.txt", content), **options)


def test_too_many_characters_are_placed(tmp_path: Path) -> None:
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 258)))
    path = text(tmp_path / "x.txt", f"{letters[:200]}\n{letters[200:]}")
    # 256 characters are 200, the end of the line, and 55 more; the 56th of the second line is one too many.
    with pytest.raises(ValueError, match=f"259 different characters.*{letters[255]}.*line 2, column 56"):
        files(path, window=2)


def test_bytes_that_are_no_text_are_placed(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("abc\nä".encode() + b"\xe4z")
    with pytest.raises(ValueError, match="line 2, column 2: the byte 0xe4"):
        files(tmp_path / "x.txt", window=2)
    (tmp_path / "y.txt.gz").write_bytes(gzip.compress(b"abc" * 1000)[:-9])
    with pytest.raises(ValueError, match="gzip file that is cut short"):
        files(tmp_path / "y.txt.gz", window=2)
