"""The product of the marginals: the best model without any dependence between sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from neurise.batching import batches
from neurise.categorical import draw, uniforms
from neurise.modeling.model import Request
from neurise.modeling.site_terms import SiteTerms
from neurise.modeling.solved import SolvedModel


@dataclass(kw_only=True, eq=False, repr=False)
class Independent(SolvedModel):
    r"""Sites are independent: :math:`P(x \mid y) = \prod_i \hat\mu_i(x_i \mid y)`, with the marginals of the data.

    A baseline. A model that scores no better has learnt nothing about how sites depend on each other.

    Args:
        order: the sites in the order in which the model takes them; of no consequence here.
        alphabet: all symbols, where the sample may lack some. One that never occurs has probability zero.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.Independent().fit(X)
    >>> round(float(model.log_prob([[0, 0, 1]])[0]), 3)         # three fair coins: −3 log 2
    -2.079
    """

    takes_gaps: ClassVar[bool] = True

    def _count(self, x: Tensor, y: Tensor, weights: Tensor) -> dict[str, Tensor]:
        space, classes = self.schema_.space, max(1, self.schema_.classes)
        counts = torch.zeros(classes, space.sites, space.states, dtype=torch.float64)
        for token in range(space.states):
            here = (x == token).double() * weights[:, None]
            counts[:, :, token] = torch.zeros(classes, space.sites, dtype=torch.float64).index_add_(0, y, here)
        total = counts.sum(-1, keepdim=True)
        every = counts.sum(0) / counts.sum((0, 2))[:, None]
        return {"marginals": torch.where(total > 0, counts / total, every)}  # of a class whose values are all missing

    def _check_tables(self, tables: Mapping[str, Tensor]) -> None:
        space, classes = self.schema_.space, max(1, self.schema_.classes)
        self._insist(tables, marginals=(torch.float64, (classes, space.sites, space.states)))
        marginals = tables["marginals"]
        if not bool((marginals >= 0).all() & ((marginals.sum(-1) - 1).abs() < 1e-6).all()):
            raise ValueError("the tensor marginals must hold probabilities that sum to 1 at every site")

    def _draw(self, request: Request) -> Tensor:
        self._refuse(sweeps=request.sweeps, start=request.start)
        n, y, clamp, generator = request.n, request.y, request.clamp, request.generator
        labels = self._class_of(y, n)
        if clamp is not None:
            values, given = (part.to(self.device_).expand(n, -1) for part in clamp)
            if y is None and self.schema_.labels is not None:
                labels = self._likely_labels(values, given, generator)
        log_marginals = self.tables_["marginals"].log()
        parts = []
        for rows in batches(n, 24 * log_marginals[0].numel()):
            shape = (rows.stop - rows.start, self.space_.sites)
            x = draw(log_marginals[labels[rows]], uniforms(shape[0] * shape[1], generator=generator).view(shape))
            parts.append(x if clamp is None else torch.where(given[rows], values[rows], x))
        return torch.cat(parts)

    def _likely_labels(self, values: Tensor, given: Tensor, generator: Generator) -> Tensor:
        """Draw a label for each row by its probability once the given sites are known."""
        assert self.schema_.labels is not None
        frequencies = torch.as_tensor(self.schema_.labels.frequencies, device=self.device_).log()
        seen = self._log_factors(values)  # (classes, n, sites)
        log_joint = frequencies[:, None] + torch.where(given, seen, 0.0).sum(-1)
        if not bool((log_joint > -torch.inf).any(0).all()):
            raise ValueError("the model gives the clamped values probability zero: nothing can be drawn")
        return draw(log_joint.T.softmax(-1).log(), uniforms(len(values), generator=generator)).long()

    def _log_factors(self, x: Tensor) -> Tensor:
        """Logarithm of each site's factor for every class, (classes, n, sites)."""
        sites = torch.arange(self.space_.sites, device=self.device_)
        return self.tables_["marginals"].log()[:, sites, x.to(self.device_).long()]

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        labels = self._class_of(y, len(x))
        return self._log_factors(x).sum(-1)[labels, torch.arange(len(x), device=self.device_)].cpu()

    def site_terms(self, x: Tensor, y: Tensor | None, generator: Generator) -> SiteTerms:
        """Return the logarithm of every factor."""
        terms = self._log_factors(x)[self._class_of(y, len(x)), torch.arange(len(x), device=self.device_)].cpu()
        return SiteTerms(terms, terms.sum(1), "chain", "log_prob")

    def _summable(self, missing: Tensor) -> Tensor:
        return torch.ones(len(missing), dtype=torch.bool)

    def _log_marginal(
        self, x: Tensor, missing: Tensor, y: Tensor | None, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        labels = self._class_of(y, len(x))
        factors = self._log_factors(x)[labels, torch.arange(len(x), device=self.device_)]
        value = factors.masked_fill(missing.to(self.device_), 0.0).sum(-1).cpu()
        return value, torch.zeros_like(value)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Return the product of the marginals."""
        law = torch.ones(1, dtype=torch.float64, device=self.device_)
        marginals = self.tables_["marginals"][int(self._class_of(label, 1))]
        for marginal, states in zip(marginals, self.space_.digits, strict=True):
            law = (law[:, None] * marginal[:states]).flatten()
        return law
