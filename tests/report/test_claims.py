"""Claims are decided by differences on the same cells, and by rows of the code that there is."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_rows
from typer.testing import CliRunner

from neurise import experiments
from neurise.cli import app
from neurise.experiments import store
from neurise.experiments._code import version
from neurise.report.claims import CLAIMS, CONFIRMED, OPEN, REFUTED, markdown, verdicts

SHIFT = {"neurise_paper": 0.0, "ggm": 0.3, "sedd": 0.2, "d3pm": 0.1, "dfm": 0.1, "real": -0.1}


def rows(tv: dict[str, float], *, noise: float = 0.01, current: bool = True) -> list[store.Row]:
    one = experiments.find("ising_curves")
    made = report_rows.rows("ising_curves", "paper", trials=1, methods=list(tv))
    kept = [row for row in made if row["parameters"]["rows"] in (100, 1000) and row["seed"] < 3]
    for place, row in enumerate(kept):
        method = row["parameters"]["method"]
        wobble = noise * ((place * 7919) % 11 - 5)
        row["metrics"] |= {"tv": 0.5 + tv[method] + wobble, "correlation": 0.5 - tv[method] + wobble}
        row["code"] = version(one, method) if current else row["code"]
    return kept


def found(made: list[store.Row]) -> dict[str, str]:
    return {claim.metric: word for claim, word, _ in verdicts(made) if claim.experiment == "ising_curves"}


def test_what_is_better_on_the_same_cells_is_confirmed_and_what_is_worse_refuted() -> None:
    peers = {name: shift for name, shift in SHIFT.items() if name != "real"}
    decided = {one.claim.text: one.word for one in verdicts(rows(peers))}
    assert decided[CLAIMS[0].text] == CONFIRMED  # total variation
    assert decided[CLAIMS[1].text] == REFUTED  # correlations were made the other way round
    assert set(list(decided.values())[2:]) == {OPEN}


@pytest.mark.parametrize("kind", ["noise", "missing", "older"])
def test_what_rows_do_not_tell_is_open(kind: str) -> None:
    peers = {
        name: shift for name, shift in SHIFT.items() if name != "real" and not (kind == "missing" and name == "dfm")
    }
    made = rows(peers, noise=5.0 if kind == "noise" else 0.01, current=kind != "older")
    (verdict,) = [one for one in verdicts(made) if one.claim is CLAIMS[0]]
    assert verdict.word == OPEN
    reason = {
        "noise": "not told apart",
        "missing": "too few cells to compare with DFM",
        "older": "no rows of paper scale",
    }
    assert reason[kind] in verdict.reason


def test_the_page_has_every_claim_with_a_link_to_its_rows(tmp_path: Path) -> None:
    results = report_rows.write(tmp_path / "r.jsonl", rows({"neurise_paper": 0.0, "ggm": 0.1}))
    done = CliRunner().invoke(app, ["experiment", "claims", str(results), "-o", str(tmp_path / "claims.md")])
    assert done.exit_code == 0, done.stderr
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert text.count("\n| ") == len(CLAIMS) + 1
    assert "(paper.html#ising_curves-paper)" in text
    assert all(claim.text in text for claim in CLAIMS)
    assert markdown(verdicts([]), "p.html").startswith("# Claims of the paper\n\n0 confirmed, 0 refuted")


def test_claims_name_what_there_is() -> None:
    for claim in CLAIMS:
        if not claim.experiment:
            assert claim.why
            continue
        one = experiments.find(claim.experiment)
        for chosen in (claim.one, claim.where, *claim.others):
            if "noise" in chosen:
                assert chosen["noise"] in one.scales["paper"].axes["noise"]
            if "method" in chosen:
                assert chosen["method"] in {**one.methods, **one.more_methods}
            if "network" in chosen:
                assert chosen["network"] in one.scales["paper"].axes["network"]
