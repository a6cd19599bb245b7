"""The contract of noise that touches one site per step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Generator, Tensor

from neurise.categorical import draw, uniforms
from neurise.space import Space


class SiteNoise(ABC):
    r"""A known forward chain that changes one site per step: step t = 0 … T − 1 maps X_t to X_{t+1} at site u(t).

    **Writing one.** A noise process is one file in ``noise/`` (or a module of another package, named by an entry point of the
    group ``neurise.noise``) whose class bears the file's name. ``NeurISE(chain=Chain(kind="my_noise"))`` makes it as
    ``MyNoise(space, keep_prob, cycles=…, steps=…)``. Subclass :class:`neurise.noise.round_robin.Turns`, a frozen dataclass
    that knows whose turn it is, and write what follows; T is ``num_steps``, u = ``site(t)``, and t, x_u and laws broadcast.

    - :meth:`corrupt` draws :math:`X_t \mid X_0` in one shot, and :meth:`target` says which token the network should find then.
    - :meth:`reverse` makes the Bayes kernel of one step from the conditional :math:`\mu_t(\cdot \mid x_{-u})`, and
      :meth:`push` pushes laws of one site through that kernel: exact laws are made of it.
    - :meth:`bridge` is the law of a step when both ends are known, for bounds and for clamped sites.
    - :meth:`start` draws what the reverse chain starts from.

    Columns of a table have alphabets of their own: ``space.sizes`` says how many of the p states each site has. Noise that
    draws a symbol draws it from the site's own, and says so by ``has_own_alphabets``; ``u`` are the sites, for laws over p
    states of sites that differ.

    Noise with a symbol of its own, token p, also says how laws are :meth:`spread`, what a sweep may :meth:`redraw`, and which
    paths a bound averages over, :meth:`pinned`.

    Everything the network is not asked for is exact, so tests compare it with enumerated kernels.
    """

    space: Space
    keep_prob: float
    cycles: int

    num_steps: int  # T
    tokens: int  # that a site may hold on the way: p, or p + 1 where noise has a symbol of its own
    is_hard: bool  # one visit erases a site, so that a visited site tells nothing
    has_own_alphabets: ClassVar[bool] = False  # whether it serves a space with ``sizes``

    @property
    def kept_bonus(self) -> float | None:
        r"""Return :math:`\log k(b \mid b) - \log k(b \mid a)`, a ≠ b, where it is one number for all tokens and steps.

        Fast samplers draw with it. None says that the kernel of :meth:`reverse` has another form; then they ask for that.
        """
        return 0.0 if self.is_hard else None

    @abstractmethod
    def top(self, cycle: int) -> int:
        """Return how many sites a cycle touches: all of them, or fewer in the last one."""

    @abstractmethod
    def site(self, t: Tensor) -> Tensor:
        """Return the site that step t noises, u = t mod q."""

    @abstractmethod
    def visits(self, t: Tensor) -> Tensor:
        """Return how often each site was touched before time t, (..., sites)."""

    @abstractmethod
    def visits_of_site(self, t: Tensor) -> Tensor:
        """Return how often the site that step t noises was touched before, (...)."""

    @abstractmethod
    def erased(self, t: Tensor) -> Tensor:
        """Return which sites tell nothing of the others at time t, (..., sites) booleans."""

    @abstractmethod
    def corrupt(self, x_0: Tensor, t: Tensor, *, generator: Generator) -> Tensor:
        r"""Draw :math:`X_t \mid X_0`, rows (n, sites) at their own times (n,)."""

    def pinned(self, x_0: Tensor, t: Tensor, *, generator: Generator) -> Tensor:
        r"""Draw :math:`X_t \mid X_0` on paths that end in a state from which the reverse chain may start.

        A lower bound on the likelihood averages over these. They are all paths where the start gives every state a chance.
        """
        return self.corrupt(x_0, t, generator=generator)

    @abstractmethod
    def target(self, x_0: Tensor, x_t: Tensor, u: Tensor) -> Tensor:
        """Return the tokens that follow the learnt conditional of the sites u given the others in x_t, (n,) or (n, K)."""

    def visited(self, token: Tensor, u: Tensor | None = None, *, generator: Generator) -> Tensor:
        r"""Draw what tokens of the sites u become by one visit, :math:`X_{t+1,u} \mid X_{t,u}`, of any shape."""
        log_law = self.log_noised_token(token, torch.ones_like(token, dtype=torch.int64), u)
        return draw(log_law, uniforms(token.numel(), generator=generator).view(token.shape)).to(token.dtype)

    @abstractmethod
    def log_noised(self, law: Tensor, visits: Tensor, u: Tensor | None = None) -> Tensor:
        """Return the logarithm of what v visits make of the law of one site, (..., states) float64 → (..., states).

        It is the law of a site that is still one of the p states. Without u the law is over all that the site may hold.
        """

    def spread(self, law: Tensor, visits: int) -> Tensor:
        r"""Push laws of one site through v visits, :math:`\sum_b k^v(a \mid b)\,\lambda(b)`, (..., states) → (..., tokens).

        The law is over the states that the site has.
        """
        tokens = torch.arange(law.shape[-1], device=law.device)
        return law @ self.log_noised_token(tokens, torch.full_like(tokens, visits)).exp()

    @abstractmethod
    def reverse(self, log_conditional: Tensor, x_u: Tensor, t: Tensor) -> Tensor:
        r"""Return the Bayes kernel of reverse step t in logarithms, (..., tokens), given :math:`X_{t+1,u}` = x_u."""

    @abstractmethod
    def push(self, law: Tensor, conditional: Tensor, t: int) -> Tensor:
        """Push laws of one site (..., tokens) through the kernel of :meth:`reverse`."""

    def redraw(self, log_conditional: Tensor, x_u: Tensor) -> Tensor:
        r"""Return the law from which a sweep redraws a site that holds x_u, in logarithms, (..., tokens).

        It must leave :math:`\mu_t` as it is: by default it is the conditional itself, whatever the site holds.
        """
        return log_conditional

    def push_redraw(self, law: Tensor, conditional: Tensor) -> Tensor:
        """Push laws of one site (..., tokens) through the kernel of :meth:`redraw`."""
        return conditional * law.sum(dim=-1, keepdim=True)

    @abstractmethod
    def bridge(self, x_0u: Tensor, x_u: Tensor, t: Tensor) -> Tensor:
        r"""Return the law of :math:`X_{t,u}` given :math:`X_{0,u}` and :math:`X_{t+1,u}` in logarithms, (..., tokens)."""

    @abstractmethod
    def log_noised_token(self, token: Tensor, visits: Tensor, u: Tensor | None = None) -> Tensor:
        """Return the logarithm of the law of what a token becomes after v visits, (..., tokens) float64."""

    @abstractmethod
    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states at time T, where the reverse chain starts, (n, sites)."""

    @abstractmethod
    def start_law(self) -> Tensor:
        """Return the law of a site at the start, (tokens,) float64, on the CPU; (sites, tokens) where they differ."""

    def start_divergence(self) -> float:
        r"""Return the Kullback–Leibler divergence of :math:`X_T \mid X_0`, as :meth:`pinned` draws it, from the start.

        In nats, and the same for every x_0.
        """
        visits = self.visits(torch.tensor(self.num_steps))
        u = torch.arange(len(visits))
        log_q = self.log_noised_token(torch.zeros_like(visits), visits, u)  # (sites, tokens)
        log_start = self.start_law().log()
        return float(torch.where(log_q > -torch.inf, log_q.exp() * (log_q - log_start), 0.0).sum())
