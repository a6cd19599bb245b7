"""Configurations: what a search wrote is what is read, and every preset that is shipped can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neurise import discovery, presets
from neurise.presets import Configuration


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_makes_a_model_and_says_where_it_comes_from(name: str) -> None:
    preset = presets.load(name)
    model = discovery.find("neurise.models", preset.model)().set_params(**preset.params)
    assert {key: model.get_params()[key] for key in preset.params} == dict(preset.params)
    assert preset.name == name
    assert preset.score is not None
    # A search of one method, or of several at equal cost: either way, a command that anyone can repeat.
    assert preset.study["command"].startswith(("neurise tune ", "neurise experiment tune "))
    assert preset.study["finished"] > 0


def test_there_is_a_preset() -> None:
    assert presets.names()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    made = Configuration("neurise", {"width": 8, "loss": "cross_entropy"}, 1.5, {"data": "x"})
    made.write(tmp_path / "best.json")
    found = presets.load(tmp_path / "best.json")
    assert found == Configuration("neurise", made.params, 1.5, {"data": "x"}, name="best")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "c.json is damaged, cut short or no JSON"),
        ("[]", "must have format, model and params"),
        ({"format": 2, "model": "neurise", "params": {}}, "another format"),
        ({"format": 1, "model": "neurise", "params": {"widht": 3}}, "no parameter 'widht'"),
        ({"format": 1, "model": "neuris", "params": {}}, "did you mean neurise"),
        ({"format": 1, "model": "neurise", "params": {}, "colour": 1}, "unknown entry 'colour'"),
        ({"format": 1, "model": "neurise", "params": 3}, "params must map names to values"),
    ],
    ids=["json", "list", "format", "parameter", "model", "entry", "params"],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError, match=message):
        presets.load(path)


def test_an_unknown_preset_is_refused_with_near_names() -> None:
    known = presets.names()[0]
    with pytest.raises(ValueError, match=f"neither a file nor a preset .*did you mean .*{known}"):
        presets.load(f"{known}x")
    with pytest.raises(FileNotFoundError, match=r"there is no configuration file none\.json"):
        presets.load("none.json")
