"""What models that reverse the round-robin chain by single-site conditionals share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from neurise import devices, discovery, exact, likelihood
from neurise.alphabet import Symbols
from neurise.batching import batches
from neurise.conditionals import NetworkConditionals, is_autoregressive
from neurise.models._folds import MOST_FOLDS, with_folds, without_folds
from neurise.models._kinds import join, weigh
from neurise.models._pairwise_terms import fix_pairwise
from neurise.models._search import SHARED, SearchSpace
from neurise.models._sized import suited
from neurise.models._trained import TrainedModel
from neurise.networks._committee import Committee
from neurise.networks._unseen import ignore_unseen
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.clamped import sample_clamped
from neurise.sampling.corrector import correct
from neurise.sampling.reverse import sample
from neurise.training.batches import Rows
from neurise.training.settings import is_number, positive_whole

FEW_PARTICLES = 10
"""Fewer effective particles than this, or than the rows drawn from them, deserve a warning."""


@dataclass(kw_only=True, eq=False, repr=False)
class RoundRobinModel(TrainedModel):
    r"""A network learns the conditionals :math:`\mu_t(x_u \mid x_{-u})` of the noised laws, and they run the chain backwards.

    Its objective holds them as ``conditionals``.
    """

    search_space: ClassVar[SearchSpace] = SHARED

    keep_prob: float = 0.0
    cycles: int = 1
    width: int | None = None
    depth: int | None = None
    network: str = "site_mlp"
    heads: str = "site"
    residual: bool = True
    skip: bool | None = None
    members: int | None = None
    batch_size: int | None = None  # type: ignore[assignment]
    learning_rate: float | None = None  # type: ignore[assignment]
    clean: float = 0.0
    sweeps: int = 0
    unseen: float = 1e-6

    share_: float = field(init=False)
    """After ``fit``, of a committee with two kinds of members: how much of its answer comes from those with pairwise terms."""
    effective_samples_: float = field(init=False)
    """Of the last ``sample`` with ``clamp``: how many independent samples its weighted particles were worth."""

    @property
    def conditionals(self) -> NetworkConditionals:
        """Return the learnt conditionals, which drive the reverse chain."""
        self._fitted()
        conditionals: NetworkConditionals = self.objective_.conditionals  # type: ignore[attr-defined]
        return conditionals

    def conditional(self, X: Symbols, site: int, step: int | None = None, y: Any = None) -> np.ndarray:
        r"""Probabilities of each symbol at a site given all others, (N, states) in the order of the alphabet.

        With ``step`` = t, where step t noises that site: the learnt conditional of the noised law μ_t. Without: the
        clean conditional :math:`\mu_0(x_u \mid x_{-u})`, from the network if it was taught it (``clean`` > 0), else from
        ratios of the exact likelihood. (Round-robin training alone visits site u only at t = u mod q: what the network
        says of other sites at t = 0 means nothing then.)
        """
        schema = self._fitted()
        if site not in range(schema.space.sites):
            raise ValueError(f"site must be a whole number from 0 to {schema.space.sites - 1}, got {site!r}")
        x, place = schema.encode(X), schema.order.index(site)
        if step is None and not self.clean:
            if not is_autoregressive(self.conditionals):
                raise NotImplementedError(
                    "the clean conditional needs a network that was taught it (clean above 0), or the exact likelihood of "
                    f"hard noise with hide_noised=True; step={place} gives the learnt conditional of the law noised by "
                    f"{place} steps"
                )
            return self._clean_conditional(x, place, y)
        noise = self.conditionals.noise
        if step is not None and step not in range(place, noise.num_steps, schema.space.sites):
            raise ValueError(
                f"step {step} does not noise site {site}: its steps are {place}, {place} + {schema.space.sites}, … "
                f"below {noise.num_steps}"
            )
        labels = schema.encode_labels(y, len(x))
        if schema.labels is not None and labels is None:
            raise ValueError("the conditional of a network needs the label: give y")
        parts = []
        for rows in batches(len(x), self.conditionals.bytes_per_row):
            t, u = (torch.tensor([number], device=self.device_) for number in (step or 0, place))
            label = None if labels is None else labels[rows].to(self.device_)
            log_conditional = self.conditionals.log_conditional(t, u, x[rows].to(self.device_), label)
            parts.append(log_conditional.double().softmax(-1).cpu().numpy())
        return np.concatenate(parts)

    def _clean_conditional(self, x: Tensor, place: int, y: Any) -> np.ndarray:
        """Normalise the likelihoods of the p configurations that differ at one place."""
        joint = []
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

    def _network_conditionals(self, *, hide_noised: bool, heat_bath: bool = False) -> NetworkConditionals:
        """Check the parameters and make the untrained conditionals for the fitted schema."""
        schema = self.schema_
        width, depth, members = (positive_whole(name, self.chosen(name)) for name in ("width", "depth", "members"))
        noise = RoundRobin(schema.space, self.keep_prob, positive_whole("cycles", self.cycles), heat_bath)
        make = discovery.find("neurise.networks", self.network)
        if not make.one_site:
            raise ValueError(
                f"network {self.network!r} predicts all sites at once; {type(self).__name__} asks for one site at a time, "
                "as site_mlp and local_mlp do"
            )
        build = partial(
            make, schema.space, noise.num_steps, width=width, depth=depth, classes=schema.classes, **self._extras(make)
        )
        network = build() if members == 1 else Committee(build, members)
        if not is_number(self.clean) or not 0 <= self.clean < 1:
            raise ValueError(f"clean must be in [0, 1), got {self.clean!r}")
        if self.clean and not make.free_steps:
            raise ValueError(
                f"network {self.network!r} knows each step's own site alone; clean={self.clean} needs site_mlp"
            )
        constant = schema.constant.to(self.device_)
        return NetworkConditionals(network, noise, constant, hide_noised=hide_noised, width=width, unseen=self.unseen)

    def _extras(self, make: type[nn.Module]) -> dict[str, Any]:
        """Collect what is asked of the network beyond the paper's; one that does not know of it refuses."""
        asked = {"heads": self.heads, "residual": bool(self.residual), "skip": bool(self.chosen("skip"))}
        asked["clean"] = self.clean > 0
        known = getattr(make, "extras", ())
        if self.skip and "skip" not in known:
            raise ValueError(
                f"network {self.network!r} has no pairwise terms; leave skip={self.skip!r} out, or use site_mlp"
            )
        return {name: asked[name] for name in known}

    def open_settings(self) -> dict[str, Any]:
        """Return the settings that suit the size of the data; before there are any, those for little."""
        if not hasattr(self, "schema_"):
            return suited(0, 1, 2, gpu=False)
        space = self.schema_.space
        found = suited(self.schema_.count, space.sites, space.states, gpu=self.device_.type == "cuda")
        hard = is_number(self.keep_prob) and self.keep_prob == 0 and bool(getattr(self, "hide_noised", False))
        return {**found, "skip": found["skip"] and hard and self.network == "site_mlp"}

    def parts(self) -> list[TrainedModel]:
        """Let the two kinds of a committee, with pairwise terms and without, be trained each in its own time."""
        members, hard = self._members(), is_number(self.keep_prob) and self.keep_prob == 0
        if members % 2 or not (self.chosen("skip") and hard and getattr(self, "hide_noised", False)):
            return []
        settings = {**self.get_params(), **{name: self.chosen(name) for name in self.open_settings()}}
        return [type(self)(**{**settings, "members": members // 2, "skip": skip}) for skip in (True, False)]

    def assemble(self, parts: Sequence[TrainedModel], rows: Rows, held: Rows | None, seed: int) -> None:
        """Make one committee of both kinds, and let the rows held back say what each is worth."""
        objective: Any = self._built()
        network = objective.network.to_empty(device=self.device_).requires_grad_(False)
        join(network, [part.objective_.network for part in parts])
        rows, judges = parts[0].divide(rows, held, seed)
        if judges is not None:
            self.share_ = weigh(objective, judges, generator=devices.generator(seed, self.device_))

    def divide(self, rows: Rows, held: Rows | None, seed: int) -> tuple[Rows, Rows | None]:
        """Let a committee learn from all rows, each member from all but a fold of its own, by which it is judged."""
        folds = self._folds()
        if held is None and folds:
            own = with_folds(rows, folds, seed=seed)
            if bool(torch.bincount(own.x[:, -1], minlength=folds).all()):
                return own, own.take(torch.nonzero(own.x[:, -1] < self._members()).flatten())
        return super().divide(rows, held, seed)

    def _members(self) -> int:
        return positive_whole("members", self.chosen("members"))

    def _folds(self) -> int:
        """How many folds the rows of a committee are cut into; 0 where there is no committee, or no validation."""
        members = self._members()
        if members == 1 or members > MOST_FOLDS or not self.validation_fraction:
            return 0
        return max(members, round(min(MOST_FOLDS, 1 / self.validation_fraction)))

    def prepare(self, rows: Rows, held: Rows | None, seed: int, *, given: bool) -> None:
        """Fit the pairwise terms of an autoregressive model, which the network then starts from and leaves as they are."""
        x, fold = without_folds(rows.x, self.space_.sites)
        objective: Any = self.objective_
        if fold is not None:
            self.objective_ = objective = replace(objective, folds=self._folds())
        if self.chosen("skip") and is_autoregressive(objective.conditionals):
            own, judges = replace(rows, x=x), held if given else None
            fix_pairwise(objective.conditionals, own, judges, fold, seed, self._neighbours())

    def _neighbours(self) -> Tensor | None:
        """Which sites are known to depend on each other directly, (sites, sites) booleans, if any are."""
        return None

    def finish(self) -> None:
        """Make a network blind to symbols that it never saw."""
        conditionals: NetworkConditionals = self.objective_.conditionals  # type: ignore[attr-defined]
        if conditionals.unseen and is_autoregressive(conditionals):  # else noise has shown it all symbols
            ignore_unseen(conditionals.network, conditionals.constant)

    def _draw(self, n: int, y: Tensor | None, clamp: tuple[Tensor, Tensor] | None, generator: Generator) -> Tensor:
        if clamp is None:
            free = sample(self.conditionals, n, y, generator=generator)
            return correct(self.conditionals, free, y, sweeps=self._checked_sweeps(), generator=generator)
        if self._checked_sweeps():
            raise NotImplementedError(
                "sites cannot be held fixed and corrected at once; use set_params(sweeps=0) with clamp="
            )
        labels = self.schema_.labels
        drawn = sample_clamped(
            self.conditionals,
            n,
            clamp[0].to(self.device_),
            clamp[1].to(self.device_),
            y,
            draw_labels=partial(labels.draw, generator=generator) if labels is not None and y is None else None,
            generator=generator,
        )
        self.effective_samples_ = float(drawn.effective.sum())
        if not bool(drawn.effective.all()):
            raise ValueError("the model gives the clamped values probability zero: nothing can be drawn")
        if not drawn.exact and float(drawn.effective.min()) < max(drawn.rows, FEW_PARTICLES):
            warnings.warn(
                f"the clamped values are unlikely along the way: {n} rows rest on about {self.effective_samples_:.0f} "
                "effective samples; put the clamped sites last in order=, so that they are generated first",
                stacklevel=4,
            )
        return drawn.x

    def _checked_sweeps(self) -> int:
        """Insist that the network was taught what sweeps ask of it."""
        if is_number(self.sweeps) and self.sweeps == 0:
            return 0
        sweeps = positive_whole("sweeps", self.sweeps)
        if not self.clean:
            raise ValueError(
                f"sweeps={sweeps} needs a network that knows the conditionals of the data itself: fit with clean above 0, "
                "0.25 say"
            )
        return sweeps

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        if self._checked_sweeps():
            raise NotImplementedError(
                "the law after corrector sweeps has no likelihood; set_params(sweeps=0) gives that of the chain before them"
            )
        if not is_autoregressive(self.conditionals):
            why = "soft noise (keep_prob > 0)" if self.keep_prob else "hide_noised=False"
            raise NotImplementedError(f"a model with {why} has no exact likelihood; elbo() gives a lower bound")
        return likelihood.log_prob(self.conditionals, x, y)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        if self._checked_sweeps():
            raise NotImplementedError(
                "the law after corrector sweeps has no bound; set_params(sweeps=0) gives that of the chain before them"
            )
        return likelihood.elbo(self.conditionals, x, y, generator=generator)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None) -> Tensor:
        """Push the start through the reverse kernels, and through the sweeps after them."""
        law = exact.chain_law(self.conditionals, label, start)
        return exact.swept(self.conditionals, law, label, sweeps=self._checked_sweeps())
