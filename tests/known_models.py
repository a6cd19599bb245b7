"""Models whose scores are known exactly, and the law that they are held against."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from neurise.alphabet import Alphabet
from neurise.dataset import Dataset
from neurise.labels import Labels
from neurise.space import Space

SPACE = Space(sites=3, states=4)  # sites != states, so that mixing them up fails
SYMBOLS = np.array([0, 2, 5, 7])
PMF = np.random.default_rng(3).dirichlet(np.full(SPACE.size, 0.5))
FAST = {"width": 8, "depth": 1, "steps": 30, "members": 1}
FAST |= {"training__batch_size": 64, "architecture__pairwise": False}


def draw(pmf: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    place = rng.choice(len(pmf), n, p=pmf)
    return SYMBOLS[SPACE.configurations().numpy()[place]]


def known_law(**fields: Any) -> Dataset:
    return Dataset("known", SPACE, SYMBOLS, law=lambda: PMF, draw=lambda n, rng: draw(PMF, n, rng), **fields)


def rows_only(**fields: Any) -> Dataset:
    return Dataset("rows", SPACE, SYMBOLS, **fields)


class Oracle:
    """A model that knows its own law, and offers no more than a model must."""

    def __init__(self, pmf: np.ndarray, *, labels: Labels | None = None) -> None:
        self.pmf, self.space_ = pmf, SPACE
        self.schema_ = SimpleNamespace(alphabet=Alphabet.of(SYMBOLS[:, None]), labels=labels)

    def sample(self, n: int, y: Any = None, *, seed: int | None = None) -> np.ndarray:
        return draw(self.pmf, n, np.random.default_rng(seed))

    def log_prob(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pmf[SPACE.index(self.schema_.alphabet.encode(X)).numpy()])


class Bounded(Oracle):
    """Knows a lower bound only, with a standard error of 0.3 a row."""

    def log_prob(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        raise NotImplementedError("no likelihood; elbo() gives a bound")

    def elbo(self, X: np.ndarray, y: Any = None, *, seed: int | None = None) -> Any:
        return SimpleNamespace(value=super().log_prob(X) - 1, standard_error=np.full(len(X), 0.3))


class Silent(Bounded):
    def elbo(self, X: np.ndarray, y: Any = None, *, seed: int | None = None) -> Any:
        raise NotImplementedError
