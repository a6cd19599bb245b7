"""Models that learn single-site conditionals with networks: which networks, how they are trained, and what they are worth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from neurise import checks, discovery
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee, find_shares
from neurise.conditionals.known_sites import KnownSites
from neurise.modeling.chain_model import ChainModel
from neurise.modeling.groups import Architecture
from neurise.modeling.model import Run
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.modeling.search_space import SHARED, SearchSpace
from neurise.modeling.sizes import Sizes, suited
from neurise.modeling.trained import Job, TrainedModel
from neurise.networks.base import SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.rows import MOST_FOLDS, Rows, with_folds
from neurise.training.settings import Training
from neurise.training.state import TrainingState
from neurise.training.step import noised, slices


@dataclass(kw_only=True, eq=False, repr=False)
class RoundRobinModel(ChainModel, TrainedModel):
    r"""Networks learn the conditionals :math:`\mu_t(x_u \mid x_{-u})` of the noised laws, and they run the chain backwards."""

    search_space: ClassVar[SearchSpace] = SHARED
    renamed: ClassVar[Mapping[str, str]] = {"skip": "architecture__pairwise"}

    network: str = "site_mlp"
    width: int | None = None
    depth: int | None = None
    members: int | None = None
    steps: int | None = None
    training: Training = Training()
    architecture: Architecture = Architecture()

    @abstractmethod
    def _objective(self, network: Stack, frame: Frame) -> RoundRobinObjective:
        """Make the objective of a method for networks that learn side by side."""

    # --- choices ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used."""
        super().check()
        best, make = self.chosen(), discovery.find("neurise.networks", self.network)
        for name in ("width", "depth", "members", "steps"):
            checks.positive_whole(name, getattr(best, name))
        checks.flag("hide_noised", self.chain.hide_noised)
        checks.flag("anytime", self.corrector.anytime)
        checks.unseen(self.chain.unseen, self.schema_.space.states)
        clean = checks.share("clean", self.corrector.clean)
        if not issubclass(make, SiteNetwork):
            raise ValueError(
                f"network {self.network!r} predicts all sites at once; {type(self).__name__} asks for one site at a time, "
                "as site_mlp and local_mlp do"
            )
        if clean and not make.any_site:
            raise ValueError(f"network {self.network!r} knows each step's own site alone; clean={clean} needs site_mlp")

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
        wanted = self.architecture.pairwise
        if wanted is None:
            wanted = best.pairwise and best.members > 1 and self._is_hard and self.network == "site_mlp"
        return best._replace(pairwise=checks.flag("pairwise", wanted))

    @property
    def _is_hard(self) -> bool:
        """Whether one visit erases a site and erased sites are hidden, so that pairwise terms can be fitted beforehand."""
        return self.keep_prob == 0 and self.chain.hide_noised is True

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

    # --- training --------------------------------------------------------------------------------------------------

    def _build(self) -> RoundRobinObjective:
        best = self.chosen()
        return self._objective(self._networks(best, self.frame(), best.members, best.pairwise), self.frame())

    def _networks(self, best: Sizes, frame: Frame, count: int, pairwise: bool) -> Stack:
        """Make networks that learn side by side."""
        space, num_steps = frame.noise.space, frame.noise.num_steps
        make = discovery.find("neurise.networks", self.network)
        options = {name: getattr(self.architecture, name) for name in make.options if hasattr(self.architecture, name)}
        options |= {"width": best.width, "depth": best.depth, "classes": frame.classes}
        made: list[SiteNetwork] = []
        for _ in range(count):
            network = make(space, num_steps, **options)
            if pairwise:
                terms = PairwiseTerms(space, num_steps, classes=frame.classes, clean=self.corrector.clean > 0)
                network = Sum([terms, network])
            made.append(network)
        return Stack(made)

    def jobs(self, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Train members with pairwise terms and members without, each kind by itself, or all of one kind.

        A committee learns from all rows: each member from all but a fold of its own, by which it is validated.
        """
        best, frame = self.chosen(), self.frame()
        half = best.members // 2 if best.pairwise and best.members % 2 == 0 and self._is_hard else 0
        kinds = [(half, True), (half, False)] if half else [(best.members, best.pairwise)]
        members, fraction = kinds[0][0], self.training.validation_fraction
        folds = max(members, round(min(MOST_FOLDS, 1 / fraction))) if fraction and 1 < members <= MOST_FOLDS else 0
        own, aside = None, None
        if held is None and folds:
            own = with_folds(rows, folds, seed=run.seed)
            fold: Any = own.fold
            aside = own.take(torch.nonzero(fold < members).flatten())
            if not bool(torch.bincount(fold, minlength=folds).all()):
                own = None  # too few rows for so many folds
        if own is None:
            own, aside = self.divide(rows, held, run.seed)
        found = []
        for count, pairwise in kinds:
            with torch.device("meta"):
                objective = self._objective(self._networks(best, frame, count, pairwise), frame)
            if own.fold is not None:
                objective = replace(objective, folds=folds)
            fitted_before = pairwise and self._is_hard
            found.append(self.job(objective, own, aside, run, prepare=self._prepare(held) if fitted_before else None))
        return found

    def _prepare(self, held: Rows | None) -> Any:
        """Return what fits pairwise terms before the training, for a model that does so."""
        return None

    def adopt(self, jobs: Sequence[Job], rows: Rows, run: Run) -> None:
        """Put the members of all jobs together, with the shares that rows held back ask for."""
        objectives: list[Any] = [job.objective for job in jobs]
        groups = [objective.members() for objective in objectives]
        shares = [1.0]
        if len(jobs) > 1:
            shares = self._shares(objectives, jobs[0].held, run.seed)
        members = [member for group in groups for member in group]
        weights = [share / len(group) for share, group in zip(shares, groups, strict=True) for _ in group]
        self._settle(members[0] if len(members) == 1 else Committee(members, weights), rows, run)

    @torch.no_grad()
    def _shares(self, objectives: Sequence[Any], held: Rows | None, seed: int) -> list[float]:
        """Let the rows held back say what each kind is worth; equal shares where there are none, or nothing to say."""
        if held is None or bool((self.schema_.constant >= 0).all()):
            return [1 / len(objectives)] * len(objectives)
        generator = torch.Generator(self.device_).manual_seed(seed)
        drawn = noised(objectives[0], held.to(self.device_), generator)
        answers, sizes = [], []
        for objective in objectives:
            pieces = slices(objective, drawn, self.device_)
            answers.append(torch.cat([objective.answers(objective.network, piece).double() for piece in pieces]))
            sizes.append(sum(parameter.numel() for parameter in objective.network.parameters()))
        return find_shares([answer.log_softmax(-1) for answer in answers], drawn.x_u, sizes)

    def _settle(self, learnt: Conditionals, rows: Rows, run: Run) -> None:
        """Finish the conditionals that were learnt: sites that never vary are known."""
        if bool((self.schema_.constant >= 0).any()):
            learnt = KnownSites(learnt, self.schema_.constant.to(self.device_), unseen=self.chain.unseen)
        self.conditionals_ = learnt.lay_out()

    def show(self, job: Job, state: TrainingState) -> None:
        """Put the averaged weights of a job under way into the model."""
        objective: Any = job.objective
        stack = Stack(objective.network.networks())
        stack.load_state_dict({name: tensor.detach().clone() for name, tensor in state.average.items()})
        members = replace(objective, network=stack.requires_grad_(False)).members()
        whole = members[0] if len(members) == 1 else Committee(members, [1 / len(members)] * len(members))
        RoundRobinModel._settle(self, whole, job.rows, Run(job.seed, None, False, None, None, None))


def _members(described: Mapping[str, Any], weight: float = 1.0) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the conditionals of single networks in a description, with their weights."""
    if "inner" in described:
        yield from _members(described["inner"], weight)
    elif "members" in described:
        for own, member in zip(described["weights"], described["members"], strict=True):
            yield from _members(member, weight * own)
    else:
        yield weight, described
