"""Models whose samples, likelihood and exact law come from single-site conditionals that run a chain backwards."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from neurise import checks, conditionals, discovery, exact, likelihood
from neurise.alphabet import Symbols
from neurise.chain_law import out_of_order
from neurise.conditionals.base import Conditionals, Frame, Ordered
from neurise.conditionals.energy_conditionals import EnergyConditionals
from neurise.conditionals.mixture import Mixture
from neurise.fields import Field
from neurise.modeling import partial_chains, partial_rows
from neurise.modeling.groups import Chain, Corrector
from neurise.modeling.loaded import load_exactly
from neurise.modeling.model import Model, Request
from neurise.modeling.site_terms import SiteTerms
from neurise.sampling.clamped import draw_clamped
from neurise.sampling.corrector import Sweeps, checked_sweeps
from neurise.sampling.reverse import sample

if TYPE_CHECKING:
    from neurise.modeling.trajectory import Chains

LISTED = 8
"""Products of an energy that a summary lists."""


@dataclass(kw_only=True, eq=False, repr=False)
class ChainModel(Model):
    r"""A model that knows :math:`\mu_t(x_u \mid x_{-u})`, however it has learnt it, and runs its chain backwards.

    ``fit`` ends with ``conditionals_``; everything here asks them and nothing else. Where they are a mixture, there are several
    chains, each with an order of its own, and a row comes from one of them.
    """

    changeable: ClassVar[tuple[str, ...]] = ("corrector__sweeps",)

    keep_prob: float = 0.0
    cycles: int = 1
    chain: Chain = Chain()
    corrector: Corrector = Corrector()

    conditionals_: Conditionals | Mixture = field(init=False)
    """After ``fit``: what drives the reverse chain, the likelihood and the exact law."""
    sweeps_: int = field(init=False, default=0)
    """How many sweeps ``fit`` found to do good, where ``corrector__sweeps`` leaves it to that."""
    effective_samples_: float = field(init=False)
    """Of the last ``sample`` with ``clamp``: how many independent samples its weighted particles were worth."""

    @abstractmethod
    def frame(self) -> Frame:
        """Make the chain for the fitted schema, and say which sites never vary."""

    @property
    def conditionals(self) -> Conditionals:
        """Return the learnt conditionals, which drive the reverse chain."""
        if self.is_mixture:
            raise NotImplementedError(
                f"a mixture over orders ({len(self.chains)} of them) knows its law and not the conditionals of single sites; "
                "a model with architecture__orders=1 knows both"
            )
        return self.chains[0].conditionals

    @property
    def chains(self) -> list[Ordered]:
        """Return the conditionals of every chain, with the order in which it takes the sites: one chain, or a mixture."""
        self._fitted()
        learnt = self.conditionals_
        return learnt.chains() if isinstance(learnt, Mixture) else [Ordered(learnt)]

    @property
    def is_mixture(self) -> bool:
        """Whether there are chains that take the sites in other orders than the model's."""
        return any(chain.order is not None for chain in self.chains)

    def conditional(self, X: Symbols, site: Any, step: int | None = None, y: Any = None) -> np.ndarray:
        r"""Probabilities of each symbol at a site given all others, (N, states) in the order of the site's alphabet.

        The site is a number from 0, or the name of a column.

        With ``step`` = t, where step t noises that site: the learnt conditional of the noised law μ_t. Without: the
        clean conditional :math:`\mu_0(x_u \mid x_{-u})`, from the network if it was taught it (``corrector__clean`` > 0), else
        from ratios of the exact likelihood. (Round-robin training alone visits site u only at t = u mod q: what the network
        says of other sites at t = 0 means nothing then.)
        """
        schema = self._fitted()
        x, place = schema.encode(X), schema.order.index(schema.site_of(site))
        if step is None and not self.knows_clean:
            if not self.has_likelihood:
                raise NotImplementedError(
                    "the clean conditional needs a network that was taught it (corrector__clean above 0), or the exact "
                    f"likelihood of hard noise with hide_noised=True; step={place} gives the learnt conditional of the law "
                    f"noised by {place} steps"
                )
            return self._ratios_at(x, place, y)[:, : schema.space.digits[place]]
        asked = self.conditionals
        noise = asked.noise
        if step is not None and step not in range(place, noise.num_steps, schema.space.sites):
            raise ValueError(
                f"step {step} does not noise site {site}: its steps are {place}, {place} + {schema.space.sites}, … "
                f"below {noise.num_steps}"
            )
        labels = schema.encode_labels(y, len(x))
        if schema.labels is not None and labels is None:
            raise ValueError("the conditional of a network needs the label: give y")
        asked = asked.clean if step is None else asked
        parts = []
        for rows in asked.blocks(len(x)):
            t, u = (torch.tensor([number], device=self.device_) for number in (step or 0, place))
            label = None if labels is None else labels[rows].to(self.device_)
            log_conditional = asked.log_conditional(t, u, x[rows].to(self.device_), label)
            parts.append(log_conditional.detach().double().softmax(-1).cpu().numpy())
        return np.concatenate(parts)[:, : schema.space.digits[place]]

    @property
    def knows_clean(self) -> bool:
        """Whether the conditionals of the data itself were learnt, at any site."""
        return bool(self.fitted_params_["corrector"].clean) and self.conditionals.clean.can_sweep

    @property
    def can_sweep(self) -> bool:
        """Whether there are conditionals of the data itself to sweep with: taught to the networks, or learnt apart."""
        taught = bool(self.fitted_params_["corrector"].clean) or self.conditionals.has_clean
        return taught and self.conditionals.clean.can_sweep

    @property
    def structure_(self) -> Any:
        """The couplings, fields and graph of the energy, where one was learnt: a :class:`neurise.structure.Structure`.

        Its errors come from the Fisher information, given the graph. Any other model is asked by
        :func:`neurise.structure.recover`, and so is one whose energy held-back rows gave no share.
        """
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit(X) first")
        found, way_out = self._energy, "neurise.structure.recover(model, X) finds couplings"
        if found is None:
            raise AttributeError(f"this {type(self).__name__} has learnt no energy; {way_out}")
        if self._energy_is_rejected:
            raise AttributeError(
                f"held-back rows gave the energy of this {type(self).__name__} no share, so that its couplings are not those "
                f"of the model; {way_out}"
            )
        return discovery.found("neurise.structure", "of_energy")(found, self.schema_)

    @property
    def _energy(self) -> EnergyConditionals | None:
        """The energy, where one was learnt."""
        learnt = self.conditionals_.modules() if self.__sklearn_is_fitted__() else ()
        return next((part for part in learnt if isinstance(part, EnergyConditionals)), None)

    @property
    def _energy_is_rejected(self) -> bool:
        """Whether an energy was learnt that the model's answers do not come from."""
        return False

    def _products_told(self) -> str | None:
        """List the products of three and four sites that an energy has, the strongest first; None without any."""
        if self._energy is None or not len(self._energy.products):
            return None
        found = discovery.found("neurise.structure", "products")(self._energy, self.schema_)
        more = f", {len(found) - LISTED} more in structure_" if len(found) > LISTED else ""
        return ", ".join(map(str, found[:LISTED])) + more

    def _ratios_at(self, x: Tensor, place: int, y: Any) -> np.ndarray:
        """Normalise the likelihoods of the p configurations that differ at one place.

        A site that never varies depends on no other, and none on it: what it holds is replaced by what it always held, or a row
        that is impossible there would have nothing to normalise.
        """
        joint, constant = [], self.schema_.constant
        x = torch.where(constant >= 0, constant.to(x.dtype), x)
        for token in range(self.space_.states):
            changed = x.clone()
            changed[:, place] = token
            terms = self._label_rows(y, len(x))
            joint.append(
                np.logaddexp.reduce([np.log(w) + self._log_prob(changed, label).numpy() for label, w in terms])
            )
        log_joint = np.stack(joint, axis=-1)
        total = np.logaddexp.reduce(log_joint, axis=-1, keepdims=True)
        return np.asarray(np.exp(log_joint - total))

    def ratio(self, X: Symbols, Y: Symbols, y: Any = None) -> np.ndarray:
        r"""Return :math:`P(Y) / P(X)` for rows that differ at one site, (N,), from the clean conditional of that site.

        .. math:: \frac{\mu(y)}{\mu(x)} = \frac{\mu_0(y_u \mid x_{-u})}{\mu_0(x_u \mid x_{-u})}

        Rows that are equal have ratio 1; rows that differ at several sites are an error.
        """
        schema = self._fitted()
        first, second = schema.encode(X), schema.encode(Y, "Y")
        if first.shape != second.shape:
            raise ValueError(f"X has {len(first)} rows and Y has {len(second)}: they are compared row by row")
        differs = first != second
        if bool((differs.sum(1) > 1).any()):
            row = int((differs.sum(1) > 1).nonzero()[0])
            places = [schema.order[place] for place in differs[row].nonzero().flatten().tolist()]
            raise ValueError(
                f"row {row} of X and Y differs at the sites {sorted(places)}; ratio takes rows that differ at one"
            )
        ratios = np.ones(len(first))
        labels = None if y is None else np.broadcast_to(np.asarray(y), len(first))
        for place in differs.any(0).nonzero().flatten().tolist():
            rows = differs[:, place].nonzero().flatten()
            own = None if labels is None else labels[rows.numpy()]
            law = self.conditional(schema.decode(first[rows]), schema.order[place], y=own)
            at = np.arange(len(rows))
            ratios[rows.numpy()] = law[at, second[rows, place].numpy()] / law[at, first[rows, place].numpy()]
        return ratios

    def sweeps_of(self, sweeps: Any) -> Sweeps:
        """Return how many sweeps run at which times: the user's wish, or what ``fit`` chose."""
        chosen = self.sweeps_ if self.corrector.sweeps is None else self.corrector.sweeps
        wanted = chosen if sweeps is None else sweeps
        if np.any(wanted) and self._energy_is_rejected and not self.corrector.clean:
            warnings.warn(
                f"sweeps={wanted!r} draw from the energy, to which held-back rows gave no share: samples may be far from the "
                "data; leave sweeps out, or fit with corrector__clean=0.25",
                stacklevel=4,
            )
        if checks.is_number(wanted) and wanted == 0:
            return {}
        anytime = bool(self.fitted_params_["corrector"].anytime)
        return checked_sweeps(wanted, self.conditionals, clean=self.can_sweep, anytime=anytime)

    def _draw(self, request: Request) -> Tensor:
        sweeps = self.sweeps_of(request.sweeps)
        if request.clamp is None:
            return self._draw_from_chains(request, sweeps)
        self.check_clamp(request)
        drawn, effective = draw_clamped(
            self.conditionals, request, labels=self.schema_.labels, sweeps=sweeps, device=self.device_
        )
        self.effective_samples_ = effective
        return drawn

    def check_clamp(self, request: Request) -> None:
        """Raise NotImplementedError where sites cannot be held."""
        if request.start is not None:
            raise NotImplementedError("start cannot be combined with clamp: given sites start from their own noise")
        if self.is_mixture:
            raise NotImplementedError(
                f"clamp needs to know how likely the given sites are by themselves, and a chain of a mixture over orders "
                f"({len(self.chains)} of them) knows that of the sites that it generates first only; fit with "
                "architecture__orders=1, the given sites last in order="
            )

    def _draw_from_chains(self, request: Request, sweeps: Sweeps) -> Tensor:
        """Draw every row from one of the chains, each of which is as likely as the others."""
        chains, n, generator = self.chains, request.n, request.generator
        start = None if request.start is None else request.start.to(self.device_)
        which = torch.zeros(n, dtype=torch.int64, device=generator.device)
        if len(chains) > 1:
            which.random_(len(chains), generator=generator)
        found = torch.empty(n, self.schema_.space.sites, dtype=torch.uint8)
        for number, chain in enumerate(chains):
            rows = torch.nonzero(which == number).flatten()
            if len(rows):
                y = None if request.y is None else request.y[rows]
                begin = None if start is None else chain.arranged(start[rows])
                drawn = sample(chain.conditionals, len(rows), y, generator=generator, sweeps=sweeps, start=begin)
                found[rows.cpu()] = chain.restored(drawn)
        return found

    def _chains(self, request: Request) -> Chains:
        from neurise.modeling import chain_steps

        return chain_steps.chains_of(self, request)

    def _noising(self, x: Tensor, generator: torch.Generator) -> Chains:
        from neurise.modeling import chain_steps

        return chain_steps.noising(self, x, generator)

    @property
    def has_likelihood(self) -> bool:
        """Whether the likelihood is known exactly."""
        return all(chain.conditionals.is_autoregressive for chain in self.chains)

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not self.has_likelihood:
            why = (
                "soft noise (keep_prob > 0)" if self.keep_prob else "hide_noised=False, or T below the number of sites,"
            )
            raise NotImplementedError(f"a model with {why} has no exact likelihood; elbo() gives a lower bound")
        return self._log_mean([likelihood.log_prob(chain.conditionals, chain.arranged(x), y) for chain in self.chains])

    def _log_marginal(
        self, x: Tensor, missing: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        if not self.has_likelihood:
            self._log_prob(x, y)  # which says why
        found = []
        for chain in self.chains:
            own, gaps = chain.arranged(x), chain.arranged(missing)
            options = {**self._lacking(chain), "generator": generator}
            found.append(partial_chains.log_marginal(chain.conditionals, own, gaps, y, **options))
        value, error = partial_rows.log_sum(found)
        return value - math.log(len(found)), error

    def _summable(self, missing: Tensor) -> Tensor:
        few = torch.ones(len(missing), dtype=torch.bool)
        for chain in self.chains:
            own = self._lacking(chain)
            lack = partial_chains.Lack.of(chain.arranged(missing), own["constant"])
            few &= partial_rows.counts(lack.summed, own["digits"]) <= partial_rows.MOST
        return few

    def _complete(self, x: Tensor, missing: Tensor, y: Tensor | None, generator: torch.Generator) -> Tensor:
        """Draw what is missing: from all its values where they are few, and the rest as ``clamp`` does."""
        if self.is_mixture:
            found = x.clone()
            for part in partial_rows.completions(
                lambda rows, which: self._log_prob(rows, None if y is None else y[which.to(y.device)]),
                x,
                missing,
                *partial_rows.enumerable(self, missing),
            ):
                found[part.rows[:, None], part.sites] = partial_rows.drawn_from(part, generator)
            return found
        if self.has_likelihood:
            own = self._lacking(self.chains[0])
            if not self.chain.unseen:
                known = missing & (own["constant"] >= 0)
                x, missing = torch.where(known, own["constant"].to(x.dtype), x), missing & ~known
            x, missing = partial_chains.fill_behind(self.conditionals, x, missing, y, **own, generator=generator)
        exact = (missing == missing.int().cummin(1).values).all(1) if self.has_likelihood else missing.new_zeros(len(x))
        found, effective = x.clone(), 0.0
        for rows in (torch.nonzero(exact).flatten(), torch.nonzero(~exact).flatten()):
            if len(rows) and bool(missing[rows].any()):
                labels = None if y is None else y[rows.to(y.device)]
                wish = Request(len(rows), labels, (x[rows], ~missing[rows]), generator)
                found[rows] = self._draw(wish).cpu()
                effective += self.effective_samples_
            else:
                effective += len(rows)
        self.effective_samples_ = effective
        return found

    def _lacking(self, chain: Ordered) -> dict[str, Any]:
        """Return what sums over missing values ask of a chain: its constant sites and the numbers of their states."""
        schema, digits = self.schema_, partial_rows.digits_of(self)
        constant, sizes = (chain.arranged(part[None])[0] for part in (schema.constant.cpu(), digits))
        return {"constant": constant, "digits": sizes}

    def _elbo(self, x: Tensor, y: Tensor | None, generator: torch.Generator) -> Tensor:
        bounds = [
            likelihood.elbo(chain.conditionals, chain.arranged(x), y, generator=generator) for chain in self.chains
        ]
        return self._log_mean(bounds)  # of several chains each is hard, and its bound the likelihood itself

    def site_terms(self, x: Tensor, y: Tensor | None, generator: torch.Generator) -> SiteTerms:
        """Return the log-conditionals of the tokens along the chain; with soft noise, the shares of sites in the bound."""
        if not self.has_likelihood:  # one chain: those of a mixture are hard
            terms = likelihood.elbo_terms(self.conditionals, x, y, generator=generator)
            return SiteTerms(terms, terms.sum(1), "bound", "elbo")
        each = torch.stack([c.restored(likelihood.log_terms(c.conditionals, c.arranged(x), y)) for c in self.chains])
        totals = each.sum(-1)  # (chains, n)
        if len(each) == 1:
            return SiteTerms(each[0], totals[0], "chain", "log_prob")
        share = (
            (totals - totals.logsumexp(0)).nan_to_num(0.0, neginf=-math.inf).exp()[..., None]
        )  # of each chain in a row
        mean = torch.where(share > 0, share * each, 0.0).sum(0)
        return SiteTerms(mean, self._log_mean(list(totals)), "chains", "log_prob")

    @staticmethod
    def _log_mean(terms: Sequence[Tensor]) -> Tensor:
        r"""Return :math:`\log \frac1K \sum_k e^{a_k}` of the chains' log-likelihoods, (n,)."""
        return terms[0] if len(terms) == 1 else torch.stack(list(terms)).logsumexp(0) - math.log(len(terms))

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Push the start through the reverse kernels, and through the sweeps among and after them."""
        laws, steps = list[Tensor](), self.sweeps_of(sweeps)
        for chain in self.chains:
            # Where a chain in an order of its own starts does not matter: such a chain is hard.
            law = exact.chain_law(chain.conditionals, label, start, sweeps=steps)
            own = chain.conditionals.noise.space  # of the sites in the chain's order
            laws.append(law if chain.order is None else out_of_order(law, own, chain.order))
        return laws[0] if len(laws) == 1 else torch.stack(laws).mean(0)

    # --- files -----------------------------------------------------------------------------------------------------

    def _tensors(self) -> Mapping[str, Tensor]:
        return self.conditionals_.state_dict()

    def _described(self) -> Any:
        found = {"conditionals": self.conditionals_.description()}
        return {**found, "sweeps": self.sweeps_} if self.sweeps_ else found

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        with torch.device("meta"):
            made = conditionals.build(learnt["conditionals"], self.frame())
        load_exactly(made, tensors, self.device_)
        self.sweeps_ = Field(learnt, "learnt")["sweeps"].whole(0, checks.MOST_STEPS) if "sweeps" in learnt else 0
        self.conditionals_ = made.lay_out()
