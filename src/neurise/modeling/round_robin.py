"""Models that learn single-site conditionals with networks: which networks, how they are trained, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from numbers import Number
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from neurise import checks, devices, discovery, likelihood
from neurise.conditionals.base import Conditionals, Frame, Ordered
from neurise.conditionals.committee import Committee, find_shares
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.mixture import Mixture, described_chains
from neurise.conditionals.with_clean import WithClean
from neurise.deadline import Work
from neurise.energies.pairwise_regression import fit_terms, freeze_terms
from neurise.fields import Field
from neurise.losses import Loss
from neurise.modeling import clean_part, learnt_networks, race, solved_members
from neurise.modeling.chain_model import ChainModel
from neurise.modeling.groups import SOLVED, Architecture, Chain, Corrector
from neurise.modeling.kinds import FIRST, FOR_NETWORKS, FOR_SITE_MLP, WIDE, Candidates, candidates
from neurise.modeling.loaded import check_known_sites, checked_sizes
from neurise.modeling.model import Run
from neurise.modeling.orders import Order, orders_of
from neurise.modeling.race import Race
from neurise.modeling.refusals import refuse_orders, refuse_rows, refuse_site_input
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.modeling.row_objective import RowObjective
from neurise.modeling.search_space import SHARED, SearchSpace
from neurise.modeling.sizes import Sizes, suited
from neurise.modeling.solved_members import NETWORKS, SolvedMembers
from neurise.modeling.trained import Job, TrainedModel
from neurise.networks.base import RowNetwork, SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.noise.base import SiteNoise
from neurise.rows import MOST_FOLDS, Rows, split, with_folds, without_fold
from neurise.training.settings import Training
from neurise.training.state import TrainingState
from neurise.training.step import examples_at_once, noised, slices

WEIGHING, CALIBRATING = 0.05, 0.4
"""The shares of a limited time that are kept for weighing the kinds of members, and for a calibration."""
PIECES = 16
"""Slices of examples where the time is looked at between two of them."""


class Together(NamedTuple):
    """Networks that answer together, those among them that have not learnt from the first fold, and the number of weights."""

    conditionals: Conditionals
    apart: list[tuple[Conditionals, float]]  # with their shares; none where there are no folds
    parameters: int

    @property
    def unseen(self) -> Conditionals:
        """What they say of rows that are held back."""
        return Committee(*zip(*self.apart, strict=True)) if self.apart else self.conditionals


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

    for_networks: ClassVar[Mapping[str, Any]] = FOR_NETWORKS
    """Parameters that say how networks are trained, and what they are where nothing is asked for."""
    for_site_mlp: ClassVar[Mapping[str, Any]] = FOR_SITE_MLP
    """Parameters that are made for this network, and what they are where nothing is asked for."""
    for_sparse: ClassVar[Mapping[str, Any]] = {}
    """Likewise for the network "sparse"."""

    network: str | None = None
    width: int | None = None
    depth: int | None = None
    members: int | None = None
    steps: int | None = None
    training: Training = Training()
    architecture: Architecture = Architecture()

    sizes_: dict[str, Sizes] = field(init=False)
    """For each kind of network what suits the data, where the user left it open. ``check`` finds it. After ``fit``: of the
    kinds that were trained."""
    choice_: Candidates | None = field(init=False, default=None)
    """The kinds that may suit the data, where the user named none. ``check`` finds them."""
    race_: Race | None = field(init=False, default=None)
    """How these compared, where there are several."""
    loss_: Loss = field(init=False)
    """What the networks minimise. ``check`` of a method sets it."""
    noise_options_: dict[str, Any] | None = field(init=False, default=None)
    """Further arguments of the noise, if there are any."""
    neighbours_: Tensor | None = field(init=False, default=None)
    """Which sites are known to depend on each other directly, (sites, sites) booleans, if any are."""
    calibrates_: bool = field(init=False, default=False)
    """Whether the conditionals are corrected in the end, by ``_calibrated``."""
    solves_: tuple[str, ...] = field(init=False, default=())
    """What is solved for before any network is trained, files of ``modeling/solving``. ``check`` finds it."""
    insists_: bool = field(init=False, default=False)
    """Whether the user asked for that by name."""
    solved_: SolvedMembers | None = field(init=False, default=None)
    """What was solved for; ``fit`` drops it in the end."""
    solved_words_: Mapping[str, str] | None = field(init=False, default=None)
    """What was solved for, in words, and what rows held back made of it."""
    mixes_orders_: bool = field(init=False, default=False)
    """Whether the sites are learnt in any order but the model's own. ``check`` finds it."""

    # --- choices ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used."""
        named = {"chain__kind": self.chain.kind} | ({} if self.network is None else {"network": self.network})
        for name, value in named.items():
            if not isinstance(value, str):
                raise ValueError(f"{name} must be a name, got {value!r}")
        if self.members is not None and not isinstance(self.members, int | float | np.number):
            raise ValueError(f"members must be a positive whole number, got {self.members!r}")
        self.choice_, self.race_, self.noise_options_ = self._candidates(), None, {}
        self.solved_ = self.solved_words_ = None
        self._find_solvable()
        kinds = (str(self.network),) if self.choice_ is None else self.choice_.kinds
        self.sizes_ = {kind: self.chosen(kind) for kind in kinds}
        kind, best, make = kinds[0], self.chosen_, discovery.found("neurise.networks", kinds[0])
        super().check()
        sizes: dict[str, Any] = {}
        for name in ("width", "steps"):
            sizes[name] = checks.positive_whole(name, getattr(best, name))
        for name in ("depth", "members"):
            sizes[name] = checks.count(name, getattr(best, name), checks.MOST_LAYERS)
        self.sizes_[kind] = best._replace(**sizes)
        if checks.flag("architecture__pairwise", best.pairwise) and self._has_gaps:
            raise ValueError(
                f"architecture__pairwise=True: pairwise terms cannot be fitted to rows with missing values "
                f"({self.schema_.gaps:,} here); leave it out"
            )
        checks.flag("architecture__residual", self.architecture.residual)
        if self.architecture.site_input != Architecture.site_input:
            refuse_site_input(self.architecture.site_input, kind, make.options)
        checks.flag("chain__hide_noised", self.chain.hide_noised)
        checks.flag("corrector__anytime", self.corrector.anytime)
        self.mixes_orders_ = checks.orders(self.architecture.orders, self.schema_.space.sites)
        if self.mixes_orders_:
            refuse_orders(
                self.keep_prob,
                self.chain,
                self.corrector,
                self.architecture,
                hard=self._is_hard,
                sites=self.schema_.space.sites,
            )
        for name in ("group", "shared_heads"):
            checks.positive_whole(f"architecture__{name}", getattr(self.architecture, name))
        if self.architecture.attention_heads is not None:
            checks.positive_whole("architecture__attention_heads", self.architecture.attention_heads)
        if self.architecture.dropout is not None:
            checks.share("architecture__dropout", self.architecture.dropout)
        checks.unseen(self.chain.unseen, self.schema_.space.states)
        checks.positive_whole("chain__stretch", best.stretch)
        if best.stretch > 1 and not self._takes_stretches(make):
            raise ValueError(
                f"chain__stretch={best.stretch}: network {kind!r} answers for one step at a time"
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
        wanted = 0 if self.corrector.sweeps is None else self.corrector.sweeps
        sweeps = checks.whole("corrector__sweeps", wanted, checks.MOST_STEPS)
        if (sweeps and not self.solves_ and not clean) or (self.corrector.anytime and not clean):
            raise ValueError(
                f"corrector__sweeps={self.corrector.sweeps}, corrector__anytime={self.corrector.anytime}: sweeps need a "
                "network that was taught conditionals of any site: set corrector__clean above 0, 0.25 say; or an energy, "
                "which is learnt where nothing asks for networks alone (architecture__energy)"
            )
        if issubclass(make, RowNetwork):
            refuse_rows(
                kind, self.keep_prob, self.cycles, self.chain, self.corrector, pairwise=best.pairwise, sites=sites
            )
        elif not issubclass(make, SiteNetwork):
            raise ValueError(
                f"network {kind!r} predicts all sites from all; {type(self).__name__} needs one that answers for a site "
                "from others, as site_mlp and causal do"
            )
        elif clean and not make.any_site:
            raise ValueError(
                f"network {kind!r} knows each step's own site alone; corrector__clean={clean} needs site_mlp"
            )

    def _candidates(self) -> Candidates | None:
        """Return the kinds of networks that may suit the data; None where the user named one."""
        if self.network is not None:
            return None
        asked = self._asked_for(self.for_site_mlp)
        if self._has_gaps:
            asked.append(f"{self.schema_.gaps:,} missing values")
        varying = int((self.schema_.constant < 0).sum())
        near = self._asked_for(self.for_sparse)
        return candidates(self.schema_.count, varying, tuple(asked), tuple(near), gpu=self.device_.type == "cuda")

    def _asked_for(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return those of some parameters that were set to another value than where nothing is asked for."""
        asked = []
        for name, default in parameters.items():
            value = attrgetter(name)(self)
            if value is not default and not (isinstance(value, str | Number) and value == default):
                asked.append(f"{name.replace('.', '__')}={value!r}" if np.ndim(value) == 0 else name.replace(".", "__"))
        return asked

    def _find_solvable(self) -> None:
        """Find what is solved for: what the user insists on, or, where nothing asks for networks, all that is not refused."""
        insisted, open_ones, why = list[str](), list[str](), None
        for name in SOLVED:
            value = getattr(self.architecture, name)
            if value is None:
                open_ones.append(name)
            elif checks.flag(f"architecture__{name}", value):
                insisted.append(name)
        if not self._is_hard or self.cycles != 1 or self.chain.steps is not None or self.chain.kind != "round_robin":
            why = "it is for hard noise of one cycle: keep_prob=0, cycles=1 and the chain as it is by default"
        elif self._has_gaps:
            why = f"it is for complete rows, and {self.schema_.gaps:,} values are missing"
        elif not (isinstance(self.architecture.orders, Number) and self.architecture.orders == 1):
            why = "it is for one order of the sites: architecture__orders=1"
        elif self.choice_ is not None and len(self.choice_.kinds) > 1:
            why = f"several kinds of networks race here ({', '.join(self.choice_.kinds)}); name one with network="
        elif self.device_.type not in ("cpu", "cuda"):
            why = f"it needs double precision, which {self.device_} does not have"
        if insisted and why is not None:
            raise ValueError(f"architecture__{insisted[0]}=True: {why}; or leave it out")
        is_open = why is None and self.choice_ is not None and self.schema_.space.sites < WIDE
        is_open = is_open and not insisted and not self._asked_for(self.for_networks)
        self.solves_ = tuple(insisted or (open_ones if is_open else ()))
        self.insists_ = bool(insisted)

    @property
    def chosen_(self) -> Sizes:
        """What suits the first kind of network."""
        return next(iter(self.sizes_.values()))

    @chosen_.setter
    def chosen_(self, sizes: Sizes) -> None:
        self.sizes_ = {**self.sizes_, next(iter(self.sizes_)): sizes}

    def chosen(self, kind: str | None = None) -> Sizes:
        """Return the user's settings for a kind of network, and those that suit the data where they were left open."""
        kind = kind or self.network or FIRST
        make = discovery.found("neurise.networks", kind)
        if hasattr(self, "schema_"):
            space, gpu = self.schema_.space, self.device_.type == "cuda"
            best = suited(self.schema_.count, space.sites, space.states, gpu=gpu)
            if issubclass(make, RowNetwork):
                best = best._replace(**make.suited(self.schema_.count, space, gpu=gpu))
        else:
            best = suited(0, 1, 2, gpu=False)  # before there are any data: settings for little
        own: dict[str, Any] = {name: getattr(self, name) for name in ("width", "depth", "members", "steps")}
        own |= {
            name: getattr(self.training, name) for name in ("batch_size", "learning_rate", "precision", "weight_decay")
        }
        own["dropout"] = self.architecture.dropout
        best = best._replace(**{name: value for name, value in own.items() if value is not None})
        wanted = self.architecture.pairwise
        if wanted is None:
            # Beside another kind they are worth their time on a GPU alone: a linear part of its own takes their place.
            alone = self.choice_ is None or len(self.choice_.kinds) == 1 or self.device_.type == "cuda"
            wanted = alone and best.pairwise and best.members > 1 and self._is_hard and kind == FIRST
            wanted = wanted and not self._has_gaps
        stretch = self.chain.stretch
        if stretch is None:
            stretch = best.stretch if self._takes_stretches(make) else 1
        return best._replace(pairwise=wanted, stretch=stretch)

    def _takes_stretches(self, make: Any) -> bool:
        """Whether several steps of a row can be learnt at once."""
        return issubclass(make, SiteNetwork) and make.takes_stretches and not self.corrector.anytime

    @property
    def _has_gaps(self) -> bool:
        """Whether values were missing. Pairwise terms are left out then: their regressions know no marginals."""
        return hasattr(self, "schema_") and self.schema_.gaps > 0

    def _learnt_law(self, x: Tensor, missing: Tensor, place: int) -> Tensor | None:
        """Ask the networks, where they were taught conditionals of any site from rows with gaps."""
        if not (self.corrector.clean and self._has_gaps) or self.is_mixture or self.schema_.labels is not None:
            return None
        found = list[Tensor]()
        for rows in self.conditionals.blocks(len(x)):
            own = x[rows].to(self.device_)
            u = torch.full((len(own),), place, device=self.device_)
            law = self.conditionals.log_partial(u, own, missing[rows].to(self.device_))
            if law is None:
                return None
            found.append(law.double().softmax(-1).cpu())
        return torch.cat(found) if found else None

    @property
    def _left_out(self) -> bool:
        """Whether pairwise terms might have been chosen, were it not for gaps."""
        return self._has_gaps and self._is_hard and list(self.sizes_) == [FIRST] and self.architecture.pairwise is None

    @property
    def is_of_rows(self) -> bool:
        """Whether every kind of network answers for all sites of a row in one pass."""
        return all(issubclass(discovery.found("neurise.networks", kind), RowNetwork) for kind in self.sizes_)

    @property
    def _is_hard(self) -> bool:
        """Whether one visit erases a site and erased sites are hidden, so that pairwise terms can be fitted beforehand."""
        return self.keep_prob == 0 and self.chain.hide_noised is True

    def _facts(self) -> dict[str, Any]:
        best, noise, orders = self.chosen_, self.chains[0].conditionals.noise, len(self.chains)
        kinds = [f"{share:.2f} {kind}" for kind, share in self.shares_.items()]
        why, raced = None if self.choice_ is None else self.choice_.why, self.race_
        trained = bool(learnt_networks.kinds(self.chains[0].conditionals.description()))
        return {
            "noise": f"{self.chain.kind}, keep_prob={noise.keep_prob:g}, {noise.num_steps:,} steps",
            "network": learnt_networks.told(self.chains[0].conditionals.description()),
            "choice": why if raced is None else raced.told(),
            "race": None if raced is None else raced.found() or None,
            **(self.solved_words_ or {}),
            "products": self._products_told(),
            "left out": "pairwise terms: values are missing" if self._left_out else None,
            "orders": orders if orders > 1 else None,
            "shares": ", ".join(kinds) or None,
            "batch size": best.batch_size if trained else None,
            "stretch": best.stretch if best.stretch > 1 and trained else None,
            "learning rate": best.learning_rate if trained else None,
            "sweeps": (self.sweeps_ if self.corrector.sweeps is None else self.corrector.sweeps) or None,
        }

    @property
    def shares_(self) -> dict[str, float]:
        """How much of the answer comes from each kind of member."""
        return learnt_networks.shares(self.conditionals_.description())

    @property
    def _energy_is_rejected(self) -> bool:
        """Whether rows held back gave the energy no share."""
        return self._energy is not None and "energy" not in self.shares_

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
        best = self.chosen_
        return self._objectives(next(iter(self.sizes_)), [(best.members, best.pairwise)], None)[0]

    def _objectives(
        self, kind: str, parts: Sequence[tuple[int, bool]], order: Order
    ) -> list[RoundRobinObjective | RowObjective]:
        """Make networks of a kind that learn side by side, so many with pairwise terms or without, and what they learn from."""
        best, corrector, frame = self.sizes_[kind], self.corrector, self.frame()
        if order is not None:
            frame = frame.in_order(order)
        space, num_steps = frame.noise.space, frame.noise.num_steps
        make = discovery.found("neurise.networks", kind)
        devices.require_room(
            make.least_numbers(space, num_steps, best.width, best.depth),
            space.sites,
            self.device_,
            width=best.width,
            depth=best.depth,
            batch_size=best.batch_size,
            members=best.members,
        )
        options: dict[str, Any] = {"width": best.width, "depth": best.depth, "classes": frame.classes}
        for name in make.options:
            if hasattr(self.architecture, name):
                value = getattr(self.architecture, name)
                options[name] = getattr(best, name, None) if value is None else value
        if "gaps" in make.options:
            options["gaps"] = self._has_gaps
        extras: dict[str, Any] = {
            "hide_noised": self.chain.hide_noised,
            "clean": corrector.clean,
            "anytime": corrector.anytime,
            "stretch": best.stretch,
        }
        found = list[RoundRobinObjective | RowObjective]()
        for count, pairwise in parts:
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
        """Train what every order of the sites needs; several kinds of networks race first."""
        if len(self.sizes_) > 1:
            return self._raced(rows, held, run)
        kind, orders, found = next(iter(self.sizes_)), list[Order]([None]), list[Job]()
        if self.mixes_orders_:
            orders = orders_of(self.architecture.orders, self.schema_.order, run.seed)
        for order in orders:
            found += self._jobs_in(order, kind, rows, held, run)
        # A number of steps asks for networks.
        if self.solves_ and (self.insists_ or run.max_steps is None) and not found[0].is_known:
            return self._solved_first(found, run.max_steps or self.sizes_[kind].steps, run)
        return found

    def _solved_first(self, jobs: list[Job], steps: int, run: Run) -> list[Job]:
        """Solve for what needs no training, and return the networks that are still to be trained."""
        if jobs[0].rows.stream is not None and not self.insists_:
            return jobs  # those that are in memory are a small part

        def judged(own: Sequence[Job]) -> Conditionals:
            return self._together(own, run=run, work=Work()).unseen

        self.solved_, teachers, self.race_, left = solved_members.settle(
            self.solves_, jobs, steps, judged, run, self.neighbours_
        )
        self.solved_words_ = teachers or None
        found = {*teachers, *(() if self.solved_ is None else self.solved_.found)}
        lacking = [name for name in self.solves_ if name not in found]
        if lacking and self.insists_:
            raise ValueError(
                f"architecture__{lacking[0]}=True: it cannot be solved for exactly with these rows "
                f"({self.schema_.space.sites} sites, {len(jobs[0].rows):,} rows, "
                f"{0 if jobs[0].held is None else len(jobs[0].held):,} held back); leave it out"
            )
        if self.corrector.sweeps and (self.solved_ is None or self.solved_.clean is None):
            raise ValueError(
                f"corrector__sweeps={self.corrector.sweeps}: sweeps need the energy of the data, and it cannot be solved for "
                "exactly with these rows; set corrector__clean above 0, 0.25 say"
            )
        return left

    def _raced(self, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Let the kinds of networks race, and train those that are left, on the same rows.

        One kind that starts from its rows is trained as if it had been named: members that see other rows differ the more.
        """
        every, given = rows, held
        rows, held = self.divide(rows, held, run.seed)
        jobs, lost = dict[str, Job](), list[MemoryError]()
        for kind in self.sizes_:
            try:
                (jobs[kind],) = self._jobs_in(None, kind, rows, held, run)
            except MemoryError as error:
                lost.append(error)
        if not jobs:
            raise lost[0]
        steps = {kind: run.max_steps or self.sizes_[kind].steps for kind in jobs}
        together = self.choice_ is not None and self.choice_.together
        self.race_, found = race.settle(jobs, steps, partial(self._judged, run), run, together=together)
        self.sizes_ = {kind: self.sizes_[kind] for kind in found}
        kind, job = next(iter(found.items()))
        make = discovery.found("neurise.networks", kind)
        if len(found) == 1 < len(jobs) and make.starts_from_rows and not job.is_over:
            return self._jobs_in(None, kind, every, given, run)
        return list(found.values())

    @torch.no_grad()
    def _judged(self, run: Run, job: Job) -> Tensor:
        """Return the negative log-likelihood of rows held back, (n,), by what a job has learnt."""
        held = cast(Rows, job.held)
        batch = held.spread(min(race.ROWS, len(held)), generator=torch.Generator().manual_seed(job.seed))
        learnt = self._learnt(
            [job], job.rows, run, Work()
        )  # a job by itself is not weighed, and nothing is corrected yet
        return -likelihood.log_prob(learnt, batch.x, batch.y)

    def _jobs_in(self, order: Order, kind: str, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Train members with pairwise terms and members without, each kind by itself, or all of one kind.

        A committee learns from all rows: each member from all but a fold of its own, by which it is validated.
        """
        best, fraction = self.sizes_[kind], self.training.validation_fraction
        half = best.members // 2 if best.pairwise and best.members % 2 == 0 and self._is_hard else 0
        half = 0 if len(self.sizes_) > 1 else half  # beside another kind, a kind is one job
        kinds = [(half, True), (half, False)] if half else [(best.members, best.pairwise)]
        with torch.device("meta"):  # how large a network is should be known before memory is taken
            objectives = self._objectives(kind, kinds, order)
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
                options["prepare"] = partial(RowObjective.begin, graph=self.neighbours_)
            elif pairwise and self._is_hard:
                options["prepare"] = partial(fit_terms, held=held, graph=self.neighbours_)
                options["freeze"] = freeze_terms
            job = self.job(replace(objective, folds=folds), own, aside, run, sizes=best, order=order, **options)
            rows_per_step = max(1, round(job.settings.batch_size / best.stretch))
            job.settings = replace(job.settings, batch_size=rows_per_step)
            found.append(job)
        return found

    def seconds_before(self) -> float:
        """Return what the race took, also where it was held before the run went on."""
        return 0.0 if self.race_ is None else self.race_.seconds

    def closing_share(self, jobs: Sequence[Job]) -> float:
        """Weighing the kinds of members takes a little; calibration is a phase of its own."""
        cleaning = clean_part.CLEANING * self._learns_clean(jobs)
        return WEIGHING * (len(jobs) > 1 or self.solved_ is not None) + CALIBRATING * self.calibrates_ + cleaning

    def _learns_clean(self, jobs: Sequence[Job]) -> bool:
        """Whether the data's own conditionals are learnt apart: where the user asks for it, and for wide sparse networks.

        Of data where each site depends on few others, these are what the chain cannot learn from few rows.
        """
        if self.corrector.clean:
            return self.is_of_rows
        is_left = self.corrector.sweeps is None and list(self.sizes_) == ["sparse"] and not self.mixes_orders_
        return is_left and clean_part.is_wide(jobs[0], self.neighbours_)

    @torch.no_grad()
    def adopt(self, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> None:
        """Put the members of all jobs together, those of every order by themselves."""
        chains = []
        for order, group in groupby(jobs, key=attrgetter("order")):
            chains.append(Ordered(self._learnt(list(group), rows.in_order(order), run, work), order))
        self.solved_ = None  # its rows are not kept
        one = len(chains) == 1 and chains[0].order is None
        self.conditionals_ = (chains[0].conditionals if one else Mixture(chains)).lay_out()

    def _learnt(self, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> Conditionals:
        """Return what the members of all jobs of one order say together, and what was solved for."""
        solved, together, learns_clean = self.solved_, None, self._learns_clean(jobs)
        if not any(map(attrgetter("is_meta"), jobs[0].objective.network.parameters())):  # else they were never trained
            together = self._together(jobs, run=run, work=work)
        learnt, shares = (None if together is None else together.conditionals), {NETWORKS: 1.0}
        if solved is not None:
            shares = solved.weighed(*(None, 0) if together is None else (together.unseen, together.parameters))
            learnt = solved.joined(learnt, rows, work)
            self.solved_words_ = {**(self.solved_words_ or {}), **solved_members.told(solved.words, shares)}
        assert learnt is not None
        is_whole = self.stopped_ not in ("interrupted", "constant", "diverged")
        if self.calibrates_ and is_whole and shares.get(NETWORKS) == 1.0:
            learnt = self._calibrated(learnt, jobs, rows, run, work)
        part: Conditionals | None = None
        self.sweeps_ = 0
        if learns_clean and self.stopped_ not in ("interrupted", "diverged"):
            part = clean_part.learn(jobs[0], self.neighbours_, work.part(0.5))
            learnt = WithClean(learnt, part)
        elif solved is not None and not learnt.has_clean:
            part = solved.clean
            learnt = learnt if part is None else WithClean(learnt, part)
        frame_of: Any = attrgetter("objective.frame")
        constant = frame_of(jobs[0]).constant
        if bool((constant >= 0).any()):
            learnt = KnownSites(learnt, constant, unseen=self.chain.unseen)
        # What was preferred to an energy is not corrected by it, unless the user says so.
        has_say = solved is not None and solved.clean_has_share and self.stopped_ != "interrupted"
        is_trusted = learns_clean or has_say
        if part is not None and self.corrector.sweeps is None and is_trusted:
            aside = without_fold(jobs[0].rows, jobs[0].held, 0)[1]
            self.sweeps_ = clean_part.best_sweeps(learnt, part, aside, seed=run.seed, work=work)
        return learnt

    def _together(self, jobs: Sequence[Job], *, run: Run, work: Work) -> Together:
        """Return what the networks of all jobs of one order say together.

        Rows held back say what each kind is worth, where there is time to ask.
        """
        groups, held, sizes = list[list[Conditionals]](), jobs[0].held, list[int]()
        objectives: list[Any] = list(map(attrgetter("objective"), jobs))
        asked = objectives[0].one_by_one()
        for objective in objectives:
            groups.append(objective.members())
            sizes.append(sum(map(Tensor.numel, objective.network.parameters())))
        shares = [1 / len(jobs)] * len(jobs)
        if len(jobs) > 1 and held is not None and not jobs[0].is_known:
            weighing = work.part(1 - CALIBRATING * self.calibrates_)
            held = held if held.x.device == self.device_ else held.to(self.device_)
            drawn = noised(asked, held, torch.Generator(self.device_).manual_seed(run.seed))
            answers, every = list[list[Tensor]](), slice(0, len(drawn.x_u))
            for objective in objectives:
                pieces = list[Tensor]()
                size = examples_at_once(objective, self.device_)
                size = size if work.seconds == math.inf else min(size, max(1, every.stop // PIECES))
                for piece in slices(drawn, size, every):
                    if weighing.left():
                        pieces.append(objective.answers(objective.network, piece).double().log_softmax(-1))
                answers.append(pieces)
            if weighing.left():
                shares = find_shares(list(map(torch.cat, answers)), drawn.x_u, sizes)
        members, weights, apart = list[Conditionals](), list[float](), list[tuple[Conditionals, float]]()
        for group, share in zip(groups, shares, strict=True):
            if share or len(self.sizes_) == 1:  # of several kinds of networks, one that has no say is left out
                members += group
                weights += [share / len(group)] * len(group)
                apart.append((group[0], share))
        learnt = members[0] if len(members) == 1 else Committee(members, weights)
        return Together(learnt, apart if jobs[0].rows.fold is not None else [], sum(sizes))

    def _calibrated(self, learnt: Conditionals, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> Conditionals:
        """Correct the conditionals that were learnt, for a model that does so."""
        raise NotImplementedError(f"{type(self).__name__} does not correct what it has learnt")

    def show(self, job: Job, state: TrainingState) -> None:
        """Put the averaged weights of a job under way into the model."""
        objective: Any = job.objective
        stack = Stack(objective.network.networks())
        stack.load_state_dict({name: tensor.detach().clone() for name, tensor in state.average.items()})
        own = replace(job, objective=replace(objective, network=stack.requires_grad_(False)))
        before, self.stopped_ = self.stopped_, "interrupted"  # nothing is corrected or weighed on the way
        solved, self.solved_ = self.solved_, None
        self.adopt([own], job.rows, Run(job.seed, None, False, None, None, None, 0.0), Work())
        self.stopped_, self.solved_ = before, solved

    def _described(self) -> Any:
        raced = {} if self.race_ is None else {"race": asdict(self.race_)}
        solved = {"solved": dict(self.solved_words_)} if self.solved_words_ else {}
        return {**super()._described(), "chosen": dict(self.chosen_._asdict()), **raced, **solved}

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        described = Field(learnt, "learnt")
        for chain in described_chains(described["conditionals"]):
            check_known_sites(chain, self.schema_.constant, self.chain.unseen)
        super()._restore(tensors, learnt)
        if "chosen" in described:  # for another device other sizes might suit
            kinds = learnt_networks.kinds(learnt["conditionals"])
            self.sizes_ = {kinds[0] if kinds else FIRST: checked_sizes(described["chosen"])}
        if "solved" in described:
            own = described["solved"].entries()
            self.solved_words_ = {entry.name.rpartition(".")[2]: entry.text() for entry in own}
        if "race" in described:
            self.race_ = race.checked(described["race"])
