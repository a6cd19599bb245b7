"""The theorem and its corollary, term by term, and a sharper form of both."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise import exact
from neurise.batching import batches
from neurise.laws import as_law, distance
from neurise.theory.curves import noised_laws


class StepErrors(NamedTuple):
    r"""TV between the learnt and the true reverse kernel of each step, over the states :math:`\tilde x` it may start from."""

    largest: Tensor  # (T,)
    mean: Tensor  # (T,), weighted by μ_{t+1}


class Terms(NamedTuple):
    r"""Both sides of the theorem, and what lies between them.

    .. math::
        \mathrm{TV}(\hat\mu_0, \mu_0)
        \le \underbrace{\mathrm{TV}(\pi, \mu_T) + \sum_t \bar\eta_t}_{\text{sharp}}
        \le \mathrm{TV}(\pi, \mu_T) + \sum_t \max_{\tilde x} \mathrm{TV}(\hat k_t, k_t)
        \le \underbrace{\delta_T + \gamma + T\eta}_{\text{the paper's}}

    :math:`\pi` is the law that the reverse chain starts from and :math:`\bar\eta_t` the mean of
    :math:`\mathrm{TV}(\hat k_t(\cdot \mid \tilde x), k_t(\cdot \mid \tilde x))` over :math:`\tilde x \sim \mu_{t+1}`.

    The first inequality is the paper's telescoping sum, taken from the other end: let m steps of the chain that starts
    from :math:`\mu_T` be true and the rest learnt. Up to there its law is :math:`\mu_{t+1}` exactly, so that replacing one
    more kernel costs the mean over :math:`\mu_{t+1}`, and the learnt kernels that follow can only bring laws closer. The
    learnt chain from :math:`\pi` is within :math:`\mathrm{TV}(\pi, \mu_T)` of the learnt chain from :math:`\mu_T`.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> from neurise.exact import ExactConditionals
    >>> oracle = ExactConditionals(law, noise)
    >>> found = theory.terms(oracle, law)
    >>> round(found.sum_mean, 6), found.paper.tv <= found.paper.bound
    (0.0, True)
    """

    paper: exact.Bound
    mismatch: float  # TV(start, μ_T), at most δ_T + γ
    sum_largest: float
    sum_mean: float

    @property
    def sharp(self) -> float:
        """The sharper bound."""
        return self.mismatch + self.sum_mean

    @property
    def mean_eta(self) -> float:
        """The mean of the errors over steps and likely states, beside the paper's η, their maximum."""
        return self.sum_mean / self.paper.T


@torch.no_grad()
def step_errors(model: exact.ReverseChain, pmf: Any, *, y: Any = None) -> StepErrors:
    r"""Compare the learnt and the true reverse kernel of every step in every state :math:`\tilde x` of the space.

    In a context of probability zero any kernel reverses the chain, and there is no error.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> from neurise.exact import ExactConditionals
    >>> oracle = ExactConditionals(law, noise)
    >>> theory.step_errors(oracle, law).largest.shape            # one number per step
    torch.Size([2])
    """
    conditionals = model.conditionals
    noise, space, device = conditionals.noise, conditionals.noise.space, conditionals.device
    space.require_enumerable()
    chains = model.label_terms(y)
    if len(chains) > 1:
        raise ValueError("the theorem is about one reverse chain; a model with labels has one for each: give y")
    laws = noised_laws(_in_order(as_law(pmf, space.size, "pmf").to(device), model), noise)
    mu_t = next(laws)
    largest, mean = [], []
    for t, mu_next in enumerate(laws):
        site, step = t % space.sites, torch.tensor([t], device=device)
        split = mu_t.view(space.states**site, space.states, -1).transpose(1, 2)  # (before, after, states)
        joint = split[:, None].expand(-1, space.states, -1, -1).reshape(space.size, space.states)
        worst, total = torch.zeros(2, dtype=torch.float64, device=device)
        for rows in batches(space.size, conditionals.bytes_per_row):
            x = space.configurations(rows.start, rows.stop, device=device)
            log_learnt = conditionals.log_conditional(step, noise.site(step), x, chains[0][0]).double().log_softmax(-1)
            mass = joint[rows].sum(dim=-1, keepdim=True)
            log_true = torch.where(mass > 0, (joint[rows] / mass).log(), log_learnt)
            learnt, true = (noise.reverse(log_law, x[:, site], step).exp() for log_law in (log_learnt, log_true))
            error = 0.5 * (learnt - true).abs().sum(dim=-1)
            worst = torch.maximum(worst, error.max())
            total = total + (mu_next[rows] * error).sum()
        largest.append(worst)
        mean.append(total)
        mu_t = mu_next
    return StepErrors(torch.stack(largest).cpu(), torch.stack(mean).cpu())


def terms(
    model: exact.ReverseChain, pmf: Any, start: Any = None, *, y: Any = None, errors: StepErrors | None = None
) -> Terms:
    """Evaluate every bound on the distance between the model's law and the pmf, from the uniform law or from ``start``.

    The errors of the steps do not depend on the start: they may be given, where several starts are compared.

    >>> from neurise import Space, theory
    >>> from neurise.noise.round_robin import RoundRobin
    >>> law, noise = [0.4, 0.1, 0.1, 0.4], RoundRobin(Space(2, 2), keep_prob=0.5, cycles=1)
    >>> from neurise.exact import ExactConditionals
    >>> oracle = ExactConditionals(law, noise)
    >>> found = theory.terms(oracle, law)
    >>> round(found.sum_mean, 6), found.paper.tv <= found.paper.bound
    (0.0, True)
    """
    noise = model.conditionals.noise
    size = noise.space.size
    if errors is None:
        errors = step_errors(model, pmf, y=y)
    bound = exact.bound(model, pmf, start, y=y)
    mismatch = bound.delta_T
    if start is not None:
        *_, last = noised_laws(_in_order(as_law(pmf, size, "pmf"), model), noise)
        mismatch = distance(_in_order(as_law(start, size, "start"), model), last)
    return Terms(bound, mismatch, float(errors.largest.sum()), float(errors.mean.sum()))


def _in_order(law: Tensor, model: exact.ReverseChain) -> Tensor:
    """Rearrange a law over the user's sites to one over the places of the model's order."""
    space = model.conditionals.noise.space
    return law.view([space.states] * space.sites).permute(list(model.order_)).reshape(-1)
