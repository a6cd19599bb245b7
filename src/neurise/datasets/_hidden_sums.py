r"""Sums over the hidden spins of a pairwise model, cluster by cluster.

Given the visible spins, clusters of hidden spins that touch each other do not know of one another:

.. math:: \log \sum_{\sigma_H} e^{H} = H_V + \sum_C \log \sum_{\sigma_C} \exp\Bigl(H_C(\sigma_C)
   + \sum_{i \in C} \sigma_i \sum_{v \in V} J_{iv}\sigma_v\Bigr).
"""

from __future__ import annotations

import numpy as np

from neurise.space import Space

LARGEST = 16
"""Hidden spins of a cluster that can be summed over."""
BLOCK = 2**22
"""Numbers that are held at a time."""


class HiddenSums:
    """The weight of configurations of the visible sites of a pairwise model of spins."""

    def __init__(self, edges: np.ndarray, couplings: np.ndarray, fields: np.ndarray, visible: np.ndarray) -> None:
        self.visible, self.fields = visible, fields
        self.column = {site: column for column, site in enumerate(visible.tolist())}
        self.couplers = [(int(i), int(j), float(J)) for (i, j), J in zip(edges, couplings, strict=True)]
        self.clusters = self._clusters()
        self.possible = all(len(cluster) <= LARGEST for cluster in self.clusters)

    def _clusters(self) -> list[list[int]]:
        """Hidden sites that are joined by couplers among themselves."""
        near: dict[int, set[int]] = {site: set() for site in range(len(self.fields)) if site not in self.column}
        for i, j, _ in self.couplers:
            if i in near and j in near:
                near[i].add(j)
                near[j].add(i)
        clusters, seen = [], set[int]()
        for start in near:
            if start in seen:
                continue
            cluster, waiting = [], [start]
            seen.add(start)
            while waiting:
                site = waiting.pop()
                cluster.append(site)
                waiting += near[site] - seen
                seen |= near[site]
            clusters.append(sorted(cluster))
        return clusters

    def log_weight(self, X: np.ndarray) -> np.ndarray:
        """Logarithm of the summed weight of each row of visible spins ±1, (N, visible) → (N,)."""
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != len(self.visible):
            raise ValueError(f"rows of {len(self.visible)} visible spins are needed; the shape is {rows.shape}")
        wrong = (rows != 1) & (rows != -1)
        if wrong.any():
            row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
            raise ValueError(f"X has {rows[row, column]} at row {row}, column {column}; spins are −1 or 1")
        largest = max((2 ** len(cluster) for cluster in self.clusters), default=1)
        step = max(1, BLOCK // (largest + len(self.fields)))
        parts = [self._block(rows[start : start + step].astype(np.float64)) for start in range(0, len(rows), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _block(self, spins: np.ndarray) -> np.ndarray:
        total: np.ndarray = spins @ self.fields[self.visible]
        for i, j, J in self.couplers:
            if i in self.column and j in self.column:
                total += J * spins[:, self.column[i]] * spins[:, self.column[j]]
        for cluster in self.clusters:
            total += self._summed(cluster, spins)
        return total

    def _summed(self, cluster: list[int], spins: np.ndarray) -> np.ndarray:
        place = {site: number for number, site in enumerate(cluster)}
        states = 2.0 * Space(len(cluster), 2).configurations().numpy() - 1  # (2^c, c)
        own = states @ self.fields[cluster]
        felt = np.zeros((len(spins), len(cluster)))  # what visible neighbours do to each hidden spin
        for i, j, J in self.couplers:
            if i in place and j in place:
                own = own + J * states[:, place[i]] * states[:, place[j]]
            elif i in place or j in place:
                inside, outside = (i, j) if i in place else (j, i)
                felt[:, place[inside]] += J * spins[:, self.column[outside]]
        return np.asarray(np.logaddexp.reduce(felt @ states.T + own, axis=1))

    def law(self, space: Space) -> np.ndarray:
        """All probabilities of the visible spins."""
        law = self.log_weight(2 * space.configurations().numpy().astype(np.int8) - 1)
        law -= law.max()
        np.exp(law, out=law)
        law /= law.sum()
        return law
