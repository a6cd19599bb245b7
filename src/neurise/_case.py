"""A model beside the data it is measured against: what several measurements need, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from neurise.alphabet import Alphabet, as_matrix
from neurise.dataset import Dataset
from neurise.models.base import Model
from neurise.space import Space

PMF_LIMIT = 2**26
"""Configurations up to which the law of the data is written out."""
REPEAT_LIMIT = 10**6
"""Observations up to which counted rows are repeated as often as they were seen."""
CHUNK = 2**20
"""Configurations that are translated from one alphabet to another at a time."""


@dataclass(frozen=True)
class Rows:
    """Rows of symbols with the labels and weights that belong to them."""

    X: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    @cached_property
    def masses(self) -> np.ndarray:
        """Weight of each row, 1 where none are given."""
        return np.ones(len(self.X)) if self.weights is None else self.weights.astype(float)

    @cached_property
    def counted(self) -> bool:
        """Whether the weights are counts of equal observations, not importances."""
        return bool((self.masses == np.round(self.masses)).all())

    def mean(self, values: np.ndarray) -> tuple[float, float | None]:
        """Weighted mean of one value a row, and its standard error where there are enough rows for one."""
        present = self.masses > 0
        values, masses = values[present], self.masses[present]
        total = masses.sum()
        mean = float((masses * values).sum() / total)
        seen = total if self.counted else total**2 / (masses**2).sum()
        if not math.isfinite(mean) or seen <= 1:
            return mean, None
        variance = float((masses * (values - mean) ** 2).sum() / total)
        return mean, math.sqrt(variance / (seen - 1))

    def observations(self) -> tuple[np.ndarray, bool]:
        """Write the rows out, each as often as it weighs, and say whether they are independent observations."""
        if self.weights is None:
            return self.X, True
        if self.counted and self.masses.sum() <= REPEAT_LIMIT:
            return np.repeat(self.X, self.masses.astype(np.int64), axis=0), True
        cumulative = self.masses.cumsum()
        levels = (np.arange(REPEAT_LIMIT) + 0.5) / REPEAT_LIMIT * cumulative[-1]
        return self.X[np.searchsorted(cumulative, levels, side="right").clip(max=len(self.X) - 1)], False


class Case:
    """A fitted model, the data, and how many samples of the model to take."""

    def __init__(self, model: Model, data: Dataset, *, samples: int, seed: int, exact: bool | None) -> None:
        self.model, self.data, self.samples, self.seed, self.exact = model, data, samples, seed, exact
        self.model_alphabet = model.schema_.alphabet
        self.data_alphabet = Alphabet.of(data.symbols[:, None], data.symbols.tolist())
        if model.space_.sites != data.space.sites:
            raise ValueError(f"the model has {model.space_.sites} sites; in {data.name} there are {data.space.sites}")
        if len({np.dtype(alphabet.dtype).kind in "US" for alphabet in (self.model_alphabet, self.data_alphabet)}) > 1:
            raise ValueError(
                f"the model's symbols are {self.model_alphabet.symbols.tolist()[:10]}, and those of {data.name} are "
                f"{data.symbols.tolist()[:10]}: letters and numbers cannot be compared"
            )

    @cached_property
    def drawn(self) -> np.ndarray:
        """Samples of the model, (samples, sites)."""
        return as_matrix(self.model.sample(self.samples, seed=self.seed))

    @cached_property
    def rows(self) -> Rows:
        """Rows to compare with: the test rows, else fresh ones of the known law, else those that were learnt from."""
        data = self.data
        if data.test is not None:
            return Rows(data.test, data.test_labels, data.test_weights)
        if data.draw is not None:
            return Rows(self.fresh(1))
        if data.train is not None:
            return Rows(data.train, data.labels, data.weights)
        raise ValueError(f"{data.name} has neither rows nor a law to draw them from")

    def fresh(self, stream: int) -> np.ndarray:
        """Draw rows of the known law, others for each stream.

        The seed is mixed, because the model may have learnt from what ``data.sample`` gives for the seed itself.
        """
        seed = np.random.SeedSequence((self.seed, stream)).generate_state(1, np.uint64)[0]
        return self.data.sample(self.samples, seed=int(seed))

    @cached_property
    def real(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Two independent lots of real observations; the second is None where the data has no two.

        Samples of the model are held against the first; as many rows of the second show what a perfect model scores.
        """
        first, independent = self.rows.observations()
        data, second = self.data, None
        if data.draw is not None:
            second = self.fresh(2)
        elif data.test is not None and data.train is not None:
            second, independent = Rows(data.train, None, data.weights).observations()
        elif independent and len(first) > 1:
            shuffled = first[np.random.default_rng(self.seed).permutation(len(first))]
            first, second = np.array_split(shuffled, 2)
        return first, second if independent else None

    @cached_property
    def pmf(self) -> np.ndarray | None:
        """All p^q probabilities of the data's law, where they are known and fit into memory."""
        if self.data.law is None or self.data.space.size > PMF_LIMIT:
            return None
        missing = set(self.model_alphabet.codes) - set(self.data_alphabet.codes)
        if missing:
            raise ValueError(
                f"the model has the symbols {self.model_alphabet.symbols.tolist()[:10]}, and the law of "
                f"{self.data.name} is over {self.data.symbols.tolist()[:10]} only"
            )
        return self.data.pmf

    def in_order_of_data(self, law: np.ndarray) -> np.ndarray:
        """Rearrange a law over the model's symbols to one over the data's."""
        if self.model_alphabet.codes == self.data_alphabet.codes:
            return law
        token = torch.tensor([self.data_alphabet.codes.index(code) for code in self.model_alphabet.codes])
        own: Space = self.model.space_
        result = np.zeros(self.data.space.size)
        for start in range(0, own.size, CHUNK):
            x = own.configurations(start, min(own.size, start + CHUNK))
            result[self.data.space.index(token[x.long()])] = law[start : start + CHUNK]
        return result

    def log_pmf(self, X: np.ndarray) -> np.ndarray | None:
        """Log-probability of each row in the data's law, (N,), where that is known."""
        if self.pmf is None:
            return None
        place = self.data.space.index(self.data_alphabet.encode(X))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.pmf[place.numpy()]))
