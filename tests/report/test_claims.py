"""Claims are decided by differences on the same cells, and by rows of the code that there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import report_rows
from typer.testing import CliRunner

from neurise import experiments
from neurise.cli import app
from neurise.experiments import store
from neurise.experiments._code import version
from neurise.report.claims import CLAIMS, markdown, verdicts
from neurise.report.deciding import CONFIRMED, OPEN, REFUTED

SHIFT = {"neurise_paper": 0.0, "ggm": 0.3, "sedd": 0.2, "d3pm": 0.1, "dfm": 0.1, "real": -0.1}


def rows(tv: dict[str, float], *, noise: float = 0.01, current: bool = True) -> list[store.Row]:
    one = experiments.find("ising_curves")
    made = report_rows.rows("ising_curves", "paper", trials=1, methods=list(tv))
    kept = [row for row in made if row["parameters"]["rows"] in (100, 1000) and row["seed"] < 3]
    for place, row in enumerate(kept):
        method = row["parameters"]["method"]
        wobble = noise * ((place * 7919) % 11 - 5)
        row["metrics"] |= {"tv": 0.5 + tv[method] + wobble, "correlation": 0.5 - tv[method] + wobble}
        row["metrics"]["kde"] = -6 - tv[method] + wobble  # higher is better
        row["code"] = version(one, method) if current else row["code"]
    return kept


def found(made: list[store.Row]) -> dict[str, str]:
    return {claim.metric: word for claim, word, _ in verdicts(made) if claim.experiment == "ising_curves"}


def test_what_is_better_on_the_same_cells_is_confirmed_and_what_is_worse_refuted() -> None:
    peers = {name: shift for name, shift in SHIFT.items() if name != "real"}
    decided = {one.claim.text: one.word for one in verdicts(rows(peers))}
    assert decided[CLAIMS[0].text] == CONFIRMED  # total variation
    assert decided[CLAIMS[1].text] == REFUTED  # correlations were made the other way round
    assert decided[CLAIMS[2].text] == CONFIRMED  # kernel density
    assert set(list(decided.values())[3:]) == {OPEN}


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


@pytest.mark.parametrize(("cut", "words"), [("neurise_paper", (CONFIRMED, OPEN)), ("sedd", (OPEN, REFUTED))])
def test_a_training_that_was_cut_short_decides_nothing_against_its_method(cut: str, words: tuple[str, str]) -> None:
    made = rows({name: shift for name, shift in SHIFT.items() if name != "real"})
    for row in made:
        row["budget"] = {"stopped": "steps" if row["parameters"]["method"] == cut else "patience"}
    total, correlation = [one for one in verdicts(made) if one.claim in CLAIMS[:2]]
    assert (total.word, correlation.word) == words  # the paper's form has less total variation, and worse correlations
    (reason,) = [one.reason for one in (total, correlation) if one.word == OPEN]
    assert "30 of 30 runs of" in reason
    assert "still learning when their steps ended" in reason


def test_the_page_has_every_claim_with_a_link_to_its_rows(tmp_path: Path) -> None:
    results = report_rows.write(tmp_path / "r.jsonl", rows({"neurise_paper": 0.0, "ggm": 0.1}))
    done = CliRunner().invoke(app, ["experiment", "claims", str(results), "-o", str(tmp_path / "claims.md")])
    assert done.exit_code == 0, done.stderr
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert text.count("\n| ") == len(CLAIMS) + 1
    assert "(paper.html#ising_curves-paper)" in text
    assert all(claim.text in text for claim in CLAIMS)
    assert markdown(verdicts([]), "p.html").startswith("# Claims of the paper\n\n0 confirmed, 0 refuted")


def test_a_scale_that_there_is_not_writes_no_page(tmp_path: Path) -> None:
    results = report_rows.write(tmp_path / "r.jsonl", rows({"neurise_paper": 0.0, "ggm": 0.1}))
    words = ["experiment", "claims", str(results), "--scale", "lptop", "-o", str(tmp_path / "claims.md")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code != 0
    assert "'lptop'" in done.output + str(done.exception)
    assert not (tmp_path / "claims.md").exists()


def test_claims_name_what_there_is() -> None:
    for claim in CLAIMS:
        one = experiments.find(claim.experiment)
        for chosen in claim.chosen:
            for name, value in chosen.items():
                there = {**one.methods, **one.more_methods} if name == "method" else one.scales["paper"].axes[name]
                assert value in there


def of(name: str, metrics: Callable[[store.Row], dict[str, float | None]], **only: Any) -> list[store.Row]:
    """Rows of paper scale of an experiment whose metrics are made by a formula, by the code that there is."""
    one, kept = experiments.find(name), []
    for row in report_rows.rows(name, "paper", trials=1):
        if all(row["parameters"][key] in values for key, values in only.items()):
            row["metrics"] = metrics(row)
            row["code"] = version(one, row["parameters"]["method"])
            kept.append(row)
    return kept


def decided(made: list[store.Row], name: str) -> dict[str, tuple[str, str]]:
    return {claim.text: (word, reason) for claim, word, reason in verdicts(made) if claim.experiment == name}


@pytest.mark.parametrize(
    ("raw", "log", "word"),
    [
        (range(10), range(0), CONFIRMED),  # all of ten, and none of ten
        (range(10), range(9), OPEN),  # nearly all of them with the layer too
        (range(0), range(0), REFUTED),  # none of either
        (range(1), range(0), REFUTED),  # [0.3 %, 45 %]: most end well
        (range(3), range(0), OPEN),  # [7 %, 65 %] and [0 %, 31 %]
    ],
)
def test_what_is_needed_is_decided_by_the_shares_of_runs_that_fail(raw: range, log: range, word: str) -> None:
    counts: dict[str, int] = {}

    def metrics(row: store.Row) -> dict[str, float | None]:
        method = row["parameters"]["method"]
        counts[method] = counts.get(method, -1) + 1
        fails = counts[method] in (raw if "raw" in method else log)
        return {"diverged": float(fails), "tv": None if fails else 0.3}

    made = of("sedd_scores", metrics, noise=("absorbing",))
    found, reason = next(iter(decided(made, "sedd_scores").values()))
    assert found == word
    assert f"SEDD, raw scores {len(raw)} of 10; SEDD, raw, slower {len(raw)} of 10" in reason
    without = [row for row in made if row["parameters"]["method"] != "sedd_softplus"]
    found, reason = next(iter(decided(without, "sedd_scores").values()))
    assert (found, reason) == (OPEN, "no cells of SEDD, softplus layer")


def test_inputs_are_compared_under_each_noise_and_with_nothing_learnt() -> None:
    shifts = {"sedd": 0.0, "sedd_integers": 0.3, "sedd_spins": 0.1}

    def metrics(row: store.Row) -> dict[str, float | None]:
        given = row["parameters"]
        wobble = 0.01 * ((7919 * given["instance"] + len(given["method"])) % 5)
        shift = shifts.get(given["method"], 0.0) * (1 if given["noise"] == "absorbing" else -1)
        return {"diverged": 0.0, "tv": 0.5 + shift + wobble, "unlearnt_tv": 0.99 + 0.001 * given["instance"]}

    words = [word for word, _ in decided(of("sedd_scores", metrics), "sedd_scores").values()]
    # Nothing fails; numbers are worse under masks and better under uniform noise; and they learn something.
    assert words == [REFUTED, CONFIRMED, CONFIRMED, REFUTED, REFUTED]


def test_the_site_as_a_number_is_compared_with_its_one_hot() -> None:
    shifts = {"one-hot": 0.0, "one number": 0.2, "one-hot, one head per site": -0.1}

    def metrics(row: store.Row) -> dict[str, float | None]:
        return {"tv": 0.5 + shifts[row["parameters"]["site"]] + 0.01 * row["parameters"]["instance"]}

    ((word, reason),) = decided(of("site_input", metrics), "site_input").values()
    assert word == CONFIRMED
    assert "against one number" in reason
    worse = {**shifts, "one number": -0.2}
    shifts.update(worse)
    assert next(iter(decided(of("site_input", metrics), "site_input").values()))[0] == REFUTED
