"""A card says what a model learnt from, how, and how good it is beside a perfect one, in YAML and Markdown that others can read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import neurise
from neurise.cli import app

X = np.random.default_rng(0).integers(0, 2, (300, 5))
OTHERS = np.random.default_rng(1).integers(0, 2, (300, 5))


@pytest.fixture(scope="module")
def model() -> Any:
    return neurise.Independent(alphabet=[0, 1]).fit(X)


def metadata(text: str) -> dict[str, Any]:
    _, front, _ = text.split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(front)
    return found


def test_every_measurement_stands_beside_its_floor(model: Any) -> None:
    evaluation = neurise.evaluate(model, OTHERS, samples=500)
    card = str(model.card(evaluation, title="Coins", licence="MIT", data="throws"))
    found = metadata(card)
    metrics = {entry["type"]: entry for entry in found["model-index"][0]["results"][0]["metrics"]}
    measured = [row for row in evaluation.rows if row.value is not None]
    assert measured
    assert {row.name: row.value for row in measured} == {name: entry["value"] for name, entry in metrics.items()}
    for row in measured:
        floor = "–" if row.floor is None else f"{row.floor:.4g}"
        (line,) = [line for line in card.splitlines() if line.startswith(f"| `{row.name}` |")]
        assert line.split(" | ")[2] == floor
    assert (found["license"], found["library_name"]) == ("mit", "neurise")
    assert "# Coins" in card
    assert "throws" in card
    assert "`alphabet=[0, 1]`" in card


def test_no_text_changes_the_structure(model: Any) -> None:
    evaluation = neurise.evaluate(model, OTHERS, samples=100)
    title = 'evil: "x"\n---\nlicense: gpl | # {}'
    found = metadata(str(model.card(evaluation, title=title, data="a | b\n\n## c")))
    assert found["model-index"][0]["name"] == " ".join(title.split())
    assert "license" not in found


def test_without_measurements_it_says_so(model: Any) -> None:
    card = str(model.card())
    assert "Nothing was measured" in card
    assert "model-index" not in metadata(card)


@pytest.mark.parametrize("licence", ["my own", "mit\nx: y", "-x"])
def test_a_licence_is_an_identifier(model: Any, licence: str) -> None:
    with pytest.raises(ValueError, match="licence must be an identifier"):
        model.card(licence=licence)


def test_the_card_is_saved_beside_the_model(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model", title="Coins")
    assert "# Coins" in (tmp_path / "model" / "README.md").read_text()
    np.testing.assert_array_equal(neurise.load(tmp_path / "model").sample(9, seed=1), model.sample(9, seed=1))


def test_command(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    np.savetxt(tmp_path / "rows.csv", OTHERS, fmt="%d", delimiter=",", header="a,b,c,d,e", comments="")
    asked = ["card", str(tmp_path / "model"), "--data", str(tmp_path / "rows.csv"), "--samples", "200"]
    page = tmp_path / "model" / "README.md"
    done = CliRunner().invoke(app, [*asked, "--license", "cc-by-4.0", "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert metadata(page.read_text())["license"] == "cc-by-4.0"
    again = CliRunner().invoke(app, [*asked, "-o", str(page)])
    assert again.exit_code == 1
    assert "--force" in again.output
    alone = CliRunner().invoke(app, ["card", str(tmp_path / "model"), "--private"])
    assert (alone.exit_code, "--push" in alone.output) == (1, True)
