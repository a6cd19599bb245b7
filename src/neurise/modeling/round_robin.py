"""What models that reverse a chain of single-site noise by learnt conditionals share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from neurise import checks, conditionals, devices, discovery, exact, likelihood
from neurise.alphabet import Symbols
from neurise.batching import batches
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee, find_shares
from neurise.conditionals.known_sites import KnownSites, checked_unseen
from neurise.modeling.groups import Architecture, Chain, Corrector
from neurise.modeling.job import Job
from neurise.modeling.model import Request, Run
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.modeling.search_space import SHARED, SearchSpace
from neurise.modeling.sizes import Sizes, suited
from neurise.modeling.trained import TrainedModel
from neurise.networks.base import SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.noise.base import SiteNoise
from neurise.rows import MOST_FOLDS, Rows, with_folds
from neurise.sampling.clamped import draw_clamped
from neurise.sampling.corrector import Sweeps, checked_sweeps
from neurise.sampling.reverse import sample
from neurise.training.settings import Training
from neurise.training.state import TrainingState
from neurise.training.validation import examples_at_once, noised, slices


@dataclass(kw_only=True, eq=False, repr=False)
class RoundRobinModel(TrainedModel):
    r"""A network learns the conditionals :math:`\mu_t(x_u \mid x_{-u})` of the noised laws, and they run the chain backwards."""

    search_space: ClassVar[SearchSpace] = SHARED
    changeable: ClassVar[tuple[str, ...]] = ("corrector__sweeps",)
    renamed: ClassVar[Mapping[str, str]] = {"skip": "architecture__pairwise"}

    keep_prob: float = 0.0
    cycles: int = 1
    network: str = "site_mlp"
    width: int | None = None
    depth: int | None = None
    members: int | None = None
    steps: int | None = None
    training: Training = Training()
    architecture: Architecture = Architecture()
    chain: Chain = Chain()
    corrector: Corrector = Corrector()

    conditionals_: Conditionals = field(init=False)
    """After ``fit``: what drives the reverse chain, the likelihood and the exact law."""
    shares_: dict[str, float] = field(init=False)
    """After ``fit``: how much of the answer comes from each kind of member."""
    effective_samples_: float = field(init=False)
    """Of the last ``sample`` with ``clamp``: how many independent samples its weighted particles were worth."""

    @abstractmethod
    def _objective(self, network: Stack, frame: Frame) -> RoundRobinObjective:
        """Make the objective of a method for networks that learn side by side."""

    # --- choices ---------------------------------------------------------------------------------------------------

    def chosen(self) -> Sizes:
        """Return the user's settings, and those that suit the data where they were left open."""
        if hasattr(self, "schema_"):
            space, gpu = self.schema_.space, self.device_.type == "cuda"
            best = suited(self.schema_.count, space.sites, space.states, gpu=gpu)
        else:
            best = suited(0, 1, 2, gpu=False)  # before there are any data: settings for little
        own: dict[str, Any] = {name: getattr(self, name) for name in ("width", "depth", "members", "steps")}
        own |= {name: getattr(self.training, name) for name in ("batch_size", "learning_rate")}
        best = best._replace(**{name: value for name, value in own.items() if value is not None})
        return best._replace(pairwise=self._uses_pairwise(best))

    def _uses_pairwise(self, best: Sizes) -> bool:
        """Whether networks have pairwise terms."""
        if self.architecture.pairwise is not None:
            return checks.flag("pairwise", self.architecture.pairwise)
        return best.pairwise and best.members > 1 and self._is_hard() and self.network == "site_mlp"

    def _is_hard(self) -> bool:
        return checks.is_number(self.keep_prob) and self.keep_prob == 0 and bool(self.chain.hide_noised)

    def chosen_steps(self) -> int:
        """Return the user's number of steps, or one that suits the data."""
        return checks.positive_whole("steps", self.chosen().steps)

    def chosen_training(self) -> Training:
        """Fill in what was left open."""
        best = self.chosen()
        return replace(self.training, batch_size=best.batch_size, learning_rate=best.learning_rate)

    def _facts(self) -> dict[str, Any]:
        best, noise = self.chosen(), self.conditionals.noise
        kinds = [f"{share:.2f} {kind}" for kind, share in getattr(self, "shares_", {}).items()]
        terms = " + pairwise terms" if best.pairwise else ""
        return {
            "noise": f"{self.chain.kind}, keep_prob={noise.keep_prob:g}, {noise.num_steps:,} steps",
            "network": f"{best.members} × {self.network}{terms}, width {best.width}, depth {best.depth}",
            "shares": ", ".join(kinds) or None,
            "batch size": best.batch_size,
            "learning rate": best.learning_rate,
            "sweeps": self.corrector.sweeps or None,
        }

    # --- building --------------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """Make the chain for the fitted schema, and say which sites never vary."""
        schema, chain = self.schema_, self.chain
        kind = discovery.find("neurise.noise", chain.kind)
        if not (isinstance(kind, type) and issubclass(kind, SiteNoise)):
            raise ValueError(
                f"the noise {chain.kind!r} changes all sites at once; {type(self).__name__} needs one per step"
            )
        make: Callable[..., SiteNoise] = kind
        noise = make(schema.space, self.keep_prob, cycles=self.cycles, steps=chain.steps, **self._noise_options())
        return Frame(noise, schema.classes, schema.constant.to(self.device_))

    def _noise_options(self) -> dict[str, Any]:
        return {}

    def _build(self) -> RoundRobinObjective:
        best = self.chosen()
        return self._objective(self._networks(best, best.members, pairwise=best.pairwise), self.frame())

    def _networks(self, best: Sizes, count: int, *, pairwise: bool) -> Stack:
        """Make networks that learn side by side."""
        frame, corrector, architecture = self.frame(), self.corrector, self.architecture
        size = {name: checks.positive_whole(name, getattr(best, name)) for name in ("width", "depth")}
        make = discovery.find("neurise.networks", self.network)
        if not issubclass(make, SiteNetwork):
            raise ValueError(
                f"network {self.network!r} predicts all sites at once; {type(self).__name__} asks for one site at a time, "
                "as site_mlp and local_mlp do"
            )
        checked_unseen(self.chain.unseen, frame.noise.space.states)
        clean = checks.share("clean", corrector.clean)
        if clean and not make.any_site:
            raise ValueError(f"network {self.network!r} knows each step's own site alone; clean={clean} needs site_mlp")
        options = {name: getattr(architecture, name) for name in make.options if hasattr(architecture, name)}
        common = {"classes": frame.classes}
        made = []
        for _ in range(checks.positive_whole("members", count)):
            network = make(frame.noise.space, frame.noise.num_steps, **size, **common, **options)
            if pairwise:
                terms = PairwiseTerms(frame.noise.space, frame.noise.num_steps, **common, clean=clean > 0)
                network = Sum([terms, network])
            made.append(network)
        return Stack(made)

    # --- training --------------------------------------------------------------------------------------------------

    def jobs(self, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Train members with pairwise terms and members without, each kind by itself, or all of one kind."""
        best = self.chosen()
        members = checks.positive_whole("members", best.members)
        half = members // 2 if best.pairwise and members % 2 == 0 and self._is_hard() else 0
        kinds = [(half, True), (half, False)] if half else [(members, best.pairwise)]
        folds = self._folds(kinds[0][0])
        own, aside = self._divide(rows, held, kinds[0][0], folds, run.seed)
        found = []
        for count, pairwise in kinds:
            with torch.device("meta"):
                objective = self._objective(self._networks(best, count, pairwise=pairwise), self.frame())
            if own.fold is not None:
                objective = replace(objective, folds=folds)
            fits_terms = pairwise and self._is_hard()
            judges = held if fits_terms else None
            prepare = self._prepare(judges) if fits_terms else None
            found.append(self.job(objective, own, aside, run, prepare=prepare))
        return found

    def _prepare(self, held: Rows | None) -> Any:
        """Return what fits pairwise terms before the training, for a model that does so."""
        return None

    def _folds(self, members: int) -> int:
        """Return into how many folds the rows of a committee are cut; 0 where there is no committee, or no validation."""
        fraction = checks.share("validation_fraction", self.training.validation_fraction)
        if members == 1 or members > MOST_FOLDS or not fraction:
            return 0
        return max(members, round(min(MOST_FOLDS, 1 / fraction)))

    def _divide(self, rows: Rows, held: Rows | None, members: int, folds: int, seed: int) -> tuple[Rows, Rows | None]:
        """Let a committee learn from all rows, each member from all but a fold of its own, by which it is validated."""
        if held is None and folds:
            own = with_folds(rows, folds, seed=seed)
            assert own.fold is not None
            if bool(torch.bincount(own.fold, minlength=folds).all()):
                return own, own.take(torch.nonzero(own.fold < members).flatten())
        return self.divide(rows, held, seed)

    def adopt(self, jobs: Sequence[Job], rows: Rows, run: Run) -> None:
        """Put the members of all jobs together, with the shares that rows held back ask for."""
        groups = [self._members_of(job) for job in jobs]
        shares = [1.0] if len(jobs) == 1 else self._shares(jobs, run.seed)
        self.shares_ = {self._kind(job): share for job, share in zip(jobs, shares, strict=True)}
        members = [member for group in groups for member in group]
        weights = [share / len(group) for share, group in zip(shares, groups, strict=True) for _ in group]
        self._settle(members[0] if len(members) == 1 else Committee(members, weights), rows, run)

    def show(self, job: Job, state: TrainingState) -> None:
        """Put the averaged weights of a job under way into the model."""
        shown = self._with_weights(job, state.average)
        members = self._members_of(shown)
        whole = members[0] if len(members) == 1 else Committee(members, [1 / len(members)] * len(members))
        self.conditionals_ = self._with_known_sites(whole)

    def _with_weights(self, job: Job, weights: Mapping[str, Tensor]) -> Job:
        objective: Any = job.objective
        network = objective.network
        stack = Stack(network.networks())
        stack.load_state_dict({name: tensor.detach().clone() for name, tensor in weights.items()})
        return replace(job, objective=replace(objective, network=stack.requires_grad_(False)))

    @staticmethod
    def _members_of(job: Job) -> list[Any]:
        objective: Any = job.objective
        return list(objective.members())

    @staticmethod
    def _kind(job: Job) -> str:
        objective: Any = job.objective
        described = objective.network.networks()[0].description()
        parts = described.get("sum", [described])
        return " + ".join(part["network"] for part in parts)

    def _settle(self, learnt: Conditionals, rows: Rows, run: Run) -> None:
        """Finish the conditionals that were learnt."""
        self.conditionals_ = self._with_known_sites(learnt)

    def _with_known_sites(self, learnt: Conditionals) -> Conditionals:
        if not bool((self.schema_.constant >= 0).any()):
            return learnt
        unseen = checked_unseen(self.chain.unseen, self.space_.states)
        return KnownSites(learnt, self.schema_.constant.to(self.device_), unseen=unseen)

    @torch.no_grad()
    def _shares(self, jobs: Sequence[Job], seed: int) -> list[float]:
        """Let the rows held back say what each kind is worth; equal shares where there are none."""
        held = jobs[0].held
        if held is None:
            return [1 / len(jobs)] * len(jobs)
        first: Any = jobs[0].objective
        drawn = noised(first, held.to(self.device_), devices.generator(seed, self.device_))
        answers, sizes = [], []
        for job in jobs:
            objective: Any = job.objective
            pieces = slices(drawn, examples_at_once(objective, self.device_))
            answers.append(torch.cat([objective.answers(objective.network, piece).double() for piece in pieces]))
            sizes.append(sum(parameter.numel() for parameter in objective.network.parameters()))
        return find_shares([answer.log_softmax(-1) for answer in answers], drawn.x_u, sizes)

    # --- using -----------------------------------------------------------------------------------------------------

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
        for rows in batches(len(x), asked.bytes_per_row):
            t, u = (torch.tensor([number], device=self.device_) for number in (step or 0, place))
            label = None if labels is None else labels[rows].to(self.device_)
            log_conditional = asked.log_conditional(t, u, x[rows].to(self.device_), label)
            parts.append(log_conditional.detach().double().softmax(-1).cpu().numpy())
        return np.concatenate(parts)

    @property
    def knows_clean(self) -> bool:
        """Whether the network was taught the conditionals of the data itself, at any site."""
        return bool(self.fitted_params_.get("corrector__clean"))

    def _ratios_at(self, x: Tensor, place: int, y: Any) -> np.ndarray:
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
        taught = self.fitted_params_
        return checked_sweeps(
            wanted,
            self.conditionals,
            clean=self.knows_clean,
            anytime=bool(taught.get("corrector__anytime")),
        )

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
        return {"conditionals": self.conditionals_.description(), "shares": getattr(self, "shares_", {})}

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        with torch.device("meta"):
            made = conditionals.build(learnt["conditionals"], self.frame())
        kept = dict(made.named_buffers())
        made.to_empty(device=self.device_)
        for name, buffer in kept.items():  # they are part of the schema, not of what was learnt
            made.get_buffer(name).copy_(buffer)
        made.requires_grad_(False).load_state_dict(dict(tensors))
        self.conditionals_, self.shares_ = made, learnt["shares"]
