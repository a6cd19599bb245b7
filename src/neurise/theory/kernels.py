r"""The reverse kernel is not unique: several that keep every marginal, and how local each of them is.

A reverse kernel of step t is any :math:`K_t` with

.. math:: \sum_{\tilde x} K_t(x \mid \tilde x)\,\mu_{t+1}(\tilde x) = \mu_t(x).

Bayes' rule gives one. The set of them is convex.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise import exact
from neurise.laws import as_law, distance
from neurise.noise.round_robin import RoundRobin
from neurise.theory.curves import noised_laws

DENSE_LIMIT = 2**12
"""Configurations up to which a kernel is written out as a matrix: 128 MiB."""


class ReverseKernel(ABC):
    r"""A reverse step, from :math:`X_{t+1}` to :math:`X_t`, that turns :math:`\mu_{t+1}` into :math:`\mu_t`.

    To add one, say what it makes of a law (:meth:`push`), how often each site changes (:meth:`changes`), and how many states
    one state can lead to (:attr:`reach`). Laws are (p^q,) float64 vectors.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> kernel = theory.Bayes(law, noise, 0)
    >>> after = list(theory.noised_laws(law, noise))[1]
    >>> kernel.push(after).round(decimals=6).tolist()          # the law before step 0 again
    [0.4, 0.1, 0.1, 0.4]
    """

    def __init__(self, mu_t: Any, noise: RoundRobin, t: int) -> None:
        self.noise, self.t, self.site = noise, t, t % noise.space.sites
        self.mu_t = as_law(mu_t, noise.space.size, "mu_t")

    @abstractmethod
    def push(self, law: Tensor) -> Tensor:
        r"""Law of :math:`X_t` when :math:`X_{t+1}` follows the given one."""

    @abstractmethod
    def changes(self, law: Tensor) -> Tensor:
        r"""Probability that :math:`X_t` and :math:`X_{t+1}` differ, at each site, when :math:`X_{t+1}` follows the given law."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many states the step can lead to from one state of positive probability, at most."""

    def matrix(self) -> Tensor:
        """Write the kernel out, (p^q, p^q), [new, old]: the images of all points."""
        self.noise.space.require_enumerable(DENSE_LIMIT)
        points = torch.eye(self.noise.space.size, dtype=torch.float64)
        return torch.stack([self.push(point) for point in points], dim=1)


class _SingleSite(ReverseKernel):
    """What kernels share that change the site u of the step alone."""

    def __init__(self, mu_t: Any, noise: RoundRobin, t: int) -> None:
        super().__init__(mu_t, noise, t)
        self.conditional = exact.conditional(self.mu_t, noise.space, self.site).transpose(
            1, 2
        )  # (before, after, states)

    @abstractmethod
    def _stays(self) -> Tensor:
        """Probability that the token of the site stays as it is, in every context, (before, after, states)."""

    def changes(self, law: Tensor) -> Tensor:
        """Only the site of the step changes."""
        changes = torch.zeros(self.noise.space.sites, dtype=torch.float64)
        changes[self.site] = ((1 - self._stays()) * self._split(law)).sum()
        return changes

    @property
    def reach(self) -> int:
        """At most p, the states that differ at the site."""
        return int((self._split(self.mu_t) > 0).sum(dim=-1).max())

    def _split(self, law: Tensor) -> Tensor:
        states = self.noise.space.states
        return law.view(states**self.site, states, -1).transpose(1, 2)  # (before, after, states)


class Bayes(_SingleSite):
    r"""The canonical kernel: :math:`K(a \mid \tilde x) \propto k(\tilde x_u \mid a)\,\mu_t(a \mid \tilde x_{-u})`.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> kernel = theory.Bayes(law, noise, 0)
    >>> after = list(theory.noised_laws(law, noise))[1]
    >>> kernel.push(after).round(decimals=6).tolist()          # the law before step 0 again
    [0.4, 0.1, 0.1, 0.4]
    """

    def push(self, law: Tensor) -> Tensor:
        """Push by the same formula as the exact law of a model."""
        return self.noise.push(self._split(law), self.conditional, self.t).transpose(1, 2).flatten()

    def _stays(self) -> Tensor:
        floor = (1 - self.noise.keep_prob) / self.noise.space.states
        likelihood = self.noise.keep_prob * self.conditional + floor
        return self.conditional * (self.noise.keep_prob + floor) / likelihood


class HeatBath(_SingleSite):
    r"""Draw the site anew and ignore what it holds: :math:`K(a \mid \tilde x) = \mu_t(a \mid \tilde x_{-u})`.

    It is valid because step t noises no other site: :math:`\mu_{t+1}(x_{-u}) = \mu_t(x_{-u})`. For ε = 0 it is the Bayes kernel.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> kernel = theory.HeatBath(law, noise, 0)
    >>> after = list(theory.noised_laws(law, noise))[1]
    >>> kernel.push(after).round(decimals=6).tolist()          # the law before step 0 again
    [0.4, 0.1, 0.1, 0.4]
    """

    def push(self, law: Tensor) -> Tensor:
        """Keep the law of the context."""
        return (self.conditional * self._split(law).sum(dim=-1, keepdim=True)).transpose(1, 2).flatten()

    def _stays(self) -> Tensor:
        return self.conditional


