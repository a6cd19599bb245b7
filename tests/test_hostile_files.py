"""Forged files under valid checksums: every field, set to anything, is a ValueError or makes no difference."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from hostile import HOSTILE
from safetensors.torch import save_file

import neurise
from neurise import discovery, presets
from neurise.modeling.model import Model
from neurise.persistence import CONFIG, WEIGHTS, load_folder

X = np.concatenate([tiny.spins(), np.ones((60, 1), dtype=int)], axis=1)  # the last site never varies
Y = np.where(X[:, 0] > 0, "up", "down")
MODELS = discovery.names("neurise.models")
Path_ = tuple[Any, ...]


def sealed(folder: Path, config: dict[str, Any]) -> None:
    """Write a description with the right checksums."""
    config = {key: value for key, value in config.items() if key != "checksum"}
    config["weights_sha256"] = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    config["checksum"] = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    (folder / CONFIG).write_text(json.dumps(config))


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of all values, of objects and lists too; of lists, the first entry stands for all."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))


def changed(config: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(config)
    place = config
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return config


def answers(model: Model) -> list[Any]:
    """What a user would see."""
    found = [model.sample(6, seed=0).tolist(), model.num_parameters_]
    with contextlib.suppress(NotImplementedError):
        found.append(model.score(X[:5], Y[:5]))
    return found


def saved(name: str, folder: Path, members: int = 1) -> Model:
    fit: dict[str, Any] = {"max_steps": 2, "verbose": False} if tiny.is_trained(name) else {}
    params = {"members": members} if name == "neurise" else {}
    model = tiny.model(name, order=[2, 0, 3, 1], **params).fit(X, Y, **fit)
    model.save(folder)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_field_of_a_model(name: str, tmp_path: Path) -> None:
    few = ("nothing", "huge", "not a number", "text", "a list")
    check_fields(name, tmp_path, HOSTILE if name == "neurise" else {kind: HOSTILE[kind] for kind in few})


def test_every_field_of_a_model_that_is_solved(tmp_path: Path) -> None:
    check_fields("memorize", tmp_path, HOSTILE)


def check_fields(name: str, folder: Path, values: dict[str, Any]) -> None:
    expected = saved_answers(name, folder)
    config = load_folder(folder).config
    wrong = []
    for path in leaves(config):
        if not path or path[0] in ("format", "weights_sha256", "checksum"):
            continue
        for kind, value in values.items():
            if is_allowed(path, value, config):
                continue
            sealed(folder, changed(config, path, value))
            try:
                same = answers(neurise.load(folder)) == expected
                if not same:
                    wrong.append((path, kind, "loads, and answers otherwise"))
            except ValueError as error:
                if str(folder) not in str(error):
                    wrong.append((path, kind, f"does not name the file: {error}"))
            except Exception as error:
                wrong.append((path, kind, repr(error)))
    assert not wrong, "\n".join(map(str, wrong))


def saved_answers(name: str, folder: Path) -> list[Any]:
    return answers(saved(name, folder, members=2))


def is_allowed(path: Path_, value: Any, config: dict[str, Any]) -> bool:
    """Whether a value is as good as the one that is there: it belongs to another model that could have been saved."""
    own: Any = config
    for key in path:
        own = own[key]
    if own == value:
        return True
    if path[:-1] in (
        ("schema", "alphabet", "codes"),
        ("schema", "labels", "classes"),
    ):  # other names of the same things
        return type(own) is type(value) and value not in (10**18, 10**30)
    return path[0] == "params" and len(path) == 2 and is_number(own) and is_number(value)


def is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 <= value < 10)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("neurise", "memorize", "independent"):
        saved(name, folder / name)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "copies")


WRONG_FIELDS: dict[str, tuple[Path_, Any, str]] = {
    "an order that names a site twice": (("schema", "order"), [0, 0, 1, 2], r"schema\.order must be each of the sites"),
    "an order of other sites": (
        ("schema", "order"),
        [0, 1, 2, 4],
        r"schema\.order\[3\] must be a whole number from 0 to 3",
    ),
    "an order that was not asked for": (
        ("schema", "order"),
        [3, 2, 1, 0],
        r"params\.order must be the order of the schema",
    ),
    "a constant that is no token": (("schema", "constant"), [-1, -1, 7, -1], r"schema\.constant\[2\] must be"),
    "too few constants": (("schema", "constant"), [-1, -1], r"schema\.constant must be a list of 4"),
    "constants without known sites": (("schema", "constant"), [-1] * 4, r"schema\.constant names 0 sites"),
    "a symbol twice": (("schema", "alphabet", "codes"), [1, 1], r"schema\.alphabet\.codes must be different"),
    "symbols that the type lacks": (("schema", "alphabet", "codes"), [-1, 300], r"schema\.alphabet\.dtype must be"),
    "a type of objects": (("schema", "alphabet", "dtype"), "O", r"schema\.alphabet\.dtype must be a type"),
    "more states": (("schema", "states"), 3, r"schema\.alphabet\.codes must be a list of 3"),
    "frequencies that sum to 2": (("schema", "labels", "frequencies"), [1, 1], r"schema\.labels\.frequencies must be"),
    "a type of labels that fills memory": (
        ("schema", "labels", "dtype"),
        "<U999999999",
        r"schema\.labels\.dtype must be",
    ),
    "a billion layers": (("params", "depth"), 10**9, r"params\.depth must be a whole number from 0 to 1000"),
    "a billion members": (("params", "members"), 10**9, r"params\.members must be a whole number"),
    "steps that go back": (("history",), [{"step": 2, "seconds": 0}, {"step": 1, "seconds": 0}], r"history\[1\]\.step"),
}


@pytest.mark.parametrize(("path", "value", "message"), WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_the_error_names_file_and_field(folder: Path, path: Path_, value: Any, message: str) -> None:
    config = changed(load_folder(folder / "neurise").config, path, value)
    if path[-1] == "codes" and 300 in value:
        config = changed(config, ("schema", "alphabet", "dtype"), "<i1")
    sealed(folder / "neurise", config)
    with pytest.raises(ValueError, match=message) as refused:
        neurise.load(folder / "neurise")
    assert str(folder / "neurise") in str(refused.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["neurise", "independent", "memorize"])
def test_weights_that_are_no_finite_numbers_are_refused(folder: Path, name: str, value: float) -> None:
    config, tensors = load_folder(folder / name)
    changes = {key: tensor.clone() for key, tensor in tensors.items()}
    place = next(key for key, tensor in changes.items() if tensor.is_floating_point() and tensor.numel())
    changes[place].view(-1)[-1] = value
    save_file(changes, folder / name / WEIGHTS)
    sealed(folder / name, config)
    with pytest.raises(ValueError, match=rf"the tensor {place} holds -?{abs(value)}"):
        neurise.load(folder / name)


WRONG_TABLES: dict[str, tuple[str, str, Any, str]] = {
    "tokens beyond the states": ("memorize", "rows", lambda table: table + 7, "rows must hold tokens below 2"),
    "classes beyond the labels": (
        "memorize",
        "classes",
        lambda table: table + 9,
        "classes must hold numbers from 0 to 1",
    ),
    "rows of another length": ("memorize", "rows", lambda table: table[:, :2].contiguous(), "rows has the shape"),
    "masses that are negative": ("memorize", "masses", lambda table: -table, "masses must hold positive numbers"),
    "no probabilities": ("independent", "marginals", lambda table: table * 2, "marginals must hold probabilities"),
    "another type": ("independent", "marginals", lambda table: table.float(), "marginals must be torch.float64"),
}


@pytest.mark.parametrize(("name", "table", "change", "message"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_tables_that_no_data_could_have_given(folder: Path, name: str, table: str, change: Any, message: str) -> None:
    config, tensors = load_folder(folder / name)
    save_file({**tensors, table: change(tensors[table])}, folder / name / WEIGHTS)
    sealed(folder / name, config)
    with pytest.raises(ValueError, match=f"the tensor {message}"):
        neurise.load(folder / name)


def test_weights_of_another_type_are_refused(folder: Path) -> None:
    config, tensors = load_folder(folder / "neurise")
    save_file({name: tensor.double() for name, tensor in tensors.items()}, folder / "neurise" / WEIGHTS)
    sealed(folder / "neurise", config)
    with pytest.raises(ValueError, match=r"holds torch\.float64, and torch\.float32 was expected"):
        neurise.load(folder / "neurise")


@pytest.mark.parametrize("levels", [200, 100_000])
def test_deep_json(tmp_path: Path, folder: Path, levels: int) -> None:
    deep = "[" * levels + "]" * levels
    (folder / "neurise" / CONFIG).write_text(f'{{"format": 2, "learnt": {deep}}}')
    (tmp_path / "deep.json").write_text(f'{{"format": 1, "model": "neurise", "params": {deep}}}')
    for read, place in ((neurise.load, folder / "neurise"), (presets.read, tmp_path / "deep.json")):
        with pytest.raises(ValueError, match=rf"{place}.*nested more than 100 levels"):
            read(place)


@pytest.mark.parametrize("field", ["format", "model", "params", "score", "study", "neurise"])
@pytest.mark.parametrize("value", [value for value in HOSTILE.values() if value is not None], ids=repr)
def test_every_field_of_a_configuration(tmp_path: Path, field: str, value: Any) -> None:
    path = tmp_path / "best.json"
    fields = {"format": 1, "model": "neurise", "params": {}, "score": 1.0, "study": {}, "neurise": "0.2", field: value}
    path.write_text(json.dumps(fields))
    numbers = (int, float)
    if (field == "score" and type(value) in numbers and abs(value) < np.inf) or (
        (field, type(value)) in (("neurise", str), ("study", dict))
    ):
        presets.read(path)
        return
    with pytest.raises(ValueError, match=r"best\.json|unknown model"):
        presets.read(path)
