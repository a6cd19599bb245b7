"""What models that reverse a chain of single-site noise by learnt conditionals share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from neurise import checks, devices, discovery
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee, find_shares
from neurise.conditionals.known_sites import KnownSites, checked_unseen
from neurise.modeling.chain_model import ChainModel
from neurise.modeling.groups import Architecture, Chain, Corrector
from neurise.modeling.job import Job
from neurise.modeling.model import Run
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.modeling.search_space import SHARED, SearchSpace
from neurise.modeling.sizes import Sizes, suited
from neurise.modeling.trained import TrainedModel
from neurise.networks.base import SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.rows import MOST_FOLDS, Rows, with_folds
from neurise.training.settings import Training
from neurise.training.state import TrainingState
from neurise.training.validation import examples_at_once, noised, slices


@dataclass(kw_only=True, eq=False, repr=False)
class RoundRobinModel(ChainModel, TrainedModel):
    r"""A network learns the conditionals :math:`\mu_t(x_u \mid x_{-u})` of the noised laws, and they run the chain backwards."""

    search_space: ClassVar[SearchSpace] = SHARED

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
        kinds = [f"{share:.2f} {kind}" for kind, share in self.shares_.items()]
        terms = " + pairwise terms" if best.pairwise else ""
        return {
            "noise": f"{self.chain.kind}, keep_prob={noise.keep_prob:g}, {noise.num_steps:,} steps",
            "network": f"{best.members} × {self.network}{terms}, width {best.width}, depth {best.depth}",
            "shares": ", ".join(kinds) or None,
            "batch size": best.batch_size,
            "learning rate": best.learning_rate,
            "sweeps": self.corrector.sweeps or None,
        }

    @property
    def shares_(self) -> dict[str, float]:
        """How much of the answer comes from each kind of member."""
        shares: dict[str, float] = {}
        for weight, described in _members(self.conditionals.description()):
            parts = described["network"].get("sum", [described["network"]])
            kind = " + ".join(part["network"] for part in parts)
            shares[kind] = shares.get(kind, 0.0) + weight
        return shares

    # --- building --------------------------------------------------------------------------------------------------

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

    def is_known(self) -> bool:
        """Whether there is nothing to learn, because no step of the chain touches a site that varies."""
        touched = self.schema_.constant[: self.frame().noise.num_steps]
        return super().is_known() or (not self.corrector.clean and bool((touched >= 0).all()))

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


def _members(described: Mapping[str, Any], weight: float = 1.0) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the conditionals of single networks in a description, with their weights."""
    if "inner" in described:
        yield from _members(described["inner"], weight)
    elif "members" in described:
        for own, member in zip(described["weights"], described["members"], strict=True):
            yield from _members(member, weight * own)
    else:
        yield weight, described
