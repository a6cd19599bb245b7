"""Models whose samples, likelihood and exact law come from single-site conditionals that run a chain backwards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from neurise import checks, conditionals, exact, likelihood
from neurise.alphabet import Symbols
from neurise.conditionals.base import Conditionals, Frame
from neurise.modeling.groups import Chain, Corrector
from neurise.modeling.model import Model, Request
from neurise.sampling.clamped import draw_clamped
from neurise.sampling.corrector import Sweeps, checked_sweeps
from neurise.sampling.reverse import sample


@dataclass(kw_only=True, eq=False, repr=False)
class ChainModel(Model):
    r"""A model that knows :math:`\mu_t(x_u \mid x_{-u})`, however it has learnt it, and runs its chain backwards.

    ``fit`` ends with ``conditionals_``; everything here asks them and nothing else.
    """

    changeable: ClassVar[tuple[str, ...]] = ("corrector__sweeps",)

    keep_prob: float = 0.0
    cycles: int = 1
    chain: Chain = Chain()
    corrector: Corrector = Corrector()

    conditionals_: Conditionals = field(init=False)
    """After ``fit``: what drives the reverse chain, the likelihood and the exact law."""
    effective_samples_: float = field(init=False)
    """Of the last ``sample`` with ``clamp``: how many independent samples its weighted particles were worth."""

    @abstractmethod
    def frame(self) -> Frame:
        """Make the chain for the fitted schema, and say which sites never vary."""

    @property
    def conditionals(self) -> Conditionals:
        """Return the learnt conditionals, which drive the reverse chain."""
        self._fitted()
        return self.conditionals_

    def conditional(self, X: Symbols, site: int, step: int | None = None, y: Any = None) -> np.ndarray:
        r"""Probabilities of each symbol at a site given all others, (N, states) in the order of the alphabet.

        With ``step`` = t, where step t noises that site: the learnt conditional of the noised law μ_t. Without: the
        clean conditional :math:`\mu_0(x_u \mid x_{-u})`, from the network if it was taught it (``corrector__clean`` > 0), else
        from ratios of the exact likelihood. (Round-robin training alone visits site u only at t = u mod q: what the network
        says of other sites at t = 0 means nothing then.)
        """
        schema, asked = self._fitted(), self.conditionals
        if site not in range(schema.space.sites):
            raise ValueError(f"site must be a whole number from 0 to {schema.space.sites - 1}, got {site!r}")
        x, place = schema.encode(X), schema.order.index(site)
        if step is None and not self.knows_clean:
            if not asked.is_autoregressive:
                raise NotImplementedError(
                    "the clean conditional needs a network that was taught it (corrector__clean above 0), or the exact "
                    f"likelihood of hard noise with hide_noised=True; step={place} gives the learnt conditional of the law "
                    f"noised by {place} steps"
                )
            return self._ratios_at(x, place, y)
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
        return np.concatenate(parts)

    @property
    def knows_clean(self) -> bool:
        """Whether the network was taught the conditionals of the data itself, at any site."""
        return bool(self.fitted_params_["corrector"].clean)

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
        wanted = self.corrector.sweeps if sweeps is None else sweeps
        if checks.is_number(wanted) and wanted == 0:
            return {}
        anytime = bool(self.fitted_params_["corrector"].anytime)
        return checked_sweeps(wanted, self.conditionals, clean=self.knows_clean, anytime=anytime)

    def _draw(self, request: Request) -> Tensor:
        sweeps = self.sweeps_of(request.sweeps)
        if request.clamp is None:
            start = None if request.start is None else request.start.to(self.device_)
            return sample(
                self.conditionals, request.n, request.y, generator=request.generator, sweeps=sweeps, start=start
            )
        if request.start is not None:
            raise NotImplementedError("start cannot be combined with clamp: given sites start from their own noise")
        drawn, effective = draw_clamped(
            self.conditionals, request, labels=self.schema_.labels, sweeps=sweeps, device=self.device_
        )
        self.effective_samples_ = effective
        return drawn

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not self.conditionals.is_autoregressive:
            why = (
                "soft noise (keep_prob > 0)" if self.keep_prob else "hide_noised=False, or T below the number of sites,"
            )
            raise NotImplementedError(f"a model with {why} has no exact likelihood; elbo() gives a lower bound")
        return likelihood.log_prob(self.conditionals, x, y)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: torch.Generator) -> Tensor:
        return likelihood.elbo(self.conditionals, x, y, generator=generator)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Push the start through the reverse kernels, and through the sweeps among and after them."""
        return exact.chain_law(self.conditionals, label, start, sweeps=self.sweeps_of(sweeps))

    # --- files -----------------------------------------------------------------------------------------------------

    def _tensors(self) -> Mapping[str, Tensor]:
        return self.conditionals_.state_dict()

    def _described(self) -> Any:
        return {"conditionals": self.conditionals_.description()}

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        with torch.device("meta"):
            made = conditionals.build(learnt["conditionals"], self.frame())
        kept = dict(made.named_buffers(remove_duplicate=False))
        made.to_empty(device=self.device_)
        for name, buffer in kept.items():  # they are part of the schema, not of what was learnt
            made.get_buffer(name).copy_(buffer)
        made.requires_grad_(False).load_state_dict(dict(tensors))
        self.conditionals_ = made.lay_out()
