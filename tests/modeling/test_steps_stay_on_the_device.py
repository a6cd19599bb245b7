"""A training step is captured on a GPU: it may neither make a tensor from numbers of the host nor read one back.

No GPU is needed to see it: both go through functions that can be watched. The first step may fill caches, as the first steps on a
GPU, which are not captured.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from variants import CASES

import neurise
from neurise import discovery
from neurise.modeling.trained import TrainedModel
from neurise.training import step as training_step

TO_THE_HOST = {torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.cpu, torch.Tensor.__bool__}
TO_THE_HOST |= {torch.Tensor.__float__, torch.Tensor.__int__, torch.Tensor.__index__}
TO_THE_HOST |= {
    torch.nonzero,
    torch.Tensor.nonzero,
    torch.masked_select,
    torch.Tensor.masked_select,
}  # sizes by the data
FROM_THE_HOST = {torch.tensor, torch.as_tensor, torch.from_numpy, torch.scalar_tensor, torch.asarray}
"""Each copies where the device is not the host. (A full or a zero tensor is made on the device itself.)"""


class OnTheDevice(TorchFunctionMode):
    """Refuses what waits for the host."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in TO_THE_HOST:
            raise AssertionError(f"a step reads back: {function.__name__}")
        if function in FROM_THE_HOST and not (args and isinstance(args[0], torch.Tensor)):
            raise AssertionError(f"a step makes a tensor from numbers of the host: {function.__name__}")
        return function(*args, **kwargs)


TRAINED = [
    name for name, (kind, _) in CASES.items() if issubclass(discovery.find("neurise.models", kind), TrainedModel)
]


def fit(name: str, models: int) -> None:
    kind = discovery.find("neurise.models", CASES[name][0])
    quick = {"width": 4, "depth": 1, "training__batch_size": 8}
    settings = {key: value for key, value in quick.items() if key in kind.leaves()} | CASES[name][1]
    X = np.random.default_rng(0).integers(0, 3, (60, 4))
    options = {"max_steps": 3, "device": "cpu", "verbose": False}
    if models == 1:
        kind().set_params(**settings).fit(X, seed=0, **options)
    else:
        neurise.fit_many([kind().set_params(**settings) for _ in range(models)], [X] * models, **options)


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("name", TRAINED)
def test_a_step_neither_reads_from_the_host_nor_back(name: str, models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    own, seen = training_step.Step._step, list[int]()

    def watched(step: Any) -> torch.Tensor:
        seen.append(1)
        if step.state.step == 1:
            return own(step)
        # The optimiser counts its steps on the device where there is a GPU, and on the host elsewhere.
        monkeypatch.setattr(step.state.optimizer, "step", lambda: None)
        with OnTheDevice():
            return own(step)

    monkeypatch.setattr(training_step.Step, "_step", watched)
    fit(name, models)
    assert len(seen) >= 3 or name == "screened pairs"  # which is solved for
