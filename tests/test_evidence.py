"""Every measured number of the pages is that of a committed file, and every committed file says where it comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import evidence
import fill_tables
import pytest

from neurise.modeling import sizes

ROOT = evidence.ROOT
PAGES = fill_tables.pages()
CHECKED = [page for page in PAGES if page.parent.name != "results"]
"""Pages of results say themselves which rows they were made of."""
MEASURED = ROOT / "benchmarks/measured"
WITHOUT_ORIGIN = {
    *(
        "debd",
        "faults",
        "forms",
        "fuzz",
        "ising",
        "ising_0.1",
        "published",
        "soak",
        "speed",
        "stored_rows",
        "stretches",
    ),
    *("drift", "play", "surface_4x4_laptop"),
}
"""Files that lack the command, the code or the machine, or have them in another form: the list only gets shorter."""


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def strict(page: Path) -> bool:
    return page.name == "README.md" or page.parent.name == "evidence"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_numbers_are_those_of_the_files_they_name(page: Path) -> None:
    found = map(evidence.complaint, evidence.claims(page.read_text(encoding="utf-8")))
    assert [wrong for wrong in found if wrong is not None] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_tables_are_filled(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert fill_tables.filled(text) == text, "python benchmarks/fill_tables.py fills them"


@pytest.mark.parametrize("page", CHECKED, ids=named)
def test_no_number_looks_measured_and_names_no_file(page: Path) -> None:
    found = sorted(evidence.uncovered(page.read_text(encoding="utf-8"), strict=strict(page)))
    assert not found, "\n".join(f"{named(page)}:{line}: {number}" for line, number in found)


@pytest.mark.parametrize("page", CHECKED, ids=named)
def test_comments_do_not_end_a_paragraph(page: Path) -> None:
    """A comment that opens a line of a paragraph ends it, and what follows is a new one."""
    text = page.read_text(encoding="utf-8")
    split = re.findall(r"^\s*[^\s<|#`:].*\n\s*<!-- .*-->[ \t]*\S.*", text, re.MULTILINE)
    assert not split


def test_files_are_listed_with_the_pages_that_use_them() -> None:
    used: dict[str, set[str]] = {path.name: set() for path in MEASURED.glob("*.json")}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        names = [claim.file for claim in evidence.claims(text)]
        names += [name.strip() for spec in fill_tables.TABLE.finditer(text) for name in _files(spec["spec"])]
        for path in (path for name in names if "/" not in name for path in MEASURED.glob(name)):
            used[path.name].add(named(page))
    listed: dict[str, str] = {}
    for line in (MEASURED / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            names, where = line.split(" | ")[0], line.removesuffix(" |").split(" | ")[-1]
            listed |= dict.fromkeys(re.findall(r"`([^`]+)`", names), where)
    assert sorted(listed) == sorted(used)
    for name, where in listed.items():
        pages = {str((MEASURED / link).resolve().relative_to(ROOT)) for link in re.findall(r"\]\(([^)]+)\)", where)}
        if where.startswith("none: "):
            assert not used[name], f"{name} is on {used[name]}"
        else:
            assert pages == used[name], f"{name}: {where}"


def test_files_say_their_command_code_and_machine() -> None:
    without = set()
    for path in MEASURED.glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not {"command", "code", "machine"} <= set(found):
            without.add(path.stem)
    assert without == WITHOUT_ORIGIN


def test_settings_on_the_page_are_those_of_the_code() -> None:
    text = (ROOT / "docs/evidence/quality.md").read_text(encoding="utf-8")
    for table in (sizes.SIZES, sizes.ON_CPU):
        chosen = [settings for _, settings in table]
        rows = {
            "`width`, `depth`": [f"{one.width}, {one.depth}" for one in chosen],
            "`members`": [str(one.members) for one in chosen],
            "`training__batch_size`": [_plain(one.batch_size) for one in chosen],
            "`training__learning_rate`": [_rate(one.learning_rate) for one in chosen],
            "`steps`": [str(one.steps) for one in chosen],
        }
        lines = ["| " + " | ".join([name, *cells]) + " |" for name, cells in rows.items()]
        assert "\n".join(lines) in text
        assert [limit for limit, _ in table] == [1e5, 1e6, 1e7, float("inf")]
    said = " ".join(text.split())
    assert f"up to {sizes.MOST_COLUMNS} columns" in said
    assert f"up to {fill_tables.shown(sizes.MOST_WORK, '.0e')} rows × sites² × states" in said


def _files(spec: str) -> list[str]:
    return spec.splitlines()[0].partition(" where ")[0].split(",")


def _plain(number: int) -> str:
    return f"{number:,}" if number > 9999 else str(number)


def _rate(number: float) -> str:
    return fill_tables.shown(number, ".0e").removeprefix("1·")


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"seed": k, "form": form, "tv": tv} for form in "ab" for k, tv in enumerate([0.1234, 0.2, 0.3])]
    rows += [{"form": "c", "tv": 0.0000123}, {"form": "d", "tv": 130_712.0}, {"seed": 0, "form": "f", "tv": 0.5}]
    (tmp_path / "one.json").write_text(json.dumps({"command": "x", "figures": rows}), encoding="utf-8")
    monkeypatch.setattr(fill_tables, "MEASURED", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("| 0.208 ± 0.09 <!-- one.json where form=a: mean tv, sd tv --> |", None),
        ("**0.21** of 5 rows, and 0.123 <!-- one.json where form=a, seed=0: the tv -->", None),
        ("0.208\n± 0.09 <!-- one.json where form=a: mean tv, sd tv -->", None),  # of one paragraph
        ("1.23×10⁻⁵ <!-- one.json where form=c: the tv -->", None),
        ("1.23·10⁻⁵ <!-- one.json where form=c: the tv -->", None),
        ("130,700 rows/s <!-- one.json where form=d: the tv -->", None),
        ("130,000 <!-- one.json where form=d: the tv -->", None),  # of two digits
        ("21 % <!-- one.json where form=a: mean tv -->", None),
        ("22 % <!-- one.json where form=a: mean tv -->", "which is 0.2078"),
        ("0.209 <!-- one.json where form=a: mean tv -->", "which is 0.2078"),
        ("1.24×10⁻⁵ <!-- one.json where form=c: the tv -->", "which is 1.23e-05"),
        ("0.5 <!-- one.json where form=f: mean tv -->", "it is of 1 seeds; at least 3"),
        ("0.5 <!-- one.json where form=f: the tv -->", "is that of one seed: name it"),
        ("0.12 <!-- one.json where form=e: mean tv -->", "there are 0 values of 'tv'"),
        ("0.12 <!-- one.json where form=a: the tv -->", "there are 3 values of 'tv'"),
        ("0.12 <!-- one.json where form=a: tv -->", "is no figure"),
        ("0.12 <!-- two.json: mean tv -->", "there is no file two.json"),
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


TABLE = """<!-- table of one.json
the form | mean: {mean tv:.2f} ± {sd tv:.1g} | of seed 0 where seed=0: {the tv:.1%}
the first where form=a
each form where form=b
-->
"""


def test_a_table_is_filled_and_stays(measured: Path) -> None:
    text = TABLE + "| old | 1 |\n|---|---|\n\nbehind"
    filled = fill_tables.filled(text)
    assert "| the form | mean | of seed 0 |" in filled
    assert "| the first | 0.21 ± 0.09 | 12.3 % |" in filled
    assert "| b | 0.21 ± 0.09 | 12.3 % |" in filled
    assert "old" not in filled
    assert filled.endswith("|\n\nbehind")
    assert fill_tables.filled(filled) == filled
    assert not list(evidence.uncovered(filled, strict=True))


def test_a_label_of_a_table_is_no_place_for_a_number(measured: Path) -> None:
    filled = fill_tables.filled(TABLE.replace("the first where", "the first, which reaches 0.37, where"))
    assert [number for _, number in evidence.uncovered(filled, strict=True)] == ["0.37"]


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("form=a", "form=e", "there is nothing in one.json where form=e"),
        ("{mean tv:.2f}", "{mean nll:.2f}", "there are 0 values of 'nll'"),
        ("form=a", "form=f", "it is of 1 seeds"),
        ("one.json", "two.json", "there is no file two.json"),
    ],
)
def test_a_table_that_cannot_be_filled_is_an_error(measured: Path, old: str, new: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=re.escape(wrong)):
        fill_tables.filled(TABLE.replace(old, new))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It reaches 0.37 of it.", ["0.37"]),
        ("It reaches .37 of it.", [".37"]),
        ("It reaches 5.99, 12.13 and 79 nats.", ["12.13", "5.99", "79"]),  # of a list the last has the unit
        ("It is 59 × as fast, or 62 % of it, in 41 s.", ["41", "59", "62"]),
        ("It is 3 ± 1 and 4·10⁻⁸.", ["1", "3", "4·10⁻⁸"]),
        ("It draws 310,000 rows/s.", ["310,000"]),
        ("Of γ = 0.75 and J = ±1.2 with ε = 0, 0.3 or 0.5, 4 × 4 spins ±1, 10⁴ rows.", []),
        ("`0.37` of `tempered_screening(0.75)`, [a link](x.md/0.5) with Python 3.11.", []),
        ("```\n0.37\n```", []),
        ("It is 0.37 <!-- one.json where form=a: mean tv --> of 0.5.", ["0.5"]),
        ("It is 0.37 of 0.5. <!-- not measured 0.5: a limit -->", ["0.37"]),
        ("It is 0.37 of 0.5. <!-- not measured 0.37 0.5: -->", ["0.37", "0.5"]),
        ("<!-- not measured: whatever -->\nIt is 0.37.", ["0.37"]),  # of tables only
        ("| N | 0.5 |\n|---|---|\n| 100 | 7 |", ["0.5", "7"]),
        ("| N | b |\n|---|---|\n| 0.5 | none |", ["0.5"]),
        ("<!-- not measured: settings -->\n| N | b |\n|---|---|\n| 1 | 7 |\n\n| N | b |\n|---|---|\n| 1 | 8 |", ["8"]),
        ("<!-- not measured: -->\n| N | b |\n|---|---|\n| 1 | 7 |", ["7"]),  # no reason is given
    ],
)
def test_a_number_that_names_no_file_is_found(text: str, found: list[str]) -> None:
    assert sorted(number for _, number in evidence.uncovered(text, strict=True)) == found


def test_in_a_guide_a_table_may_count(measured: Path) -> None:
    text = "| N | b |\n|---|---|\n| 1 | 7 states, 8 s |"
    assert [number for _, number in evidence.uncovered(text, strict=False)] == ["8"]
