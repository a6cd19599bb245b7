"""Small models and data that train in a blink, shared by the tests of training, files and models."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise import discovery
from neurise.modeling.model import Model
from neurise.modeling.trained import TrainedModel

SMALL = {"width": 8, "depth": 1, "steps": 30, "timesteps": 8, "sampling_steps": 8, "members": 1}
SMALL |= {"architecture__pairwise": False, "training__batch_size": 64, "training__learning_rate": 2e-3}
"""What makes a model fast, for those parameters that a model has."""


def spins(n: int = 60, sites: int = 3, seed: int = 0) -> np.ndarray:
    """Rows of ±1 in which the second site follows the first nine times in ten."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1, 1], size=(n, sites))
    if sites > 1:
        x[:, 1] = np.where(rng.random(n) < 0.9, x[:, 0], -x[:, 0])
    return x


def model(name: str = "neurise", **params: Any) -> Model:
    """Make an untrained small model by its name; parameters for speed are left out where a model has none such.

    ``params`` are given as ``set_params`` takes them, those in groups as ``group__name``.
    """
    kind = discovery.find("neurise.models", name)
    made: Model = kind()
    return made.set_params(**{key: value for key, value in SMALL.items() if key in kind.leaves()} | params)


def is_trained(name: str) -> bool:
    """Whether a model is trained step by step, and not solved at once."""
    return issubclass(discovery.find("neurise.models", name), TrainedModel)


def weights(fitted: Model) -> dict[str, np.ndarray]:
    return {name: tensor.numpy(force=True) for name, tensor in fitted._tensors().items()}


def same_weights(first: Model, second: Model) -> bool:
    """Whether two fitted models are equal bit for bit."""
    ours, theirs = weights(first), weights(second)
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)
