"""A model beside the data it is measured against: what several measurements need, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from neurise import exact as exactly
from neurise import holdings
from neurise.alphabet import Alphabet, as_matrix
from neurise.dataset import Dataset
from neurise.modeling.model import Model
from neurise.space import Space

PMF_LIMIT = 2**26
"""Configurations up to which the law of the data is written out."""
EXACT_LIMIT = 2**20
"""Configurations up to which the law of the model is written out without being asked for."""
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

    def observations(self) -> tuple[np.ndarray, bool]:
        """Write the rows out, each as often as it weighs, and say whether they are independent observations."""
        if self.weights is None:
            return self.X, True
        masses = self.weights.astype(float)
        if bool((masses == np.round(masses)).all()) and masses.sum() <= REPEAT_LIMIT:
            return np.repeat(self.X, masses.astype(np.int64), axis=0), True
        cumulative = masses.cumsum()
        levels = (np.arange(REPEAT_LIMIT) + 0.5) / REPEAT_LIMIT * cumulative[-1]
        return self.X[np.searchsorted(cumulative, levels, side="right").clip(max=len(self.X) - 1)], False


class Truth:
    """The data, and how many rows of its law to take."""

    def __init__(self, data: Dataset, *, samples: int, seed: int) -> None:
        self.data, self.samples, self.seed = data, samples, seed

    @cached_property
    def alphabet(self) -> Alphabet:
        """The symbols of the data, in their order."""
        return Alphabet.of(self.data.symbols[:, None], self.data.symbols.tolist())

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

        Samples of the model are held against the first; the second shows what a perfect model scores.
        """
        first, independent = self.rows.observations()
        data, second = self.data, None
        if not independent:
            return first, None
        if data.draw is not None:
            second = self.fresh(2)
        elif data.test is not None and data.train is not None:
            second, independent = Rows(data.train, None, data.weights).observations()
        elif len(first) > 1:
            shuffled = first[np.random.default_rng(self.seed).permutation(len(first))]
            first, second = np.array_split(shuffled, 2)
        return first, second if independent else None

    @cached_property
    def independent(self) -> bool:
        """Whether the rows to compare with are independent observations; importances make them something else."""
        return self.rows.observations()[1]

    @cached_property
    def learnable(self) -> tuple[Rows, str] | None:
        """Rows that a baseline may learn from, and where they come from; None where all rows are needed to compare with."""
        data = self.data
        if data.train is not None and (data.test is not None or data.draw is not None):
            return Rows(data.train, None, data.weights), f"{len(data.train):,} training rows"
        if data.draw is not None:
            return Rows(self.fresh(3)), f"{self.samples:,} fresh rows"
        second = self.real[1]
        return None if second is None else (Rows(second), f"the other {len(second):,} rows")

    @cached_property
    def pmf(self) -> np.ndarray | None:
        """All p^q probabilities of the data's law, where they are known and fit into memory."""
        return None if self.data.law is None or self.data.space.size > PMF_LIMIT else self.data.pmf

    def log_pmf(self, X: np.ndarray) -> np.ndarray | None:
        """Log-probability of each row in the data's law, (N,), where that is known."""
        if self.pmf is not None:
            place = self.data.space.index(self.alphabet.encode(X))
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.pmf[place.numpy()]))
        if self.data.log_weight is not None and "normalised" in str(self.data.info.get("log_weight", "")):
            return np.asarray(self.data.log_weight(X))
        return None


class Case:
    """A fitted model, or samples from anywhere, beside the data."""

    def __init__(
        self,
        model: Model | Any,
        data: Dataset,
        *,
        samples: int,
        seed: int,
        exact: bool | None,
        truth: Truth | None = None,
    ) -> None:
        self.data, self.samples, self.seed, self.exact = data, samples, seed, exact
        self.truth = truth or Truth(data, samples=samples, seed=seed)
        self.model: Model | None = model if hasattr(model, "sample") else None
        if self.model is None:
            self.drawn = as_matrix(holdings.repeated(model, "samples"), "samples")
            self.samples, self.alphabet = len(self.drawn), Alphabet.of(self.drawn)
            self.space = Space(self.drawn.shape[1], len(self.alphabet))
        else:
            known = self.model.schema_.alphabet
            assert isinstance(known, Alphabet)  # a model of a table is measured on its tokens
            self.alphabet, self.space = known, self.model.space_
        self._check()

    def _check(self) -> None:
        data, what = self.data, "samples have" if self.model is None else "the model has"
        if self.space.sites != data.space.sites:
            raise ValueError(f"{what} {self.space.sites} sites; in {data.name} there are {data.space.sites}")
        if len({np.dtype(alphabet.dtype).kind in "US" for alphabet in (self.alphabet, self.truth.alphabet)}) > 1:
            raise ValueError(
                f"{what} the symbols {self.alphabet.symbols.tolist()[:10]}, and those of {data.name} are "
                f"{data.symbols.tolist()[:10]}: letters and numbers cannot be compared"
            )
        if data.law is not None and set(self.alphabet.codes) - set(self.truth.alphabet.codes):
            raise ValueError(
                f"{what} the symbols {self.alphabet.symbols.tolist()[:10]}, and the law of {data.name} is over "
                f"{data.symbols.tolist()[:10]} only"
            )

    @cached_property
    def symbols(self) -> list[Any]:
        """The data's symbols, and those that samples may hold besides."""
        symbols: list[Any] = np.unique(np.concatenate([self.data.symbols, self.alphabet.symbols])).tolist()
        return symbols

    @cached_property
    def drawn(self) -> np.ndarray:
        """Samples of the model, (samples, sites)."""
        assert self.model is not None
        return as_matrix(self.model.sample(self.samples, seed=self.seed))

    @cached_property
    def law(self) -> np.ndarray | None:
        """The model's whole law, (p^q,) over the data's symbols: where it is wanted and can be written out."""
        pmf, kind = self.truth.pmf, "given samples" if self.model is None else f"a {type(self.model).__name__}"
        small = pmf is not None and max(self.space.size, len(pmf)) <= EXACT_LIMIT
        if not (small if self.exact is None else self.exact):
            return None
        if pmf is None:
            raise ValueError(f"exact=True needs the pmf of {self.data.name}, which is not known")
        try:
            if not hasattr(self.model, "chain_law"):
                raise NotImplementedError(f"the exact law of {kind} is not known")
            assert self.model is not None
            return self._over_symbols_of_the_data(exactly.law(self.model).cpu().numpy())
        except NotImplementedError as reason:
            if self.exact:
                raise ValueError(f"exact=True needs the exact law of {kind}, which is not known: {reason}") from reason
            return None

    def _over_symbols_of_the_data(self, law: np.ndarray) -> np.ndarray:
        if self.alphabet.codes == self.truth.alphabet.codes:
            return law
        token = torch.tensor([self.truth.alphabet.codes.index(code) for code in self.alphabet.codes])
        result = np.zeros(self.data.space.size)
        for start in range(0, self.space.size, CHUNK):
            x = self.space.configurations(start, min(self.space.size, start + CHUNK))
            result[self.data.space.index(token[x.long()])] = law[start : start + CHUNK]
        return result
