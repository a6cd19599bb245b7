"""What models are compared with: the true law given what is held, or rows of the data that hold it."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.player.stage import Stage

FEWEST = 20
"""Rows of the data that must hold what is held, to compare with."""


class Reference:
    """The truth given some sites: a law that is written out, or rows."""

    def __init__(self, stage: Stage, clamp: dict[int, int], label: int | None, n: int) -> None:
        self.stage, self.clamp, self.states = stage, clamp, stage.schema.space.states
        self.sizes = [len(own) for own in stage.symbols]
        self.law = None if stage.truth is None or label is not None else self._given(stage.truth)
        self.rows = self._chosen(label)
        self.edges = np.zeros(0)
        self.best = np.zeros(0, dtype=np.int64)

    def _chosen(self, label: int | None) -> np.ndarray | None:
        """Return the rows of the data that hold what is held and have the label; None where that is not known."""
        kept = self.stage.kept
        if kept is None:
            return None
        keep: np.ndarray | None = np.ones(len(kept.rows), dtype=bool)
        if label is not None:
            keep = kept.with_label(str(self.stage.schema.labels.classes[label]))
        if keep is None:
            return None
        for site, token in self.clamp.items():
            keep = keep & (kept.rows[:, site] == token)
        return np.asarray(kept.rows[keep])

    @property
    def told(self) -> str | None:
        """Say what it is."""
        if self.law is not None:
            return "the exact law"
        return "the data" if self._has_rows else None

    @property
    def _has_rows(self) -> bool:
        return self.rows is not None and len(self.rows) >= FEWEST

    def _given(self, law: np.ndarray) -> np.ndarray | None:
        """Condition a law on what is held."""
        grid = law.reshape(self.sizes)
        held = np.zeros_like(grid)
        place = tuple(self.clamp.get(site, slice(None)) for site in range(len(self.sizes)))
        held[place] = grid[place]
        total = held.sum()
        return held.reshape(-1) / total if total > 0 else None

    def index(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of configurations, first site most significant."""
        return np.asarray(np.ravel_multi_index(tuple(rows.T.astype(np.int64)), self.sizes))

    def configurations(self, index: np.ndarray) -> np.ndarray:
        """Return the tokens of configurations, (n, sites)."""
        return np.stack(np.unravel_index(index, self.sizes), axis=1)

    def distance(self, rows: np.ndarray) -> float | None:
        r"""Return :math:`\frac12 \sum_x |\hat\mu(x) - \mu(x)|` of rows and the law."""
        if self.law is None:
            return None
        found = np.bincount(self.index(rows), minlength=len(self.law)) / len(rows)
        return float(np.abs(found - self.law).sum() / 2)

    def drawn(self, n: int, seed: int) -> np.ndarray | None:
        """Draw rows of the truth itself: what the best model could do."""
        rng = np.random.default_rng(seed)
        if self.law is not None:
            places = np.searchsorted(np.cumsum(self.law), rng.random(n) * self.law.sum(), side="right")
            return self.configurations(np.minimum(places, len(self.law) - 1))
        return self.data_rows(n)

    def data_rows(self, n: int) -> np.ndarray | None:
        """Return rows of the data that hold what is held, at most n."""
        return None if self.rows is None else self.rows[:n]

    def floors(self, pairs: np.ndarray, n: int, seed: int) -> dict[str, float | None]:
        """Return what n rows of the truth itself would score: the floors of the distances."""
        if self.law is None:
            if not self._has_rows or self.rows is None:
                return {"tv": None, "rms": None}
            half = len(self.rows) // 2
            first, second = (correlations(part, pairs, self.states) for part in (self.rows[:half], self.rows[half:]))
            return {"tv": None, "rms": float(np.sqrt(np.mean((first - second) ** 2)))}
        rows, truth = self.drawn(n, seed + 1), self.correlations(pairs)
        assert rows is not None
        assert truth is not None
        own = correlations(rows, pairs, self.states)
        return {"tv": self.distance(rows), "rms": float(np.sqrt(np.mean((own - truth) ** 2)))}

    def correlations(self, pairs: np.ndarray) -> np.ndarray | None:
        """Return the correlations of pairs of sites under the truth."""
        if self.law is not None:
            likely = np.flatnonzero(self.law)
            return correlations(self.configurations(likely), pairs, self.states, self.law[likely])
        return correlations(self.rows, pairs, self.states) if self._has_rows and self.rows is not None else None

    # --- energies --------------------------------------------------------------------------------------------------

    def energies(self, bins: int) -> dict[str, Any] | None:
        """Return the histogram of the energies −log μ under the truth, which sets the bins for all."""
        if self.law is None:
            return None
        likely = np.flatnonzero(self.law)
        values = -np.log(self.law[likely])
        top = float(np.quantile(values, 0.99))
        self.edges = np.linspace(float(values.min()), max(top, float(values.min()) + 1e-6), bins + 1)
        heights = np.histogram(np.minimum(values, top), self.edges, weights=self.law[likely])[0]
        return {"edges": np.round(self.edges, 3).tolist(), "heights": np.round(heights, 5).tolist()}

    def histogram(self, rows: np.ndarray) -> list[float] | None:
        """Return the shares of rows in the bins of energy."""
        if self.law is None or not len(self.edges):
            return None
        with np.errstate(divide="ignore"):
            values = np.minimum(-np.log(self.law[self.index(rows)]), self.edges[-1])
        return (np.histogram(values, self.edges)[0] / len(rows)).round(5).tolist()  # type: ignore[no-any-return]

    # --- the most likely configurations ------------------------------------------------------------------------------

    def top(self, count: int) -> list[dict[str, Any]] | None:
        """Return the most likely configurations and their probabilities."""
        if self.law is None:
            return None
        best = np.argsort(-self.law, kind="stable")[:count]
        self.best = best[self.law[best] > 0]
        rows = self.configurations(self.best)
        return [{"row": row.tolist(), "p": float(self.law[place])} for row, place in zip(rows, self.best, strict=True)]

    def frequencies(self, rows: np.ndarray) -> list[float]:
        """Return how often each of the most likely configurations was drawn."""
        if not len(self.best):
            return []
        index = self.index(rows)
        return [float((index == place).mean()) for place in self.best]

    def probabilities(self, law: np.ndarray) -> list[float]:
        """Return what a model's exact law gives each of them, given what is held."""
        held = self._given(law)
        return [] if held is None else [float(held[place]) for place in self.best]


