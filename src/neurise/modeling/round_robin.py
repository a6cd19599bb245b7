"""Models that learn single-site conditionals with networks: which networks, how they are trained, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from neurise import checks, devices, discovery
from neurise.conditionals.base import Conditionals, Frame, Ordered
from neurise.conditionals.committee import Committee, find_shares
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.mixture import Mixture, described_chains
from neurise.deadline import Work
from neurise.energies.pairwise_regression import fit_terms, freeze_terms
from neurise.fields import Field
from neurise.losses import Loss
from neurise.modeling.chain_model import ChainModel
from neurise.modeling.groups import Architecture, Chain, Corrector
from neurise.modeling.loaded import checked_sizes
from neurise.modeling.model import Run
from neurise.modeling.orders import Order, orders_of
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.modeling.row_objective import RowObjective
from neurise.modeling.search_space import SHARED, SearchSpace
from neurise.modeling.sizes import Sizes, suited
from neurise.modeling.trained import Job, TrainedModel
from neurise.networks.base import RowNetwork, SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.noise.base import SiteNoise
from neurise.rows import MOST_FOLDS, Rows, split, with_folds
from neurise.training.settings import Training
from neurise.training.state import TrainingState
from neurise.training.step import examples_at_once, noised, slices

WEIGHING, CALIBRATING = 0.05, 0.25
"""The shares of a limited time that are kept for weighing the kinds of members, and for a calibration."""
PIECES = 16
"""Slices of examples where the time is looked at between two of them."""


@dataclass(kw_only=True, eq=False, repr=False)
class RoundRobinModel(ChainModel, TrainedModel):
    r"""Networks learn the conditionals :math:`\mu_t(x_u \mid x_{-u})` of the noised laws, and they run the chain backwards."""

    search_space: ClassVar[SearchSpace] = SHARED
    takes_gaps: ClassVar[bool] = True
    renamed: ClassVar[Mapping[str, str]] = {"skip": "architecture__pairwise"}
    groups: ClassVar[Mapping[str, type]] = {
        "training": Training,
        "architecture": Architecture,
        "chain": Chain,
        "corrector": Corrector,
    }

    network: str = "site_mlp"
    width: int | None = None
    depth: int | None = None
    members: int | None = None
    steps: int | None = None
    training: Training = Training()
    architecture: Architecture = Architecture()

    chosen_: Sizes = field(init=False)
    """What suits the data, where the user left it open. ``check`` finds it."""
    loss_: Loss = field(init=False)
    """What the networks minimise. ``check`` of a method sets it."""
    noise_options_: dict[str, Any] | None = field(init=False, default=None)
    """Further arguments of the noise, if there are any."""
    neighbours_: Tensor | None = field(init=False, default=None)
    """Which sites are known to depend on each other directly, (sites, sites) booleans, if any are."""
    calibrates_: bool = field(init=False, default=False)
    """Whether the conditionals are corrected in the end, by ``_calibrated``."""
    mixes_orders_: bool = field(init=False, default=False)
    """Whether the sites are learnt in any order but the model's own. ``check`` finds it."""

    # --- choices ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used."""
        for name, value in (("network", self.network), ("chain__kind", self.chain.kind)):
            if not isinstance(value, str):
                raise ValueError(f"{name} must be a name, got {value!r}")
        if self.members is not None and not isinstance(self.members, int | float | np.number):
            raise ValueError(f"members must be a positive whole number, got {self.members!r}")
        best, make = self.chosen(), discovery.found("neurise.networks", self.network)
        self.chosen_, self.noise_options_ = best, {}
        super().check()
        sizes: dict[str, Any] = {}
        for name in ("width", "steps"):
            sizes[name] = checks.positive_whole(name, getattr(best, name))
        for name in ("depth", "members"):
            sizes[name] = checks.count(name, getattr(best, name), checks.MOST_LAYERS)
        self.chosen_ = best._replace(**sizes)
        if checks.flag("architecture__pairwise", best.pairwise) and self._has_gaps:
            raise ValueError(
                f"architecture__pairwise=True: pairwise terms cannot be fitted to rows with missing values "
                f"({self.schema_.gaps:,} here); leave it out"
            )
        checks.flag("architecture__residual", self.architecture.residual)
        checks.flag("chain__hide_noised", self.chain.hide_noised)
        checks.flag("corrector__anytime", self.corrector.anytime)
        self.mixes_orders_ = checks.orders(self.architecture.orders, self.schema_.space.sites)
        if self.mixes_orders_:
            self._check_orders()
        for name in ("group", "shared_heads"):
            checks.positive_whole(f"architecture__{name}", getattr(self.architecture, name))
        if self.architecture.attention_heads is not None:
            checks.positive_whole("architecture__attention_heads", self.architecture.attention_heads)
        checks.share("architecture__dropout", self.architecture.dropout)
        checks.unseen(self.chain.unseen, self.schema_.space.states)
        checks.positive_whole("chain__stretch", best.stretch)
        if best.stretch > 1 and not self._takes_stretches(make):
            raise ValueError(
                f"chain__stretch={best.stretch}: network {self.network!r} answers for one step at a time"
                f"{' with corrector__anytime=True' if self.corrector.anytime else ''}; set chain__stretch=1 or leave it out"
            )
        clean, sites = checks.share("corrector__clean", self.corrector.clean), self.schema_.space.sites
        length = checks.count("cycles", self.cycles, checks.MOST_STEPS) * sites
        if self.chain.steps is not None:
            length = checks.count("chain__steps", self.chain.steps, checks.MOST_STEPS)
        if length > checks.MOST_STEPS:
            raise ValueError(
                f"cycles={self.cycles:,} of {sites:,} sites are {length:,} steps, and the limit is {checks.MOST_STEPS:,}; "
                "use fewer cycles"
            )
        sweeps = checks.whole("corrector__sweeps", self.corrector.sweeps, checks.MOST_STEPS)
        if (sweeps or self.corrector.anytime) and not clean:
            raise ValueError(
                f"corrector__sweeps={self.corrector.sweeps}, corrector__anytime={self.corrector.anytime}: sweeps need a "
                "network that was taught conditionals of any site: set corrector__clean above 0, 0.25 say"
            )
        if issubclass(make, RowNetwork):
            self._check_rows()
        elif not issubclass(make, SiteNetwork):
            raise ValueError(
                f"network {self.network!r} predicts all sites from all; {type(self).__name__} needs one that answers for a site "
                "from others, as site_mlp and causal do"
            )
        elif clean and not make.any_site:
            raise ValueError(
                f"network {self.network!r} knows each step's own site alone; corrector__clean={clean} needs site_mlp"
            )

    def _check_orders(self) -> None:
        """Raise ValueError where the sites cannot be learnt in several orders."""
        wrong = []
        if not self._is_hard:
            wrong.append(f"keep_prob={self.keep_prob}, chain__hide_noised={self.chain.hide_noised}: hard noise has one")
        if self.chain.steps is not None and self.chain.steps < self.schema_.space.sites:
            wrong.append(f"chain__steps={self.chain.steps}: a chain that visits every site has one")
        if self.corrector.clean:
            wrong.append(f"corrector__clean={self.corrector.clean}: sweeps need the conditionals of one chain")
        if wrong:
            raise ValueError(
                f"architecture__orders={self.architecture.orders!r} mixes likelihoods: {'; '.join(wrong)}; set "
                "architecture__orders=1 or change these"
            )

    def _check_rows(self) -> None:
        """Raise ValueError where a network that answers for a whole row cannot serve."""
        wrong = []
        if self.keep_prob:
            wrong.append(
                f"keep_prob={self.keep_prob}: soft noise leaves traces of all sites (set 0, or network='site_mlp')"
            )
        if self.cycles != 1 or self.chain.steps not in (None, self.schema_.space.sites):
            wrong.append(f"cycles={self.cycles}, chain__steps={self.chain.steps}: hard noise needs one cycle")
        if not self.chain.hide_noised:
            wrong.append("chain__hide_noised=False: erased sites cannot be in its view")
        if self.corrector.clean:
            wrong.append(f"corrector__clean={self.corrector.clean}: it looks at one side of a site, sweeps need both")
        if self.chosen_.pairwise:
            wrong.append("architecture__pairwise=True: pairwise terms are for network='site_mlp'")
        if wrong:
            raise ValueError(f"network {self.network!r} learns a law site by site: {'; '.join(wrong)}")

    def chosen(self) -> Sizes:
        """Return the user's settings, and those that suit the data where they were left open."""
        if hasattr(self, "schema_"):
            space, gpu = self.schema_.space, self.device_.type == "cuda"
            best = suited(self.schema_.count, space.sites, space.states, gpu=gpu)
            make = discovery.found("neurise.networks", self.network)
            if issubclass(make, RowNetwork):
                best = best._replace(**make.suited(self.schema_.count, space, gpu=gpu))
        else:
            best = suited(0, 1, 2, gpu=False)  # before there are any data: settings for little
        own: dict[str, Any] = {name: getattr(self, name) for name in ("width", "depth", "members", "steps")}
        own |= {name: getattr(self.training, name) for name in ("batch_size", "learning_rate", "precision")}
        best = best._replace(**{name: value for name, value in own.items() if value is not None})
        wanted = self.architecture.pairwise
        if wanted is None:
            wanted = best.pairwise and best.members > 1 and self._is_hard and self.network == "site_mlp"
            wanted = wanted and not self._has_gaps
        stretch = self.chain.stretch
        if stretch is None:
            stretch = best.stretch if self._takes_stretches(discovery.found("neurise.networks", self.network)) else 1
        return best._replace(pairwise=wanted, stretch=stretch)

    def _takes_stretches(self, make: Any) -> bool:
        """Whether several steps of a row can be learnt at once."""
        return issubclass(make, SiteNetwork) and make.takes_stretches and not self.corrector.anytime

    @property
    def _has_gaps(self) -> bool:
        """Whether values were missing. Pairwise terms are left out then: their regressions know no marginals."""
        return hasattr(self, "schema_") and self.schema_.gaps > 0

    @property
    def _left_out(self) -> bool:
        """Whether pairwise terms might have been chosen, were it not for gaps."""
        return self._has_gaps and self._is_hard and self.network == "site_mlp" and self.architecture.pairwise is None

    @property
    def is_of_rows(self) -> bool:
        """Whether the network answers for all sites of a row in one pass."""
        return issubclass(discovery.found("neurise.networks", self.network), RowNetwork)

    @property
    def _is_hard(self) -> bool:
        """Whether one visit erases a site and erased sites are hidden, so that pairwise terms can be fitted beforehand."""
        return self.keep_prob == 0 and self.chain.hide_noised is True

    def _facts(self) -> dict[str, Any]:
        best, noise, orders = self.chosen_, self.chains[0].conditionals.noise, len(self.chains)
        kinds = [f"{share:.2f} {kind}" for kind, share in self.shares_.items()]
        terms = " + pairwise terms" if best.pairwise else ""
        return {
            "noise": f"{self.chain.kind}, keep_prob={noise.keep_prob:g}, {noise.num_steps:,} steps",
            "network": f"{best.members} × {self.network}{terms}, width {best.width}, depth {best.depth}",
            "left out": "pairwise terms: values are missing" if self._left_out else None,
            "orders": orders if orders > 1 else None,
            "shares": ", ".join(kinds) or None,
            "batch size": best.batch_size,
            "stretch": best.stretch if best.stretch > 1 else None,
            "learning rate": best.learning_rate,
            "sweeps": self.corrector.sweeps or None,
        }

    @property
    def shares_(self) -> dict[str, float]:
        """How much of the answer comes from each kind of member."""
        shares: dict[str, float] = {}
        for weight, described in _members(self.conditionals_.description()):
            parts = described["network"].get("sum", [described["network"]])
            kind = " + ".join(part["network"] for part in parts)
            shares[kind] = shares.get(kind, 0.0) + weight
        return shares

    # --- training --------------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """Make the chain for the fitted schema, and say which sites never vary."""
        schema, chain = self.schema_, self.chain
        kind = discovery.found("neurise.noise", chain.kind)
        if not (isinstance(kind, type) and issubclass(kind, SiteNoise)):
            raise ValueError(
                f"the noise {chain.kind!r} changes all sites at once; {type(self).__name__} needs one per step"
            )
        if schema.space.sizes is not None and not kind.has_own_alphabets:
            raise ValueError(f"the noise {chain.kind!r} serves one alphabet for all columns; these have their own")
        make: Callable[..., SiteNoise] = kind
        noise = make(schema.space, self.keep_prob, cycles=self.cycles, steps=chain.steps, **(self.noise_options_ or {}))
        classes = 0 if schema.labels is None else len(schema.labels.classes)
        return Frame(noise, classes, schema.constant.to(self.device_))

    def _build(self) -> RoundRobinObjective | RowObjective:
        best = self.chosen()
        return self._objectives([(best.members, best.pairwise)], None)[0]

    def _objectives(self, kinds: Sequence[tuple[int, bool]], order: Order) -> list[RoundRobinObjective | RowObjective]:
        """Make networks that learn side by side, so many with pairwise terms or without, and what they learn from."""
        best, corrector, frame = self.chosen_, self.corrector, self.frame()
        if order is not None:
            frame = frame.in_order(order)
        space, num_steps = frame.noise.space, frame.noise.num_steps
        make = discovery.found("neurise.networks", self.network)
        devices.require_room(
            make.least_numbers(space, num_steps, best.width, best.depth),
            space.sites,
            self.device_,
            width=best.width,
            depth=best.depth,
            batch_size=best.batch_size,
            members=best.members,
        )
        options = {"width": best.width, "depth": best.depth, "classes": frame.classes}
        for name in make.options:
            if hasattr(self.architecture, name):
                options[name] = getattr(self.architecture, name)
        if "gaps" in make.options:
            options["gaps"] = self._has_gaps
        extras: dict[str, Any] = {
            "hide_noised": self.chain.hide_noised,
            "clean": corrector.clean,
            "anytime": corrector.anytime,
            "stretch": best.stretch,
        }
        found = list[RoundRobinObjective | RowObjective]()
        for count, pairwise in kinds:
            if issubclass(make, RowNetwork):
                rows = [make(space, num_steps, **options) for _ in range(count)]
                found.append(RowObjective(Stack(rows), frame, self.loss_))
                continue
            made: list[SiteNetwork] = []
            for _ in range(count):
                network = make(space, num_steps, **options)
                if pairwise:
                    terms = PairwiseTerms(space, num_steps, classes=frame.classes, clean=corrector.clean > 0)
                    network = Sum([terms, network])
                made.append(network)
            found.append(RoundRobinObjective(Stack(made), frame, self.loss_, **extras))
        return found

    def jobs(self, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Train what every order of the sites needs."""
        orders, found = list[Order]([None]), list[Job]()
        if self.mixes_orders_:
            orders = orders_of(self.architecture.orders, self.schema_.order, run.seed)
        for order in orders:
            found += self._jobs_in(order, rows, held, run)
        return found

    def _jobs_in(self, order: Order, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Train members with pairwise terms and members without, each kind by itself, or all of one kind.

        A committee learns from all rows: each member from all but a fold of its own, by which it is validated.
        """
        best, fraction = self.chosen_, self.training.validation_fraction
        half = best.members // 2 if best.pairwise and best.members % 2 == 0 and self._is_hard else 0
        kinds = [(half, True), (half, False)] if half else [(best.members, best.pairwise)]
        with torch.device("meta"):  # how large a network is should be known before memory is taken
            objectives = self._objectives(kinds, order)
        rows, held = rows.in_order(order), None if held is None else held.in_order(order)
        members, folds, own, aside = kinds[0][0], 0, None, held
        if held is None and fraction and 1 < members <= MOST_FOLDS:
            folds = max(members, round(min(MOST_FOLDS, 1 / fraction)))
            own = with_folds(rows, folds, seed=run.seed)
            aside = own.of_folds_below(members)
            if not own.has_all_folds(folds):  # too few rows for so many folds
                own, aside, folds = None, None, 0
        if own is None:
            own, aside = rows, held
            if held is None:
                own, aside = split(rows, fraction, generator=torch.Generator().manual_seed(run.seed))
        frame = objectives[0].frame
        # A chain of few steps may touch no site that varies.
        touched = frame.constant if self.corrector.clean else frame.constant[: frame.noise.num_steps]
        known, found = bool((touched >= 0).all()), []
        for (_, pairwise), objective in zip(kinds, objectives, strict=True):
            options: dict[str, Any] = {"is_known": known}
            if isinstance(objective, RowObjective):
                options["prepare"] = RowObjective.begin
            elif pairwise and self._is_hard:
                options["prepare"] = partial(fit_terms, held=held, graph=self.neighbours_)
                options["freeze"] = freeze_terms
            job = self.job(replace(objective, folds=folds), own, aside, run, order=order, **options)
            rows_per_step = max(1, round(job.settings.batch_size / best.stretch))
            job.settings = replace(job.settings, batch_size=rows_per_step)
            found.append(job)
        return found

    def closing_share(self, jobs: Sequence[Job]) -> float:
        """Weighing the kinds of members takes a little; calibration is a phase of its own."""
        return WEIGHING * (len(jobs) > 1) + CALIBRATING * self.calibrates_

    @torch.no_grad()
    def adopt(self, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> None:
        """Put the members of all jobs together, those of every order by themselves."""
        chains = []
        for order, group in groupby(jobs, key=attrgetter("order")):
            chains.append(Ordered(self._learnt(list(group), rows.in_order(order), run, work), order))
        one = len(chains) == 1 and chains[0].order is None
        self.conditionals_ = (chains[0].conditionals if one else Mixture(chains)).lay_out()

    def _learnt(self, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> Conditionals:
        """Return what the members of all jobs of one order say together.

        Rows held back say what each kind is worth, where there is time to ask.
        """
        groups, held = list[list[Conditionals]](), jobs[0].held
        objectives: list[Any] = list(map(attrgetter("objective"), jobs))
        asked, constant = objectives[0].one_by_one(), objectives[0].frame.constant
        for objective in objectives:
            groups.append(objective.members())
        shares = [1 / len(jobs)] * len(jobs)
        if len(jobs) > 1 and held is not None and not jobs[0].is_known:
            weighing = work.part(1 - CALIBRATING * self.calibrates_)
            held = held if held.x.device == self.device_ else held.to(self.device_)
            drawn = noised(asked, held, torch.Generator(self.device_).manual_seed(run.seed))
            answers, sizes, every = list[list[Tensor]](), list[int](), slice(0, len(drawn.x_u))
            for objective in objectives:
                pieces = list[Tensor]()
                size = examples_at_once(objective, self.device_)
                size = size if work.seconds == math.inf else min(size, max(1, every.stop // PIECES))
                for piece in slices(drawn, size, every):
                    if weighing.left():
                        pieces.append(objective.answers(objective.network, piece).double().log_softmax(-1))
                answers.append(pieces)
                sizes.append(sum(map(Tensor.numel, objective.network.parameters())))
            if weighing.left():
                shares = find_shares(list(map(torch.cat, answers)), drawn.x_u, sizes)
        members, weights = list[Conditionals](), list[float]()
        for group, share in zip(groups, shares, strict=True):
            members += group
            weights += [share / len(group)] * len(group)
        learnt = members[0] if len(members) == 1 else Committee(members, weights)
        if self.calibrates_ and self.stopped_ not in ("interrupted", "constant", "diverged"):
            learnt = self._calibrated(learnt, rows, run, work)
        if bool((constant >= 0).any()):
            learnt = KnownSites(learnt, constant, unseen=self.chain.unseen)
        return learnt

    def _calibrated(self, learnt: Conditionals, rows: Rows, run: Run, work: Work) -> Conditionals:
        """Correct the conditionals that were learnt, for a model that does so."""
        raise NotImplementedError(f"{type(self).__name__} does not correct what it has learnt")

    def show(self, job: Job, state: TrainingState) -> None:
        """Put the averaged weights of a job under way into the model."""
        objective: Any = job.objective
        stack = Stack(objective.network.networks())
        stack.load_state_dict({name: tensor.detach().clone() for name, tensor in state.average.items()})
        own = replace(job, objective=replace(objective, network=stack.requires_grad_(False)))
        before, self.stopped_ = self.stopped_, "interrupted"  # nothing is corrected on the way
        self.adopt([own], job.rows, Run(job.seed, None, False, None, None, None, 0.0), Work())
        self.stopped_ = before

    def _described(self) -> Any:
        return {**super()._described(), "chosen": dict(self.chosen_._asdict())}

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        described = Field(learnt, "learnt")
        knows = self.schema_.constant >= 0
        for chain in described_chains(described["conditionals"]):
            has_known = chain["answers"].value == "known_sites"
            if has_known != bool(knows.any()):
                raise ValueError(
                    f"schema.constant names {int(knows.sum())} sites that never vary, and {chain.name}.answers is "
                    f"{chain['answers'].value!r}: they do not belong together"
                )
            if has_known and chain["unseen"].value != self.chain.unseen:
                raise chain["unseen"].wrong(f"that of params.chain__unseen, {self.chain.unseen!r}")
        super()._restore(tensors, learnt)
        if "chosen" in described:  # for another device other sizes might suit
            self.chosen_ = checked_sizes(described["chosen"])


def _members(described: Mapping[str, Any], weight: float = 1.0) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the conditionals of single networks in a description, with their weights."""
    if "inner" in described:
        yield from _members(described["inner"], weight)
    elif "members" in described:
        for own, member in zip(described["weights"], described["members"], strict=True):
            yield from _members(member, weight * own)
    else:
        yield weight, described
