"""The density-estimation benchmarks: real ones where they are at hand, and small ones written here."""

import hashlib
import importlib
from pathlib import Path

import numpy as np
import pytest
from local_web import Site, serving
from real_data import real_file

from neurise.datasets._bits import check_bits, read_bits
from neurise.datasets._debd_checksums import CHECKSUMS
from neurise.datasets.debd import SITES, debd

RNG = np.random.default_rng(0)
ROWS = {split: RNG.integers(2, size=(n, 16), dtype=np.uint8) for split, n in (("train", 9), ("valid", 4), ("test", 5))}


def text(rows: np.ndarray, *, separator: str = ",", ending: str = "\n") -> bytes:
    return "".join(separator.join(map(str, row)) + ending for row in rows.tolist()).encode()


def git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def same(data: object) -> bool:
    found = (data.train, data.validation, data.test)  # type: ignore[attr-defined]
    return all(part.dtype == np.uint8 and (part == rows).all() for part, rows in zip(found, ROWS.values(), strict=True))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("nltcs", (16181, 2157, 3236)),
        ("plants", (17412, 2321, 3482)),
        ("jester", (9000, 1000, 4116)),
        ("accidents", (12758, 1700, 2551)),
        ("mushrooms", (2000, 500, 5624)),
        ("dna", (1600, 400, 1186)),
    ],
)
def test_the_real_sets_have_their_published_sizes(name: str, rows: tuple[int, int, int]) -> None:
    real_file(f"debd/{name}.npz")
    data = debd(name)
    assert (len(data.train), len(data.validation), len(data.test)) == rows
    assert data.train.shape[1] == data.space.sites == SITES[name]
    assert data.symbols.tolist() == [0, 1]


def test_the_real_rows_are_those_of_the_original_file() -> None:
    """SHA-256 of the published nltcs.train.data, against the rows written in its format."""
    content = text(np.load(real_file("debd/nltcs.npz"), allow_pickle=False)["train"])
    assert hashlib.sha256(content).hexdigest() == "e547a7aedad1dd2f7177030881ab1b92c7e24ae5464c71a0f1f89daecaf52b30"


def test_every_file_of_the_collection_has_a_checksum() -> None:
    """Those of the real rows, written as the collection writes them, are the ones that are kept."""
    assert CHECKSUMS.keys() == SITES.keys()
    assert len({name for names in CHECKSUMS.values() for name in names}) == 3 * len(SITES)
    real = np.load(real_file("debd/nltcs.npz"), allow_pickle=False)
    assert tuple(git_name(text(real[split])) for split in ROWS) == CHECKSUMS["nltcs"]


def test_both_forms_are_read_from_a_folder(tmp_path: Path) -> None:
    for split, rows in ROWS.items():
        (tmp_path / f"nltcs.{split}.data").write_bytes(text(rows))
    assert same(debd("nltcs", folder=tmp_path))
    (tmp_path / "packed").mkdir()
    np.savez(tmp_path / "packed" / "nltcs.npz", **ROWS)
    assert same(debd("nltcs", folder=tmp_path / "packed"))


def test_it_is_downloaded_once_and_compared_with_its_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEURISE_DATA", raising=False)
    monkeypatch.setenv("NEURISE_CACHE", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    served = {f"/right/nltcs/nltcs.{split}.data": text(rows) for split, rows in ROWS.items()}
    # Rows of the right size in which a single bit is another one.
    served |= {
        f"/wrong/nltcs/nltcs.{split}.data": text(rows ^ (np.arange(rows.size) == 7).reshape(rows.shape))
        for split, rows in ROWS.items()
    }
    monkeypatch.setitem(CHECKSUMS, "nltcs", tuple(git_name(text(rows)) for rows in ROWS.values()))
    with serving(Site(served)) as site:
        module = importlib.import_module("neurise.datasets.debd")
        monkeypatch.setattr(module, "MIRRORS", [f"{site.address}/wrong", f"{site.address}/right"])
        assert same(debd("nltcs"))
        assert same(debd("nltcs"))
        # A set of another size under the right name is not taken for it.
        served["/wrong/msnbc/msnbc.train.data"] = text(ROWS["train"])
        with pytest.raises(ValueError, match=r"cannot download msnbc\.train\.data: .* git:db2f5c53.* was expected"):
            debd("msnbc")
    assert {path.name for path in (tmp_path / "debd").iterdir()} == {
        ".lock",
        *(f"nltcs.{split}.data" for split in ROWS),
    }


@pytest.mark.parametrize(("separator", "ending"), [(",", "\n"), (" ", " \n"), ("", "\n"), (", ", "\r\n")])
def test_text_of_bits_is_read_whatever_stands_between(tmp_path: Path, separator: str, ending: str) -> None:
    path = tmp_path / "a"
    content = text(ROWS["train"], separator=separator, ending=ending)
    for variant in (content, content + b"\n\n", content.rstrip()):
        path.write_bytes(variant)
        np.testing.assert_array_equal(read_bits(path), ROWS["train"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0,1\n1,0\n1,2\n", "has '2' in line 3; only 0 and 1 are allowed"),
        (b"0,1\n1\n1,0\n", "has 1 columns in line 2 and 2 in line 1"),
        (b"0,1\n1,0\n1,0,1\n", "has 3 columns in line 3 and 2 in line 1"),
        (b"0,1\n\n1,0\n", "has 0 columns in line 2 and 2 in line 1"),
        (b"", "has nothing in line 1"),
        (b"<html>\n", "has '<' in line 1"),
    ],
)
def test_the_first_bad_line_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "rows.data"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"rows.data {message}"):
        read_bits(path)


def test_wrong_arrays_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x has 3 in row 1, column 0; it must be 0 or 1"):
        check_bits(np.array([[0, 1], [3, 1]]), "x")
    with pytest.raises(ValueError, match=r"x must be rows and columns of 0 and 1; its shape is \(3,\)"):
        check_bits(np.zeros(3), "x")
    np.savez(tmp_path / "nltcs.npz", train=ROWS["train"], test=ROWS["test"])
    with pytest.raises(ValueError, match=r"nltcs\.npz has no array 'valid', only train, test"):
        debd("nltcs", folder=tmp_path)
    np.savez(tmp_path / "nltcs.npz", **{split: rows[:, 1:] for split, rows in ROWS.items()})
    with pytest.raises(ValueError, match=r"nltcs\.npz: train has 15 columns, and 16 were expected"):
        debd("nltcs", folder=tmp_path)
    whole = (tmp_path / "nltcs.npz").read_bytes()
    for content in (whole[:-40], b"PK\x03\x04", b"", b"no archive"):
        (tmp_path / "nltcs.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"nltcs\.npz is damaged, cut short or no \.npz file"):
            debd("nltcs", folder=tmp_path)
    np.savez(tmp_path / "nltcs.npz", train=np.array([object()]), valid=1, test=1)
    with pytest.raises(ValueError, match="holds Python objects, which are never read"):
        debd("nltcs", folder=tmp_path)


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(ValueError, match="unknown benchmark 'nltc'; did you mean nltcs"):
        debd("nltc")
    with pytest.raises(ValueError, match="unknown benchmark 'zzzz'; there are: nltcs, msnbc"):
        debd("zzzz")
