"""The round-robin chain: noise one site at a time, in order, again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from neurise import checks
from neurise.noise.base import SiteNoise
from neurise.space import Space


@dataclass(frozen=True)
class Turns(SiteNoise):
    r"""Whose turn it is: step t touches site :math:`u = t \bmod q`, for T = ``cycles`` · q steps or as many as ``steps`` says.

    What all noise shares that goes round the sites; a subclass says what a visit does.
    """

    space: Space
    keep_prob: float
    cycles: int = 1
    steps: int | None = None

    def __post_init__(self) -> None:
        if checks.is_number(self.keep_prob) and self.keep_prob == 1:
            raise ValueError(
                f"keep_prob must be in [0, 1), got {self.keep_prob!r}; at 1 no site would ever be noised, so there is "
                "nothing to reverse"
            )
        checks.share("keep_prob", self.keep_prob)
        sites, num_steps = self.space.sites, checks.positive_whole("cycles", self.cycles) * self.space.sites
        if self.steps is not None:
            num_steps = checks.positive_whole("steps", self.steps)
        known = {"num_steps": num_steps, "cycles": -(-num_steps // sites), "is_hard": self.keep_prob == 0}
        for name, value in {**known, "tokens": self.space.states}.items():
            object.__setattr__(self, name, value)

    def top(self, cycle: int) -> int:
        """Return how many sites a cycle touches: all of them, or fewer in the last one."""
        return min(self.space.sites, self.num_steps - cycle * self.space.sites)

    def site(self, t: Tensor) -> Tensor:
        """Return the site that step t noises, u = t mod q."""
        return t % self.space.sites

    def visits(self, t: Tensor) -> Tensor:
        r"""Return how often each site was touched before time t, (..., sites): :math:`\lfloor (t + q - 1 - i)/q \rfloor`."""
        return (t[..., None] + self.space.sites - 1 - self._sites(t)) // self.space.sites

    def keep_probs(self, t: Tensor) -> Tensor:
        r"""Probability :math:`\varepsilon^{v_i(t)}` that a site at time t still holds what it held at time 0, (..., sites)."""
        u, cycle = self.site(t)[..., None], (t // self.space.sites)[..., None]
        # Two powers per row, not one per site: a site was visited once more than the others where its turn has come.
        return torch.where(self._sites(t) < u, torch.pow(self.keep_prob, cycle + 1), torch.pow(self.keep_prob, cycle))

    def visits_of_site(self, t: Tensor) -> Tensor:
        """Return how often the site that step t noises was touched before, (...)."""
        return t // self.space.sites

    def erased(self, t: Tensor) -> Tensor:
        """Return which sites tell nothing of the others at time t, (..., sites) booleans."""
        if not self.is_hard:
            return torch.zeros((*t.shape, self.space.sites), dtype=torch.bool, device=t.device)
        return self._sites(t) < t[..., None]

    def _sites(self, t: Tensor) -> Tensor:
        return torch.arange(self.space.sites, device=t.device)


@dataclass(frozen=True)
class RoundRobin(Turns):
    r"""Step t touches site :math:`u = t \bmod q` alone and keeps it with probability ε = ``keep_prob``.

    .. math:: k(a \mid b) = \varepsilon\,\delta_{ab} + (1 - \varepsilon)/p, \qquad t = 0, \dots, T - 1

    T is ``cycles`` · q, or ``steps`` where that is given; it need not be a multiple of q. :math:`X_0` is the data and
    :math:`X_T` close to uniform noise, if every site is visited. ε = 0 is *hard* noise: one visit erases a site. Where sites
    have alphabets of their own, p is the size :math:`p_u` of the site's, and a and b are of it.
    """

    has_own_alphabets: ClassVar[bool] = True

    heat_bath: bool = False
    """Reverse a step by a fresh draw from the conditional, whatever the site holds: another valid reversal of the chain."""

    @property
    def kept_bonus(self) -> float | None:
        r"""How much likelier Bayes' rule makes the present token, :math:`\log(1 + \varepsilon p / (1 - \varepsilon))`.

        None for soft noise where p differs from site to site.
        """
        if self.space.sizes is not None and not (self.heat_bath or self.is_hard):
            return None
        return 0.0 if self.heat_bath else math.log1p(self.keep_prob * self.space.states / (1 - self.keep_prob))

    def corrupt(self, x_0: Tensor, t: Tensor, *, generator: Generator) -> Tensor:
        r"""Draw :math:`X_t \mid X_0` in one shot: every site keeps its token with :math:`\varepsilon^{v}`, else is uniform."""
        if self.is_hard:  # nothing is left to chance but the noise
            keep = ~self.erased(t)
        else:
            keep = torch.rand(x_0.shape, generator=generator, device=x_0.device) < self.keep_probs(t)
        return torch.where(keep, x_0, self.start(len(x_0), generator=generator))

    def target(self, x_0: Tensor, x_t: Tensor, u: Tensor) -> Tensor:
        """Return the noised tokens themselves."""
        return x_t.gather(-1, u.view(len(u), -1)).view(u.shape)

    def step(self, x: Tensor, t: int, *, generator: Generator) -> Tensor:
        """Draw X_{t+1} given X_t = x: the single-step kernel, which :meth:`corrupt` composes without a loop."""
        u = t % self.space.sites
        keep = torch.rand(len(x), generator=generator, device=x.device) < self.keep_prob
        fresh = torch.randint(self.space.digits[u], (len(x),), generator=generator, device=x.device, dtype=x.dtype)
        moved = x.clone()
        moved[:, u] = torch.where(keep, x[:, u], fresh)
        return moved

    def log_noised_token(self, token: Tensor, visits: Tensor, u: Tensor | None = None) -> Tensor:
        r"""Logarithm of :math:`k^v(a \mid b) = \varepsilon^v \delta_{ab} + (1 - \varepsilon^v)/p`, for every a, (..., states).

        ``token`` is b. The kernel is symmetric, so it serves both ways: as the law of what b becomes after v visits, and
        as the likelihood of having been a when b is seen.
        """
        return self.log_noised(
            (token[..., None] == torch.arange(self.space.states, device=token.device)).double(), visits, u
        )

    def log_noised(self, law: Tensor, visits: Tensor, u: Tensor | None = None) -> Tensor:
        r"""Logarithm of :math:`\varepsilon^v \lambda(a) + (1 - \varepsilon^v)/p`: what v visits make of the law λ of one site.

        ``law`` is (..., states) float64, and so is the answer. Without u, p is the length of the law.
        """
        once = torch.full((), self.keep_prob, dtype=torch.float64, device=law.device)  # made there: steps are captured
        keep = torch.pow(once, visits)[..., None]
        if u is None or self.space.sizes is None:
            return torch.log(keep * law + (1 - keep) / law.shape[-1])
        return torch.log(keep * law + (1 - keep) * self._own_uniform(law.device)[u])

    def spread(self, law: Tensor, visits: int) -> Tensor:
        r"""Mix laws of one site with the uniform one, :math:`\varepsilon^v \lambda(a) + (1 - \varepsilon^v)\,\bar\lambda`."""
        if not visits:
            return law
        keep = self.keep_prob**visits
        return keep * law + (1 - keep) * law.mean(dim=-1, keepdim=True)

    def reverse(self, log_conditional: Tensor, x_u: Tensor, t: Tensor) -> Tensor:
        r"""Bayes kernel of one reverse step, in logarithms, (..., states).

        .. math::
            P(X_{t,u} = a \mid X_{t+1} = \tilde x)
            = \frac{k(\tilde x_u \mid a)\,\mu_t(a \mid x_{-u})}{\sum_c k(\tilde x_u \mid c)\,\mu_t(c \mid x_{-u})}

        Both cases of the paper's reverse kernel in one formula. It is never 0/0, because k > 0 for every ε < 1. The heat
        bath leaves k out.
        """
        if self.heat_bath or (self.is_hard and self.space.sizes is None):  # k is the same for every a
            return torch.log_softmax(log_conditional, dim=-1)
        return self._bayes(log_conditional, x_u, self.site(t))

    def _bayes(self, log_conditional: Tensor, x_u: Tensor, u: Tensor) -> Tensor:
        once = torch.ones((), dtype=torch.int64, device=x_u.device)
        kernel = self.log_noised_token(x_u, once, u).to(log_conditional.dtype)
        return torch.log_softmax(log_conditional + kernel, dim=-1)

    def push(self, law: Tensor, conditional: Tensor, t: int) -> Tensor:
        r"""Push laws of one site through the kernel of :meth:`reverse` without writing the p × p kernel down, (..., states).

        .. math::
            \nu(a) = \mu(a) \sum_b \frac{k(b \mid a)}{D_b}\,\lambda(b)
            = \mu(a) \Big[\varepsilon\,\frac{\lambda(a)}{D_a} + \frac{1-\varepsilon}{p} \sum_b \frac{\lambda(b)}{D_b}\Big],
            \qquad D_b = \varepsilon\,\mu(b) + \frac{1-\varepsilon}{p}
        """
        if self.is_hard or self.heat_bath:
            return conditional * law.sum(dim=-1, keepdim=True)
        floor = (1 - self.keep_prob) / law.shape[-1]  # the law is over the site's own states
        ratio = law / (self.keep_prob * conditional + floor)
        return conditional * (self.keep_prob * ratio + floor * ratio.sum(dim=-1, keepdim=True))

    def bridge(self, x_0u: Tensor, x_u: Tensor, t: Tensor) -> Tensor:
        r"""Law of :math:`X_{t,u}` when its past :math:`x_{0,u}` and its future :math:`\tilde x_u` are known, in logarithms.

        .. math:: q(a \mid x_{0,u}, \tilde x_u) \propto k(\tilde x_u \mid a)\,k^{v}(a \mid x_{0,u}), \qquad v = v_u(t)
        """
        u = self.site(t)
        return self._bayes(self.log_noised_token(x_0u, self.visits_of_site(t), u), x_u, u)

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states at time T from the uniform law, where the reverse chain starts."""
        if self.space.sizes is not None:
            return self.space.uniform(n, generator=generator)
        shape = (n, self.space.sites)
        return torch.randint(self.space.states, shape, generator=generator, device=generator.device, dtype=torch.uint8)

    def start_law(self) -> Tensor:
        """Return the uniform law of a site."""
        if self.space.sizes is not None:
            return self._own_uniform(torch.device("cpu"))
        return torch.full((self.space.states,), 1 / self.space.states, dtype=torch.float64)

    def _own_uniform(self, device: torch.device) -> Tensor:
        """Uniform law of every site over the states that it has, (sites, states) float64."""
        allowed = self.space.allowed(device)
        return allowed / allowed.sum(1, keepdim=True, dtype=torch.float64)