class Degenerate(ReverseKernel):
    r"""Ignore the present state altogether: :math:`K(x \mid \tilde x) = \mu_t(x)`. Valid, and no easier than the problem itself.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> kernel = theory.Degenerate(law, noise, 0)
    >>> after = list(theory.noised_laws(law, noise))[1]
    >>> kernel.push(after).round(decimals=6).tolist()          # the law before step 0 again
    [0.4, 0.1, 0.1, 0.4]
    """

    def push(self, law: Tensor) -> Tensor:
        """Return the marginal, whatever the law."""
        return self.mu_t * law.sum()

    def changes(self, law: Tensor) -> Tensor:
        """Both states are independent: a site stays with the probability that two draws agree."""
        space = self.noise.space
        stays = []
        for site in range(space.sites):
            old, new = (mu.view(space.states**site, space.states, -1).sum(dim=(0, 2)) for mu in (law, self.mu_t))
            stays.append((old * new).sum())
        return 1 - torch.stack(stays)

    @property
    def reach(self) -> int:
        """Every state that the marginal allows."""
        return int((self.mu_t > 0).sum())


class Mixture(ReverseKernel):
    r"""A convex combination :math:`\lambda K_1 + (1 - \lambda) K_2` of two reverse kernels of one step, as valid as they are.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> kernel = theory.Mixture(theory.Bayes(law, noise, 0), theory.HeatBath(law, noise, 0), 0.5)
    >>> after = list(theory.noised_laws(law, noise))[1]
    >>> kernel.push(after).round(decimals=6).tolist()          # the law before step 0 again
    [0.4, 0.1, 0.1, 0.4]
    """

    def __init__(self, first: ReverseKernel, second: ReverseKernel, weight: float) -> None:
        if not 0 <= weight <= 1:
            raise ValueError(f"weight must be in [0, 1], got {weight!r}")
        if first.noise != second.noise or first.site != second.site or not torch.equal(first.mu_t, second.mu_t):
            raise ValueError("a mixture needs two kernels of the same step")
        super().__init__(first.mu_t, first.noise, first.site)
        self.first, self.second, self.weight = first, second, weight

    def push(self, law: Tensor) -> Tensor:
        """Mix what both make of it."""
        return self.weight * self.first.push(law) + (1 - self.weight) * self.second.push(law)

    def changes(self, law: Tensor) -> Tensor:
        """Mix the probabilities."""
        return self.weight * self.first.changes(law) + (1 - self.weight) * self.second.changes(law)

    @property
    def reach(self) -> int:
        """That of the wider one: all kernels here lead only to states that μ_t allows, the local ones to all near ones."""
        return max(part.reach for part, share in ((self.first, self.weight), (self.second, 1 - self.weight)) if share)


Maker = Callable[[Tensor, RoundRobin, int], ReverseKernel]

KERNELS: Mapping[str, Maker] = {
    "Bayes": Bayes,
    "heat bath": HeatBath,
    "½ Bayes + ½ heat bath": lambda mu, noise, t: Mixture(Bayes(mu, noise, t), HeatBath(mu, noise, t), 0.5),
    "½ Bayes + ½ degenerate": lambda mu, noise, t: Mixture(Bayes(mu, noise, t), Degenerate(mu, noise, t), 0.5),
    "degenerate": Degenerate,
}
"""Kernels to compare, by name."""


class Comparison(NamedTuple):
    """A reverse kernel along the whole chain."""

    name: str
    defect: float  # the largest TV(K_t μ_{t+1}, μ_t): 0 up to rounding for every valid kernel
    hamming: float  # expected number of sites that a step changes, on average over the steps
    elsewhere: float  # of these, at sites other than the one that the step noises
    reach: int  # states that a step can lead to from one state, at most
    from_uniform: float  # TV to the data when the chain starts from the uniform law instead of μ_T


def compare(pmf: Any, noise: RoundRobin, kernels: Mapping[str, Maker] = KERNELS) -> list[Comparison]:
    """Run the true reverse chain with each kernel: does it keep the marginals, how far does it move, does it forget.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> [found.name for found in theory.compare(law, noise)][:2]
    ['Bayes', 'heat bath']
    """
    laws = list(noised_laws(pmf, noise))
    found = []
    for name, make in kernels.items():
        current = torch.full_like(laws[0], 1 / noise.space.size)
        defects, moved, elsewhere, reach = list[float](), list[float](), list[float](), 0
        for t in reversed(range(noise.num_steps)):
            kernel = make(laws[t], noise, t)
            changes = kernel.changes(laws[t + 1])
            defects.append(distance(kernel.push(laws[t + 1]), laws[t]))
            moved.append(float(changes.sum()))
            elsewhere.append(float(changes.sum() - changes[kernel.site]))
            reach = max(reach, kernel.reach)
            current = kernel.push(current)
        steps = noise.num_steps
        far = distance(current, laws[0])
        found.append(Comparison(name, max(defects), sum(moved) / steps, sum(elsewhere) / steps, reach, far))
    return found
