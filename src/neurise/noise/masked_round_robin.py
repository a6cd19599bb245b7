"""The masked round-robin chain: visit one site at a time, in order, and keep it or mask it for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from neurise.noise.round_robin import Turns


@dataclass(frozen=True)
class MaskedRoundRobin(Turns):
    r"""Step t touches site :math:`u = t \bmod q` alone and keeps it with probability ε = ``keep_prob``, else masks it.

    .. math:: k(a \mid b) = \varepsilon\,\delta_{ab} + (1 - \varepsilon)\,\delta_{ap}, \qquad k(a \mid p) = \delta_{ap}

    The mask is token p, and stays. After v visits a site is still there with probability :math:`\varepsilon^v`. Which sites
    are masked does not depend on the data, so what is learnt is the conditional of the data themselves,
    :math:`P(x_{0,u} = a \mid \text{unmasked sites of } x_t)`, the same at all times: p numbers, as other noise has them.

    The reverse chain starts from masks alone. For the same reason :math:`P(X_0 \mid X_T = \text{masks}) = P(X_0)`: with exact
    conditionals it ends with the law of the data, however soft the noise. That takes a visit to every site, T ≥ q.
    """

    has_own_alphabets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tokens", self.space.states + 1)  # p and the mask
        if self.num_steps < self.space.sites:
            raise ValueError(
                f"steps={self.steps} visits {self.steps} of {self.space.sites} sites, and a chain that starts from masks "
                "would leave the others masked; give at least as many steps as sites"
            )

    def corrupt(self, x_0: Tensor, t: Tensor, *, generator: Generator) -> Tensor:
        r"""Draw :math:`X_t \mid X_0` in one shot: every site keeps its token with :math:`\varepsilon^{v}`, else is masked.

        Sixteen bits: with p = 256 the mask is token 256.
        """
        if self.is_hard:  # nothing is left to chance
            return self._masked(x_0, self.erased(t))
        return self._masked(x_0, torch.rand(x_0.shape, generator=generator, device=x_0.device) >= self.keep_probs(t))

    def pinned(self, x_0: Tensor, t: Tensor, *, generator: Generator) -> Tensor:
        r"""Draw :math:`X_t \mid X_0` on paths that end in masks alone, where the reverse chain starts.

        With v of V visits made, Bayes' rule gives

        .. math:: P(X_{t,i} = p \mid X_{T,i} = p) = \frac{1 - \varepsilon^{v}}{1 - \varepsilon^{V}} .

        Given :math:`X_{t+1}`, the rest of the path says nothing more of :math:`X_t`: :meth:`bridge` is that of all paths.
        """
        last = self.keep_probs(torch.full_like(t, self.num_steps))
        gone = (1 - self.keep_probs(t)) / (1 - last)
        return self._masked(x_0, torch.rand(x_0.shape, generator=generator, device=x_0.device) < gone)

    def _masked(self, x_0: Tensor, gone: Tensor) -> Tensor:
        return x_0.to(torch.int16).masked_fill(gone, self.space.states)

    def target(self, x_0: Tensor, x_t: Tensor, u: Tensor) -> Tensor:
        """Return the tokens of the data: a mask at u says nothing of the one that it covers."""
        return x_0.gather(-1, u.view(len(u), -1)).view(u.shape)

    def log_noised(self, law: Tensor, visits: Tensor, u: Tensor | None = None) -> Tensor:
        """Return the logarithm of the law itself: it is the law of what a mask covers, and no visit changes that."""
        return torch.log(law)

    def log_noised_token(self, token: Tensor, visits: Tensor, u: Tensor | None = None) -> Tensor:
        r"""Logarithm of :math:`k^v(a \mid b) = \varepsilon^v \delta_{ab} + (1 - \varepsilon^v)\,\delta_{ap}`, (..., tokens)."""
        tokens = torch.arange(self.tokens, device=token.device)
        keep = self._power(visits)[..., None]
        return torch.log(keep * (token[..., None] == tokens) + (1 - keep) * (tokens == self.space.states))

    def reverse(self, log_conditional: Tensor, x_u: Tensor, t: Tensor) -> Tensor:
        r"""Bayes kernel of one reverse step, in logarithms, (..., tokens).

        A token was there before. Under a mask, with v visits before step t,

        .. math::
            P(X_{t,u} = p \mid X_{t+1,u} = p) = \frac{1 - \varepsilon^v}{1 - \varepsilon^{v+1}}, \qquad
            P(X_{t,u} = a \mid X_{t+1,u} = p) = \frac{\varepsilon^v - \varepsilon^{v+1}}{1 - \varepsilon^{v+1}}\,
            \mu(a \mid x_{-u}),

        because a site is masked at time t with :math:`1 - \varepsilon^v`, and else by step t with :math:`1 - \varepsilon`.
        In the last cycle, v = 0, no mask is left.
        """
        log_conditional = torch.log_softmax(log_conditional, dim=-1)
        stay, show = (torch.log(chance).to(log_conditional.dtype) for chance in self._stay(t))
        shown = show[..., None] + log_conditional
        leading = torch.broadcast_shapes(shown.shape[:-1], x_u.shape)  # type: ignore[no-untyped-call]
        covered = torch.cat([shown.expand(*leading, -1), stay.expand(leading)[..., None]], dim=-1)
        return torch.where((x_u == self.space.states)[..., None], covered, self._held(x_u, covered.dtype))

    def push(self, law: Tensor, conditional: Tensor, t: int) -> Tensor:
        r"""Push laws of one site through the kernel of :meth:`reverse`, (..., tokens).

        .. math:: \nu(a) = \lambda(a) + (1 - s)\,\lambda(p)\,\mu(a), \qquad \nu(p) = s\,\lambda(p), \qquad
            s = \frac{1 - \varepsilon^v}{1 - \varepsilon^{v+1}}
        """
        stay, show = self._stay(torch.tensor(t, device=law.device))
        mask = law[..., -1:]
        return torch.cat([law[..., :-1] + show * mask * conditional, stay * mask], dim=-1)

    def redraw(self, log_conditional: Tensor, x_u: Tensor) -> Tensor:
        r"""Redraw a token from the conditional, and leave a mask.

        Given which sites are masked, :math:`\mu(a \mid x_{-u})` is the law of an unmasked site. So sweeps leave the law of
        :math:`X_t` as it is, also that of paths which end in masks.
        """
        impossible = torch.full_like(log_conditional[..., :1], -torch.inf)
        drawn = torch.cat([log_conditional, impossible], dim=-1)
        return torch.where((x_u == self.space.states)[..., None], self._held(x_u, drawn.dtype), drawn)

    def push_redraw(self, law: Tensor, conditional: Tensor) -> Tensor:
        r"""Push laws of one site through the kernel of :meth:`redraw`: :math:`\nu(a) = \mu(a) \sum_{b < p} \lambda(b)`."""
        return torch.cat([conditional * law[..., :-1].sum(dim=-1, keepdim=True), law[..., -1:]], dim=-1)

    def bridge(self, x_0u: Tensor, x_u: Tensor, t: Tensor) -> Tensor:
        r"""Law of :math:`X_{t,u}` when its past :math:`x_{0,u}` and its future :math:`\tilde x_u` are known, in logarithms.

        It is the reverse kernel with the conditional of someone who knows: :math:`\mu(a) = \delta_{a, x_{0,u}}`.
        """
        known = x_0u[..., None] == torch.arange(self.space.states, device=x_0u.device)
        return self.reverse(torch.log(known.double()), x_u, t)

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Return n rows of masks."""
        return torch.full((n, self.space.sites), self.space.states, dtype=torch.int16, device=generator.device)

    def start_law(self) -> Tensor:
        """Return the law of a mask."""
        law = torch.zeros(self.tokens, dtype=torch.float64)
        law[-1] = 1
        return law

    def start_divergence(self) -> float:
        """Return 0: the paths of :meth:`pinned` end where the reverse chain starts."""
        return 0.0

    def _power(self, visits: Tensor) -> Tensor:
        return torch.pow(torch.tensor(self.keep_prob, dtype=torch.float64, device=visits.device), visits)

    def _stay(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities that a mask after step t was one before it, and that it was a token, (...) float64."""
        visits = self.visits_of_site(t)
        before, after = self._power(visits), self._power(visits + 1)
        return (1 - before) / (1 - after), (before - after) / (1 - after)

    def _held(self, x_u: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the logarithm of the law of a site that stays what it is, (..., tokens)."""
        return torch.log((x_u[..., None] == torch.arange(self.tokens, device=x_u.device)).to(dtype))
