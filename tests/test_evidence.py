"""The numbers in README and docs are those of the committed files that they name."""

from __future__ import annotations

import json
from pathlib import Path

import evidence
import pytest

PAGES = [evidence.ROOT / "README.md", *sorted((evidence.ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(evidence.ROOT)))
def test_numbers_are_those_of_the_files_they_name(page: Path) -> None:
    found = map(evidence.complaint, evidence.claims(page.read_text(encoding="utf-8")))
    assert [wrong for wrong in found if wrong is not None] == []


def test_some_pages_name_their_files() -> None:
    assert sum(len(list(evidence.claims(page.read_text(encoding="utf-8")))) for page in PAGES) >= 18


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"seed": k, "form": form, "tv": tv} for form in "ab" for k, tv in enumerate([0.1234, 0.2, 0.3])]
    rows += [{"seed": 0, "form": "c", "tv": 0.0000123}, {"seed": 0, "form": "d", "tv": 130_712.0}]
    (tmp_path / "one.json").write_text(json.dumps({"command": "x", "figures": rows}), encoding="utf-8")
    monkeypatch.setattr(evidence, "MEASURED", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("| 0.208 ± 0.09 <!-- one.json where form=a: mean tv, sd tv --> |", None),
        ("**0.21** of 5 rows, and 0.123 <!-- one.json where form=a, seed=0: the tv -->", None),
        ("1.23×10⁻⁵ <!-- one.json where form=c: the tv -->", None),
        ("130,700 rows/s <!-- one.json where form=d: the tv -->", None),
        ("130,000 <!-- one.json where form=d: the tv -->", None),  # of two digits
        ("0.209 <!-- one.json where form=a: mean tv -->", "which is 0.2078"),
        ("1.24×10⁻⁵ <!-- one.json where form=c: the tv -->", "which is 1.23e-05"),
        ("0.12 <!-- one.json where form=c: mean tv -->", "which is of 1 seeds; at least 3"),
        ("0.12 <!-- one.json where form=e: mean tv -->", "has 0 rows where form=e"),
        ("0.12 <!-- one.json where form=a: the tv -->", "has 3 rows where form=a"),
        ("0.12 <!-- two.json: mean tv -->", "there is no such file"),
        ("none <!-- one.json where form=a: mean tv -->", "nothing is said to be"),
    ],
)
def test_a_number_that_is_not_that_of_its_file_is_found(measured: Path, text: str, wrong: str | None) -> None:
    found = [evidence.complaint(claim) for claim in evidence.claims(text)]
    assert found
    if wrong is None:
        assert found == [None] * len(found)
    else:
        assert wrong in str(found[0])
