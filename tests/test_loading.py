"""A model comes back from its files as it was, and files are only ever read."""

import contextlib
import hashlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import persistence
from neurise.modeling.model import Model

WIDER = {"answers": "network_conditionals", "hide_noised": True}
WIDER |= {"network": {"network": "site_mlp", "width": 9, "depth": 1, "heads": "site", "residual": True}}


@pytest.fixture(scope="module")
def fitted() -> Model:
    y = np.where(tiny.spins()[:, 0] > 0, "up", "down")
    return tiny.model(order=[2, 0, 1], alphabet=[-1, 1, 3]).fit(tiny.spins(), y)


@pytest.fixture
def folder(fitted: Model, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


"""A network that the weights do not fit."""


def resealed(folder: Path, **fields: Any) -> None:
    """Change a description as somebody would who knows the format: with the right checksums."""
    path = folder / persistence.CONFIG
    weights = hashlib.sha256((folder / persistence.WEIGHTS).read_bytes()).hexdigest()
    config = json.loads(path.read_text()) | {"weights_sha256": weights} | fields
    del config["checksum"]
    config["checksum"] = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
def test_a_loaded_model_is_the_saved_one(fitted: Model, folder: Path, device: Any) -> None:
    loaded = neurise.load(folder, device=device)
    assert type(loaded) is type(fitted)
    assert np.array_equal(loaded.sample(50, seed=1), fitted.sample(50, seed=1))
    assert np.array_equal(loaded.sample(50, "up", seed=1), fitted.sample(50, "up", seed=1))
    assert loaded.sample(1).dtype == fitted.sample(1).dtype
    assert np.array_equal(loaded.log_prob(tiny.spins()), fitted.log_prob(tiny.spins()))
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.history_, loaded.stopped_) == (fitted.history_, fitted.stopped_)
    assert tiny.same_weights(loaded, fitted)


def test_a_loaded_model_can_be_saved_and_trained_again(folder: Path, fitted: Model, tmp_path: Path) -> None:
    loaded = neurise.load(str(folder))
    loaded.save(str(tmp_path / "again"))
    for name in (persistence.CONFIG, persistence.WEIGHTS):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    y = np.where(tiny.spins()[:, 0] > 0, "up", "down")
    assert tiny.same_weights(loaded.fit(tiny.spins(), y), fitted)


@pytest.mark.parametrize(
    "params",
    [
        {"alphabet": np.array([b"-", b"+"])},
        {"alphabet": b"-+"},
        {"alphabet": "-+", "order": np.array([1, 0])},
        {"order": torch.tensor([1, 0])},
        {"order": range(2)},
        {"keep_prob": np.float64(0.25), "width": np.int64(4)},
    ],
)
def test_parameters_of_any_type_can_be_saved(params: dict[str, Any], tmp_path: Path) -> None:
    X = np.array([[b"+", b"-"], [b"-", b"+"], [b"-", b"-"]])
    model = tiny.model(**params).fit(X, max_steps=1, checkpoint=tmp_path / "run")
    model.save(tmp_path / "model")
    assert np.array_equal(neurise.load(tmp_path / "model").sample(20, seed=0), model.sample(20, seed=0))


@pytest.mark.parametrize("y", [[0, 1, 0], [True, False, True], [0.5, 1.5, 0.5], np.array([b"a", b"b", b"a"])])
def test_labels_of_any_kind_can_be_saved(y: Any, tmp_path: Path) -> None:
    X = [[0, 1], [1, 0], [1, 1]]
    tiny.model().fit(X, y, max_steps=1).save(tmp_path)
    loaded = neurise.load(tmp_path)
    assert loaded.sample(3, y).shape == (3, 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "neurize"}, "unknown model 'neurize'; did you mean neurise"),
        ({"model": "os"}, "unknown model 'os'"),
        ({"model": "base"}, "unknown model 'base'"),
        ({"model": ["neurise"]}, "does not describe"),
        ({"params": {"no_such_parameter": 1}}, "does not describe.*no_such_parameter"),
        ({"learnt": {"conditionals": WIDER}}, "does not describe.*size mismatch"),
        ({"learnt": None}, "does not describe"),
        ({"params": None}, "does not describe"),
        ({"schema": {}}, "does not describe"),
    ],
)
def test_a_description_that_fits_no_model_is_refused(folder: Path, fields: dict[str, Any], message: str) -> None:
    resealed(folder, **fields)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        neurise.load(folder)


def test_the_message_about_a_missing_model_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        neurise.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "device", ["gpu", "cuda:99" if torch.cuda.is_available() else "cuda", 3.5], ids=["unknown", "absent", "no name"]
)
def test_a_device_that_is_not_there_is_not_blamed_on_the_file(folder: Path, device: Any) -> None:
    with pytest.raises(
        ValueError, match=f"device '?{device}'? cannot be used here|device must be a name .*, got {device}"
    ):
        neurise.load(folder, device=device)


class Payload:
    """Unpickled, this makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("sealed", [False, True], ids=["as found", "with right checksums"])
@pytest.mark.parametrize("write", [pickle.dumps, None], ids=["pickle", "torch.save"])
def test_a_pickle_in_the_place_of_the_weights_is_never_run(
    folder: Path, tmp_path: Path, sealed: bool, write: Callable[[Any], bytes] | None
) -> None:
    mark = tmp_path / "it ran"
    weights = folder / persistence.WEIGHTS
    if write is None:
        torch.save(Payload(mark), weights)
    else:
        weights.write_bytes(write(Payload(mark)))
    if sealed:
        resealed(folder)
    with pytest.raises(ValueError, match="damaged"):
        neurise.load(folder)
    assert not mark.exists()


def test_the_payload_would_have_run(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Payload(tmp_path / "it ran")))
    assert (tmp_path / "it ran").exists()


def test_a_description_that_holds_code_is_only_text(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    code = f"__import__('os').mkdir({str(mark)!r})"
    config = json.loads((folder / persistence.CONFIG).read_text())
    for name in config["params"]:
        resealed(folder, params=config["params"] | {name: code})
        with contextlib.suppress(ValueError):
            neurise.load(folder)
        assert not mark.exists()
