r"""Small families of conditionals whose every law can be written out: linear logits, all contexts, all configurations.

In context c the logits are :math:`f_c(a) = \langle D_c(a), \theta \rangle`. A row x is seen by several conditionals, one a step,
and gives each of them a context and a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from neurise.interactions import contrasts
from neurise.space import Space

LIMIT = 2**12
"""Configurations up to which the matrices here stay small."""


@dataclass(frozen=True, eq=False)
class ConditionalFamily:
    """Conditionals with shared parameters, and the joint law that belongs to them.

    ``energies`` are the features of :math:`\\mu \\propto e^{\\langle E(x), \\theta\\rangle}`; None means that the law is the
    product of the conditionals, so that they are the steps of an autoregressive model.
    """

    space: Space
    design: Tensor  # (contexts, states, parameters)
    context: Tensor  # (steps, p^q): the context in which a step sees a configuration
    token: Tensor  # (steps, p^q): the token that it sees there
    energies: Tensor | None = None  # (p^q, parameters)

    @property
    def parameters(self) -> int:
        """How many numbers θ has."""
        return self.design.shape[-1]

    def logits(self, theta: Tensor) -> Tensor:
        """Logits of every context, (..., contexts, states)."""
        return torch.einsum("cad,...d->...ca", self.design, theta)

    def log_law(self, theta: Tensor) -> Tensor:
        """Logarithm of the joint law, (..., p^q)."""
        if self.energies is not None:
            return torch.log_softmax(theta @ self.energies.T, dim=-1)
        steps = self.logits(theta).log_softmax(-1)[..., self.context, self.token]  # (..., steps, p^q)
        return steps.sum(dim=-2)

    def score(self, theta: Tensor) -> Tensor:
        r"""Score of the joint law, :math:`\partial_\theta \log\mu_\theta(x)`, (p^q, parameters)."""
        if self.energies is not None:
            return self.energies - self.log_law(theta).exp() @ self.energies
        expected = torch.einsum("ca,cad->cd", self.logits(theta).softmax(-1), self.design)
        steps = self.design[self.context, self.token] - expected[self.context]  # (steps, p^q, parameters)
        return steps.sum(dim=0)

    def counts(self, law: Tensor) -> Tensor:
        """Mass that a law gives to each token in each context, (..., contexts, states)."""
        contexts, states = self.design.shape[:2]
        mass = law.new_zeros(*law.shape[:-1], contexts * states)
        for context, token in zip(self.context, self.token, strict=True):
            mass.index_add_(-1, context * states + token, law)
        return mass.reshape(*law.shape[:-1], contexts, states)


def autoregressive(space: Space, conditionals: str = "pairwise") -> ConditionalFamily:
    r"""Steps :math:`\mu(x_u \mid x_{u+1}, \dots)` of hard noise with erased sites hidden, each with parameters of its own.

    ``pairwise`` logits are :math:`f_u(a) + \sum_{v>u} W_{uv}(a, x_v)`; ``saturated`` ones a free table for each context;
    ``independent`` ones do not look at the context at all.
    """
    space.require_enumerable(LIMIT)
    basis = torch.from_numpy(contrasts(space.states))  # (states, states − 1)
    x = space.configurations().long()
    blocks, contexts, first = [], [], 0
    for site in range(space.sites):
        after = space.sites - 1 - site
        seen = Space(after, space.states).configurations().long() if after else torch.zeros(1, 0, dtype=torch.int64)
        ones = torch.ones(len(seen), 1, dtype=torch.float64)
        looks = {
            "pairwise": torch.cat([ones, basis[seen].flatten(1)], dim=1),
            "saturated": torch.eye(len(seen), dtype=torch.float64),
            "independent": ones,
        }
        if conditionals not in looks:
            raise ValueError(f"conditionals must be one of {', '.join(looks)}; got {conditionals!r}")
        blocks.append(torch.einsum("ck,af->cakf", looks[conditionals], basis).flatten(2))
        contexts.append(first + torch.arange(space.size) % space.states**after)
        first += len(seen)
    widths = [block.shape[-1] for block in blocks]
    design = torch.zeros(first, space.states, sum(widths), dtype=torch.float64)
    row = column = 0
    for block, width in zip(blocks, widths, strict=True):
        design[row : row + len(block), :, column : column + width] = block
        row, column = row + len(block), column + width
    return ConditionalFamily(space, design, torch.stack(contexts), x.T)


def pseudolikelihood(space: Space, edges: Sequence[tuple[int, int]]) -> ConditionalFamily:
    r"""Conditionals :math:`\mu(x_u \mid x_{-u})` of all sites of one pairwise law, whose tables both sites of a pair share.

    A step's logits are the energies of the states it chooses from: what does not depend on :math:`x_u` drops out.
    """
    space.require_enumerable(LIMIT)
    basis = torch.from_numpy(contrasts(space.states))
    x = space.configurations().long()
    local = basis[x]  # (p^q, sites, states − 1)
    pairs = [torch.einsum("xf,xg->xfg", local[:, i], local[:, j]).flatten(1) for i, j in edges]
    energies = torch.cat([local.flatten(1), *pairs], dim=1)
    places = torch.arange(space.size)
    contexts, blocks = [], []
    for site in range(space.sites):
        after = space.states ** (space.sites - 1 - site)
        others = places // (after * space.states) * after + places % after
        contexts.append(site * space.size // space.states + others)
        split = energies.view(space.states**site, space.states, after, -1).transpose(1, 2)
        blocks.append(split.flatten(0, 1))  # (p^{q−1}, states, parameters)
    return ConditionalFamily(space, torch.cat(blocks), torch.stack(contexts), x.T, energies)


def spin_glass(family: ConditionalFamily, beta: float, seed: int = 0) -> Tensor:
    r"""Parameters of a spin glass: :math:`W = \pm\tfrac{2\beta}{p}\,(p\,\delta_{ab} - 1)` on all pairs, fields of a tenth.

    For two states these are the couplings ±β of Ising spins, for more Potts couplings ±2β.
    """
    generator = torch.Generator().manual_seed(seed)
    features, sites = family.space.states - 1, family.space.sites
    unit = 2 * beta / family.space.states
    eye = torch.eye(features, dtype=torch.float64)

    def signs(*shape: int) -> Tensor:
        return 2.0 * torch.randint(2, shape, generator=generator).double() - 1

    if family.energies is not None:
        pairs = (family.parameters - sites * features) // features**2
        couplings = signs(pairs)[:, None, None] * eye
        return unit * torch.cat([0.1 * signs(sites * features), couplings.flatten()])
    parts = []
    for site in range(sites):
        couplings = signs(sites - 1 - site)[:, None, None] * eye
        parts.append(torch.cat([0.1 * signs(1, features), couplings.flatten(0, 1)]).flatten())
    theta = unit * torch.cat(parts)
    if len(theta) != family.parameters:
        raise ValueError("a spin glass has pairwise conditionals; this family has others")
    return theta
