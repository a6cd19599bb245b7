"""The skeleton files of CONTRIBUTING.md work as they stand there, as files of another package."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import neurise
from neurise import discovery, exact
from neurise.experiments.base import Cell

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = re.findall(r"### An? [\w ]+: `(\w+)/(\w+)\.py`\n\n```python\n(.*?)```", PAGE, flags=re.DOTALL)
X = np.random.default_rng(0).integers(0, 3, (60, 4))


@pytest.fixture(autouse=True, scope="module")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("skeletons")
    package, points = folder / "skeletons", dict[str, list[str]]()
    package.mkdir()
    (package / "__init__.py").touch()
    for kind, name, code in FILES:
        (package / f"{name}.py").write_text(code, encoding="utf-8")
        points.setdefault(kind, []).append(f"{name} = skeletons.{name}")
    info = folder / "skeletons-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: skeletons\nVersion: 1\n")
    groups = [f"[neurise.{kind}]\n" + "\n".join(lines) for kind, lines in points.items()]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    sys.path.insert(0, str(folder))
    _forget()
    yield
    sys.path.remove(str(folder))
    _forget()


def _forget() -> None:
    discovery.names.cache_clear()
    discovery.found.cache_clear()


def test_there_is_one_of_each_kind() -> None:
    kinds = [kind for kind, _, _ in FILES]
    assert kinds == ["networks", "models", "noise", "datasets", "metrics", "experiments"]


def test_the_network_and_the_noise_learn_and_sample() -> None:
    settings = {"width": 8, "steps": 10, "architecture__pairwise": False, "training__batch_size": 32}
    for change in ({"network": "two_layers"}, {"chain__kind": "lazy_round_robin", "keep_prob": 0.2}):
        model = neurise.NeurISE(members=2).set_params(**settings, **change).fit(X, verbose=False, device="cpu")
        assert set(np.unique(model.sample(20, seed=0))) <= {0, 1, 2}
        assert float(exact.law(model).sum()) == pytest.approx(1)


def test_the_model_is_the_uniform_law() -> None:
    model = discovery.find("neurise.models", "uniform_law")().fit(X)
    np.testing.assert_allclose(model.log_prob(X), -4 * np.log(3))
    assert model.sample(5, seed=0).shape == (5, 4)


def test_the_data_set_the_metric_and_the_experiment_run() -> None:
    data = discovery.find("neurise.datasets", "coin")(3)
    rows = data.sample(100, seed=0)
    assert rows.shape == (100, 3)
    assert discovery.find("neurise.metrics", "mean_difference")(rows, 1 - rows) >= 0
    experiment = discovery.find("neurise.experiments", "coins")()
    found = experiment.run(Cell("coins", "smoke", {"rows": 10}, 0), None)
    assert 0 <= found.metrics["error"] <= 0.5
