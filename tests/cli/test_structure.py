"""``neurise structure``: the library's couplings, as a table, as JSON, as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import neurise
from neurise import structure
from neurise.cli import app
from neurise.models.neurise import NeurISE

LAW = "edwards_anderson:side=2,seed=1,J=0.5"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("structure")
    rows = neurise.datasets.edwards_anderson(side=2, seed=1, J=0.5).sample(500, seed=0)
    np.save(place / "rows.npy", rows)
    np.save(place / "wide.npy", np.resize(rows, (10, 5)))
    np.save(place / "constant.npy", np.insert(rows[:, :3], 1, 1, axis=1))
    fast = {"width": 8, "depth": 1, "steps": 30, "members": 1}
    fast |= {"training__batch_size": 64, "architecture__pairwise": False}
    NeurISE().set_params(**fast).fit(rows, verbose=False).save(place / "hard")
    NeurISE().set_params(**fast).fit(np.load(place / "constant.npy"), verbose=False).save(place / "constant")
    NeurISE().set_params(keep_prob=0.9, **fast).fit(rows, verbose=False).save(place / "soft")
    return place


def test_json_is_what_the_library_says(folder: Path) -> None:
    result = run("structure", folder / "hard", "--data", LAW, "--rows", 300, "--seed", 2, "--json")
    found = json.loads(result.stdout)
    law = neurise.datasets.edwards_anderson(side=2, seed=1, J=0.5)
    expected = structure.recover(neurise.load(folder / "hard"), law.sample(300, seed=2))
    np.testing.assert_allclose(found["couplings"], expected.couplings, rtol=1e-12)
    np.testing.assert_allclose(found["fields"], expected.fields, rtol=1e-12)
    assert found["edges"] == expected.edges.tolist()
    truth = json.loads(json.dumps(structure.compare(expected, law).to_dict()))
    assert found["truth"] == truth


def test_rows_alone_have_no_truth(folder: Path) -> None:
    words = ["structure", folder / "hard", "--data", folder / "rows.npy", "--contexts", 5, "--json"]
    found = json.loads(run(*words).stdout)
    assert found["truth"] is None
    assert found["rows"] == 5


def test_the_table_lists_edges_and_the_picture_is_written(folder: Path) -> None:
    path = folder / "graph.png"
    words = ["structure", folder / "hard", "--data", LAW, "--rows", 300, "--threshold", 0.0, "--figure", path]
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    assert path.read_bytes()[:4] == b"\x89PNG"
    for text in ("edges ", "6 of 6 pairs", "given: strength above 0.000", "area under ROC", "0–1", str(path)):
        assert text in result.stdout
    again = run(*words)
    assert again.exit_code == 1
    assert "--force" in again.stderr
    assert run(*words, "--force").exit_code == 0


def test_a_constant_site_is_named(folder: Path) -> None:
    result = run("structure", folder / "constant", "--data", folder / "constant.npy")
    assert "sites 1 never vary" in result.stdout


def test_soft_noise_needs_a_cycle(folder: Path) -> None:
    words = ["structure", folder / "soft", "--data", folder / "rows.npy"]
    refused = run(*words)
    assert refused.exit_code == 1
    assert "cycle=0" in refused.stderr
    assert run(*words, "--cycle", 0).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nowhere.npy"], "there is no file nowhere.npy"),
        (["--data", "{folder}/wide.npy"], "the model has 4 sites; in wide.npy there are 5"),
        (["--data", "{folder}/rows.npy", "--threshold", "-1"], "threshold must be a number"),
    ],
    ids=["no file", "sites", "threshold"],
)
def test_mistakes(folder: Path, words: list[str], message: str) -> None:
    result = run("structure", folder / "hard", *(word.format(folder=folder) for word in words))
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


# --- contacts ------------------------------------------------------------------------------------------------------


def test_contacts_are_ranked_written_and_drawn(folder: Path, tmp_path: Path) -> None:
    path, figure = tmp_path / "contacts.csv", tmp_path / "map.png"
    words = ["structure", folder / "hard", "--data", folder / "rows.npy", "--contacts"]
    result = run(*words, "-o", path, "--figure", figure)
    assert result.exit_code == 0, result.output
    known = structure.recover(neurise.load(folder / "hard"), np.load(folder / "rows.npy"))
    expected = structure.contacts(known)
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[0] == ["rank", "first", "second", "separation", "corrected", "norm"]
    assert [[int(line[1]), int(line[2])] for line in lines[1:]] == expected.pairs.tolist()
    assert [float(line[4]) for line in lines[1:]] == [expected.scores[i, j] for i, j in expected.pairs.tolist()]
    first, second = expected.pairs[0].tolist()
    assert f"{first}–{second}" in result.stdout
    assert figure.read_bytes()[:4] == b"\x89PNG"
    found = json.loads(run(*words, "--min-separation", 2, "--sites", "0,2-3", "--json").stdout)["contacts"]
    assert sorted(found["pairs"]) == [[0, 2], [0, 3]]


def test_wrong_words_about_contacts(folder: Path, tmp_path: Path) -> None:
    words = ["structure", folder / "hard", "--data", folder / "rows.npy", "--contexts", 2]
    wrong = [
        (["--min-separation", 3], "--min-separation is for --contacts"),
        (["-o", tmp_path / "c.csv"], "--output is for --contacts"),
        (["--contacts", "-o", tmp_path / "c.npy"], "contacts are written to .csv or .tsv"),
        (["--contacts", "--leave-out", "X"], "--leave-out X: the symbols are -1, 1"),
        (["--contacts", "--sites", "1;2"], "'1;2' is neither a site nor a range"),
        (["--contacts", "--sites", "1,9"], "sites must be whole numbers from 0 to 3"),
    ]
    for more, message in wrong:
        result = run(*words, *more)
        assert result.exit_code == 1
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1


# --- layouts, programmed couplings, structures that a model has ready ---------------------------------------------------


def test_programmed_couplings_give_a_temperature(folder: Path, tmp_path: Path) -> None:
    words = ["structure", folder / "hard", "--data", LAW, "--rows", 300]
    table = tmp_path / "told.csv"
    law = neurise.datasets.edwards_anderson(side=2, seed=1, J=0.5)
    told = neurise.datasets.edwards_anderson(side=2, seed=4, J=0.5)
    lines = [f"{i},{j},{J}" for (i, j), J in zip(told.edges.tolist(), told.couplings, strict=True)]
    table.write_text("\n".join(["site,other,J", *lines]), encoding="utf-8")
    name = LAW.replace("seed=1", "seed=4")
    by_name, by_table = (json.loads(run(*words, "--programmed", text, "--json").stdout) for text in (name, table))
    expected = structure.recover(neurise.load(folder / "hard"), law.sample(300, seed=0), programmed=told).temperature
    assert by_name["temperature"] == by_table["temperature"] == json.loads(json.dumps(expected.to_dict()))
    figure = tmp_path / "graph.png"
    shown = run(*words, "--programmed", table, "--layout", "spring", "--figure", figure)
    assert f"slope {expected.slope:.4f}" in shown.stdout
    assert figure.read_bytes()[:4] == b"\x89PNG"


def test_a_structure_that_is_ready_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    words = ["structure", folder / "hard", "--data", folder / "rows.npy"]
    ready = structure.recover(neurise.load(folder / "hard"), np.load(folder / "rows.npy"))
    ready = replace(ready, errors_by="Fisher information", errors=ready.errors / 3, rule="extended BIC")
    monkeypatch.setattr(NeurISE, "structure_", ready, raising=False)
    shown = json.loads(run(*words, "--json").stdout)
    assert (shown["errors_by"], shown["rule"]) == ("Fisher information", "extended BIC")
    np.testing.assert_allclose(shown["errors"], ready.errors)
    asked = json.loads(run(*words, "--threshold", 0.0, "--json").stdout)
    assert (asked["errors_by"], asked["rule"]) == ("counting", "given")
    assert "the model has 4 sites" in run(*words[:3], folder / "wide.npy").stderr


def test_wrong_words_about_layouts_and_programmed_couplings(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("0,1,0.5\n0,1\n", encoding="utf-8")
    (tmp_path / "none.csv").write_text("site,other,J\n", encoding="utf-8")
    (tmp_path / "far.csv").write_text("0,7,0.5\n", encoding="utf-8")
    words = ["structure", folder / "hard", "--data", folder / "rows.npy", "--contexts", 2]
    wrong = [
        (["--layout", "grid"], "--layout is for the graph that --figure draws"),
        (["--layout", "ring", "--figure", tmp_path / "a.png"], "layout must be one of"),
        (["--programmed", tmp_path / "two.csv"], "line 2: '0,1' is no SITE,SITE,J"),
        (["--programmed", tmp_path / "none.csv"], "holds no couplings"),
        (["--programmed", tmp_path / "far.csv"], "programmed has the key (0, 7)"),
        (["--programmed", tmp_path / "lost.csv"], "there is no file"),
        (["--programmed", "hypergraph"], "has no couplings"),
    ]
    for more, message in wrong:
        result = run(*words, *more)
        assert result.exit_code == 1
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
