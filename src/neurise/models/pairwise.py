"""Potts and Ising couplings by maximum likelihood, pseudo-likelihood or interaction screening: an energy alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from neurise.alphabet import Symbols
from neurise.categorical import draw, uniforms
from neurise.mcmc import Diagnostics
from neurise.modeling.model import Request
from neurise.modeling.search_space import TRAINING, LogUniform, SearchSpace
from neurise.modeling.site_terms import SiteTerms
from neurise.models._pairwise.fitted import FittedEnergy
from neurise.models._pairwise.law import LIMIT, PairwiseLaw
from neurise.training.settings import Training


@dataclass(kw_only=True, eq=False, repr=False)
class Pairwise(FittedEnergy):
    r"""The law :math:`\mu(x) \propto \exp\bigl(\sum_{i<j} W_{ij}(x_i, x_j) + \sum_i f_i(x_i)\bigr)`: an energy, and nothing else.

    By default its likelihood is maximised, with exact sums over all configurations, on a graph that is found along with the
    couplings (:mod:`neurise.energies.learning`). Where the sums cannot be done, for want of a narrow graph, Markov chains that
    start at the rows take their place. Where these do not mix, or where a loss, a penalty, ``max_steps``, a callback or a
    checkpoint ask for the training loop, every site's conditional is learnt: a softmax of its fields and of one row of
    couplings. The loss of all of them is convex, and least at the true tables.

    Rows are drawn exactly where the sums can be done (up to 2^25 configurations of the sites that are free, or a narrow graph),
    and else by parallel tempering, which warns where it did not mix. Each class label has a law of its own.

    Args:
        estimator: "maximum_likelihood", which raises an error where neither sums nor chains will do; "loss" for the training loop;
            None chooses as above.
        loss: "cross_entropy" (pseudo-likelihood), "screening", "weighted_screening(alpha)" or "tempered_screening(gamma)".
        edges: the pairs of sites that may interact, (pairs, 2); None means all pairs.
        l1: penalty on the size of each coupling, for sparse ones: \|J\|, or the Frobenius norm of the table over p. It draws
            couplings towards zero, and a threshold must say which are zero.
        l2: penalty on its square. None is p²/8N for N rows: that of couplings J which are a priori about as large as 1.
        sweeps: sweeps of the Markov chains that rows are taken from; None lets them choose.
        order: has no influence on the law.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.Pairwise().fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    >>> bool(model.conditional([[0, 0, 1]], site=0)[0, 0] > 0.9)   # the first two sites agree
    True
    """

    search_space: ClassVar[SearchSpace] = {
        "l2": LogUniform(1e-7, 1e-2),
        "training__learning_rate": LogUniform(
            1e-2, 1.0
        ),  # a convex loss of tables: steps may be longer than a network's
        "training__batch_size": TRAINING["training__batch_size"],
    }

    changeable: ClassVar[tuple[str, ...]] = ("sweeps",)

    steps: int | None = 2000
    training: Training = Training(batch_size=1024, learning_rate=0.3, weight_decay=0.0, average_decay=0.99)

    diagnostics_: Diagnostics = field(init=False)
    """Of the last ``sample`` by parallel tempering: how well its chains mixed."""

    @property
    def couplings_(self) -> np.ndarray:
        r"""Couplings in the zero-sum gauge, symmetric, in the user's order of sites.

        Two states: the J of :math:`e^{\sum J\sigma\sigma + \sum h\sigma}`, (sites, sites), where σ is −1 for the first symbol
        of the alphabet and +1 for the second. More: tables :math:`W_{ij}(a, b)`, (sites, sites, states, states). With labels,
        one such array for each class, in the order of the sorted labels, along a first axis. A pair that was left out, or
        with a site that never varies, has 0.
        """
        schema, network = self._fitted(), self._network
        sites, states = schema.space.sites, schema.space.states
        first, second = np.array(schema.order)[network.pairs].T
        result = np.zeros((len(network.couplings), sites, sites, states, states))
        for kind, array in enumerate(result):
            tables = network.tables(kind)
            array[first, second], array[second, first] = tables, tables.swapaxes(1, 2)
        result = result[..., 1, 1] if states == 2 else result
        return result if schema.labels is not None else np.asarray(result[0])

    @property
    def fields_(self) -> np.ndarray:
        r"""Fields in the zero-sum gauge, in the user's order of sites: h of spins, (sites,), or f, (sites, states).

        With labels, one such array for each class along a first axis. A site that never varies has 0.
        """
        schema = self._fitted()
        kinds = range(len(self._network.fields))
        result = np.stack([self._network.site_fields(kind)[np.argsort(schema.order)] for kind in kinds])
        result = result[..., 1] if schema.space.states == 2 else result
        return result if schema.labels is not None else np.asarray(result[0])

    def conditional(self, X: Symbols, site: Any, y: Any = None) -> np.ndarray:
        r"""Probabilities of each symbol at a site given all others, (N, states) in the order of the alphabet: exact.

        The site is a number from 0, or the name of a column. Without y, a model with labels gives the conditional of their
        mixture, which needs the likelihood.
        """
        schema = self._fitted()
        x, place = schema.encode(X), schema.order.index(schema.site_of(site))
        if schema.labels is None or y is not None:
            answers = self._log_conditionals(x, schema.encode_labels(y, len(x)), place)
            return np.concatenate([answer[:, 0].exp().numpy() for _, answer in answers])[
                :, : schema.space.digits[place]
            ]
        joint = []
        for token in range(schema.space.digits[place]):
            x[:, place] = token
            terms = [np.log(w) + self._log_prob(x, label).numpy() for label, w in self._label_rows(None, len(x))]
            joint.append(np.logaddexp.reduce(terms))
        log_joint = np.stack(joint, axis=-1)
        return np.asarray(np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=-1, keepdims=True)))

    def pseudo_log_likelihood(self, X: Symbols, y: Any = None) -> np.ndarray:
        r"""Return :math:`\sum_i \log \mu(x_i \mid x_{-i})` of each row in nats, (N,): known whatever the number of sites."""
        schema = self._fitted()
        x = schema.encode(X)
        labels = schema.encode_labels(y, len(x))
        if schema.labels is not None and labels is None:
            raise ValueError("the pseudo-likelihood of a model with labels needs the labels: give y")
        answers = self._log_conditionals(x, labels)
        parts = [answer.gather(-1, x[rows].long()[..., None]).sum((1, 2)).numpy() for rows, answer in answers]
        return np.concatenate(parts)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Return the whole law."""
        if start is not None:
            raise NotImplementedError("a Pairwise model is no reverse chain: there is no law that it starts from")
        law = self._law(0 if label is None else int(label))
        self._require_enumerable(law, "the law")
        return law.probabilities().to(self.device_)

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        labels = torch.zeros(len(x), dtype=torch.int64) if y is None else y.cpu()
        result = torch.empty(len(x), dtype=torch.float64)
        for kind in np.unique(labels).tolist():
            law = self._law(kind)
            self._require_summable(law, "the likelihood")
            result[labels == kind] = law.log_weight(x[labels == kind]) - law.log_z()
        return result

    def site_terms(self, x: Tensor, y: Tensor | None, generator: Generator) -> SiteTerms:
        """Return the log-conditionals given all other sites."""
        answers = self._log_conditionals(x, y)
        terms = torch.cat([answer.gather(-1, x[rows].long()[..., None]).squeeze(-1) for rows, answer in answers])
        try:
            return SiteTerms(terms, self._log_prob(x, y), "others", "log_prob")
        except NotImplementedError:
            return SiteTerms(terms, terms.sum(1), "others", "pseudo_log_likelihood")

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        raise NotImplementedError("a Pairwise model has no bound on its likelihood; see pseudo_log_likelihood")

    def _draw(self, request: Request) -> Tensor:
        self._refuse(sweeps=request.sweeps, start=request.start)
        n, y, clamp, generator = request.n, request.y, request.clamp, request.generator
        source = torch.Generator()  # the chains run on the CPU
        source.manual_seed(int(torch.randint(2**62, (1,), generator=generator, device=generator.device)))
        given = self.schema_.constant[None]
        if clamp is not None:
            given = torch.where(clamp[1], clamp[0].long(), given)
        patterns, which = torch.unique(given, dim=0, return_inverse=True)
        which = which.expand(n)
        if y is None and self.schema_.labels is not None:
            y = draw(self._log_label_odds(patterns)[which], uniforms(n, generator=source)).long()
        labels = torch.zeros(n, dtype=torch.int64) if y is None else y.cpu()
        x = torch.empty((n, self.space_.sites), dtype=torch.uint8)
        for kind in np.unique(labels).tolist():
            model = self._network.interactions(kind)
            for number, pattern in enumerate(patterns.numpy()):
                rows = torch.nonzero((labels == kind) & (which == number)).flatten()
                if len(rows):
                    law = PairwiseLaw(model, pattern)
                    x[rows], found = law.draw(len(rows), generator=source, sweeps=self.sweeps)
                    self._report(found)
        return x

    def _log_label_odds(self, patterns: Tensor) -> Tensor:
        r"""Posterior of the labels, :math:`\log \pi_y + \log Z_y(\text{given}) - \log Z_y` normalised, (patterns, classes)."""
        assert self.schema_.labels is not None
        odds = torch.from_numpy(self.schema_.labels.frequencies).log().repeat(len(patterns), 1)
        for kind in range(odds.shape[1]):
            model, whole = self._network.interactions(kind), self._law(kind)
            self._require_summable(whole, "the law of the labels when sites are given (give y instead)")
            parts = [PairwiseLaw(model, pattern).log_z() for pattern in patterns.numpy()]
            odds[:, kind] += torch.tensor(parts, dtype=torch.float64) - whole.log_z()
        return odds.log_softmax(1)

    def _report(self, found: Diagnostics | None) -> None:
        if found is None:
            return
        self.diagnostics_ = found
        if not found.mixed:
            warnings.warn(
                f"parallel tempering did not mix: {'; '.join(found.problems)}; a longer run may help: "
                f"sweeps={4 * found.sweeps}",
                stacklevel=5,
            )

    def _law(self, kind: int) -> PairwiseLaw:
        return PairwiseLaw(self._network.interactions(kind), self.schema_.constant.numpy())

    def _require_summable(self, law: PairwiseLaw, what: str) -> None:
        if not law.summable:
            self._require_enumerable(law, what)

    def _require_enumerable(self, law: PairwiseLaw, what: str) -> None:
        if not law.enumerable:
            raise NotImplementedError(
                f"{what} needs the sum over all {self.space_.states}^{int(law.free.sum())} configurations, and the limit is "
                f"{LIMIT:,}; pseudo_log_likelihood is known for any number of sites"
            )