def pairs_of(sites: int, most: int) -> np.ndarray:
    """List pairs of sites, all of them or an even choice, (pairs, 2)."""
    first, second = np.triu_indices(sites, 1)
    chosen = np.unique(np.linspace(0, max(0, len(first) - 1), min(most, len(first))).astype(int))
    return np.stack([first[chosen], second[chosen]], axis=1)


def correlations(rows: np.ndarray, pairs: np.ndarray, states: int, weights: np.ndarray | None = None) -> np.ndarray:
    r"""Return connected correlations of pairs, (pairs,): :math:`\langle\sigma\sigma'\rangle - \langle\sigma\rangle
    \langle\sigma'\rangle` of spins for two states, else :math:`P(x_i = x_j) - \sum_a P(x_i = a) P(x_j = a)`.
    """
    share = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
    if states == 2:
        spins = 2.0 * rows - 1
        mean = share @ spins
        together = share @ (spins[:, pairs[:, 0]] * spins[:, pairs[:, 1]])
        return np.asarray(together - mean[pairs[:, 0]] * mean[pairs[:, 1]])
    equal = share @ (rows[:, pairs[:, 0]] == rows[:, pairs[:, 1]])
    marginals = np.stack([share @ (rows == token) for token in range(states)])  # (states, sites)
    expected: np.ndarray = equal - (marginals[:, pairs[:, 0]] * marginals[:, pairs[:, 1]]).sum(0)
    return expected
