"""Members of a committee that are solved for before any network is trained: who they are, and what they are worth.

They learn from the rows that validate nothing, and rows held back say what each is worth. A short run of the networks tells
whether these have anything to add; where they do not, they are not trained. What has a share in the end is solved for
once more, from all rows. A law whose conditionals cannot be had teaches the networks (:mod:`neurise.modeling.lessons`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise import discovery
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.deadline import Work, noted_interrupts
from neurise.energies.family import count_of
from neurise.modeling import lessons, race
from neurise.modeling.lessons import Kind
from neurise.modeling.model import Run
from neurise.modeling.race import Race
from neurise.modeling.solving.base import Solved, Teacher
from neurise.modeling.trained import Job
from neurise.modeling.weighing import Judges, are_behind, find_shares, mixed
from neurise.rows import Rows, with_folds, without_fold
from neurise.training import distributed
from neurise.training.loop import TrainingDiverged

SOLVING = 0.4
"""The share of a limited time in which solving must be done."""
NETWORKS = "networks"
ENOUGH = 30
"""Rows held back, with fewer of which networks are not tried beside an energy: they stop where these rows like them best, which
flatters them."""
FEW, FOLDS, ERRORS = 500, 5, 0.5
"""Rows up to which what is solved for is compared over so many folds of all rows, since one has too few to tell by; and by how
many standard errors more parameters must be better then."""
SMALL = 2**16
"""Configurations up to which each fold chooses a graph and a penalty of its own; in larger spaces that takes too long. In larger
spaces counts are no law that rows may fill, either."""
Judged = Callable[[Sequence[Job]], Conditionals]
"""Returns what the networks of jobs say together of rows that they have not learnt from."""


@dataclass(eq=False)
class SolvedMembers:
    """What was solved for, by name, and the rows held back that weigh it."""

    found: dict[str, Solved]
    judges: Judges
    among: list[float]  # the share of each, as if there were no networks
    shares: dict[str, float] = field(default_factory=dict)  # after weighing, with that of the networks

    @property
    def words(self) -> dict[str, str]:
        """What was solved for, in words; what has no share says so."""
        return {name: own.words for name, own in self.found.items()}

    def answers(self) -> Tensor:
        """Return what was solved for says together of the rows held back."""
        return mixed([self.judges.answers(own.conditionals) for own in self.found.values()], self.among)

    def weighed(self, networks: Conditionals | None, parameters: int) -> dict[str, float]:
        """Return the share of each member, and of the networks if there are any."""
        left = 1.0
        if networks is not None:
            own = sum(own.parameters for own, share in zip(self.found.values(), self.among, strict=True) if share)
            theirs = self.judges.answers(networks)
            share, left = find_shares(self.judges, [theirs, self.answers()], [parameters, own])
            self.shares = {NETWORKS: share}
        self.shares |= {name: left * share for name, share in zip(self.found, self.among, strict=True)}
        return self.shares

    def joined(self, networks: Conditionals | None, rows: Rows, work: Work) -> Conditionals:
        """Put together what has a share, solved for once more from all rows."""
        for name, own in self.found.items():
            if own.again is not None and (self.shares[name] or own.conditionals.has_clean) and work.left():
                self.found[name] = own.again(rows, work.part(0.5)) or own
        kinds = {NETWORKS: networks, **{name: own.conditionals for name, own in self.found.items()}}
        members, weights = list[Conditionals](), list[float]()
        for name, share in self.shares.items():
            member = kinds[name]
            if share and member is not None:
                members.append(member)
                weights.append(share)
        return members[0] if len(members) == 1 else Committee(members, weights)

    @property
    def clean_has_share(self) -> bool:
        """Whether the answers come from one that knows the data's own conditionals, be it in part."""
        return any(self.shares[name] > 0 for name, own in self.found.items() if own.conditionals.has_clean)

    @property
    def clean(self) -> Conditionals | None:
        """Return the data's own conditionals, of the first member that knows them, whether or not it has a share."""
        known = (own.conditionals.clean for own in self.found.values() if own.conditionals.has_clean)
        return next(known, None)


class Found(NamedTuple):
    """What solving has led to: members, one who can teach the networks, and the rows held back that judge."""

    members: SolvedMembers | None
    teachers: dict[str, Teacher]
    judges: Judges | None


class Settled(NamedTuple):
    """What was found before networks are trained whole: members, teachers in words, a race, and the jobs that are left."""

    members: SolvedMembers | None
    teachers: dict[str, str]
    race: Race | None
    jobs: list[Job]


def ways() -> tuple[str, ...]:
    """Return the names of all ways to solve."""
    return discovery.names("neurise.modeling.solving")


def learn(names: Sequence[str], job: Job, work: Work, near: Tensor | None = None) -> Found:
    """Solve in every way that is named, for the rows that a job learns from.

    Where members of a committee have folds of their own, the first fold is held back. ``near`` (sites, sites) are the
    neighbours of each site, where they are known.
    """
    rows, held = without_fold(job.rows, job.held, 0)
    if held is None or not len(held):
        return Found(None, {}, None)
    objective: Any = job.objective
    frame, found, teachers = objective.frame, dict[str, Solved](), dict[str, Teacher]()
    for number, name in enumerate(names):
        solve = discovery.found("neurise.modeling.solving", name)
        own = solve(rows, held, frame, seed=job.seed, work=work.part(1 / (len(names) - number)), near=near)
        if isinstance(own, Teacher):
            teachers[name] = own
        elif own is not None:
            found[name] = own
    judges = Judges.of(held, frame.constant, frame.noise.space.states)
    if not found:
        return Found(None, teachers, judges)
    sizes, rows = [own.parameters for own in found.values()], replace(job.rows, fold=None)
    if len(found) > 1 and len(rows) <= FEW:
        kept = None if frame.noise.space.size <= SMALL else found
        pooled = _pooled(list(found), rows, frame, job.seed, work, kept, near)
        if pooled is not None:
            return Found(SolvedMembers(found, judges, find_shares(*pooled, sizes, ERRORS)), teachers, judges)
    answers = [judges.answers(own.conditionals) for own in found.values()]
    return Found(SolvedMembers(found, judges, find_shares(judges, answers, sizes)), teachers, judges)


def _pooled(
    names: Sequence[str],
    rows: Rows,
    frame: Frame,
    seed: int,
    work: Work,
    kept: Mapping[str, Solved] | None = None,
    near: Tensor | None = None,
) -> tuple[Judges, list[Tensor]] | None:
    """Solve without each fold of all rows in its turn, and return what is said of it; None where that cannot be done.

    The graph and the penalty of what is ``kept`` are not chosen again.
    """
    rows = with_folds(rows, FOLDS, seed=seed)
    judged, answers = list[Rows](), {name: list[Tensor]() for name in names}
    for fold in range(FOLDS):
        own, aside = without_fold(rows, rows, fold)
        if aside is None or not len(own) or not len(aside):
            return None
        judged.append(aside)
        judges = Judges.of(aside, frame.constant, frame.noise.space.states)
        for name in names:
            again = None if kept is None else kept[name].again
            solve = discovery.found("neurise.modeling.solving", name)
            solved = solve(own, None, frame, seed=seed, work=work, near=near) if again is None else again(own, work)
            if not isinstance(solved, Solved) or not work.left():
                return None
            answers[name].append(judges.answers(solved.conditionals))
    x, y, weights = (
        None if getattr(rows, part) is None else torch.cat([getattr(own, part) for own in judged])
        for part in ("x", "y", "weights")
    )
    assert x is not None
    whole = Judges.of(Rows(x, y, weights), frame.constant, frame.noise.space.states)
    return whole, [torch.cat(answers[name]) for name in names]


def settle(
    names: Sequence[str], jobs: Sequence[Job], steps: int, judged: Judged, run: Run, near: Tensor | None = None
) -> Settled:
    """Solve, and let the networks run for a short while; return what was found and the jobs that are to be trained.

    ``steps`` are those of a whole run. Where the networks have nothing to add, or Ctrl-C ends this, one job is left, which is
    over. A run that goes on from a checkpoint solves again, and takes what came out of the race before.
    """
    team = distributed.TEAM.get()
    agree = None if team is None else team.agree
    with noted_interrupts() as interrupts:
        limit = math.inf if run.max_seconds is None else run.max_seconds
        whole = Work(limit, interrupts, agree, run.verbose, run.began)
        solved, teachers, judges = learn(names, jobs[0], whole.part(SOLVING), near)
        if interrupts.asked:
            words = {name: own.words for name, own in teachers.items()}
            return Settled(solved, words, None, [_over(jobs[0], "interrupted", is_trained=solved is None, work=whole)])
        kinds = [Kind(NETWORKS)]
        if teachers:
            kinds += lessons.kinds(NETWORKS, teachers, jobs[0].rows.x.shape[1], jobs[0].seed, whole.part(SOLVING))
        short = race.planned({kind.name: steps for kind in kinds})
        if judges is None or short is None or not (solved or len(kinds) > 1):
            return Settled(solved, lessons.told(teachers, kinds[0]) if teachers else {}, None, list(jobs))
        came_out = _raced(solved, jobs, kinds, short, judges, judged, run, whole)
        if not came_out.is_whole:
            words = {name: own.words for name, own in teachers.items()}
            return Settled(solved, words, None, [_over(jobs[0], "interrupted", is_trained=solved is None, work=whole)])
    left, chosen = list(jobs), next((kind for kind in kinds if kind.name in came_out.kept), None)
    if chosen is None:
        left = [_over(jobs[0], "solved", is_trained=False, work=whole)]
    elif chosen.lessons is not None:
        left = [replace(job, lessons=chosen.lessons) for job in jobs]
    words = lessons.told(teachers, chosen or kinds[0]) if teachers else {}
    return Settled(solved, words, came_out, left)


def _over(job: Job, reason: str, *, is_trained: bool, work: Work) -> Job:
    """Return a job that is not trained any further; a model that has nothing else gets the step that it always makes."""
    if is_trained:
        job.run(work, checkpoint=None, resume=False)
    return replace(job, stopped=reason, is_over=True)


def _raced(
    solved: SolvedMembers | None,
    jobs: Sequence[Job],
    kinds: Sequence[Kind],
    steps: Mapping[str, int],
    judges: Judges,
    judged: Judged,
    run: Run,
    work: Work,
) -> Race:
    """Compare short runs of the networks of the last job, one for each kind of lessons, with what was solved for."""
    folder, found = run.checkpoint, {} if solved is None else solved.found
    names = [kind.name for kind in kinds]
    fingerprint = {} if folder is None else {**jobs[0].fingerprint(), "kinds": [*names, *found]}
    before = race.remembered(folder, fingerprint) if folder is not None and run.resume else None
    if before is not None:
        return before
    scores: dict[str, float | None] = dict.fromkeys(names)
    for name, member in found.items():
        scores[name] = judges.mean_and_error(judges.scores(judges.answers(member.conditionals)))[0]
    knows_pairs = solved is not None and solved.clean is not None
    if knows_pairs and count_of(judges.rows) < ENOUGH:
        return Race(scores, {}, len(judges.rows), list(found), not race.asked(work), work.spent)
    theirs, whole = dict[float, Tensor](), work.part(race.SHARE)
    for number, kind in enumerate(kinds):
        # The last job's networks start from nothing, so that they know what the energy need not.
        own = replace(race.shortened(jobs[-1], steps[kind.name]), lessons=kind.lessons)
        part = replace(whole.part(1 / (len(kinds) - number)), verbose=False)
        try:
            own.run(part, checkpoint=None, resume=False)
        except (TrainingDiverged, MemoryError, torch.OutOfMemoryError):
            continue
        share = 0.0 if kind.lessons is None else kind.lessons.share
        theirs[share] = judges.answers(judged([own]))
        scores[kind.name] = judges.mean_and_error(judges.scores(theirs[share]))[0]
        if race.asked(work):
            break
    chosen = lessons.best(judges, theirs) if len(theirs) > 1 else next(iter(theirs), None)
    objective: Any = jobs[-1].objective
    # What counts say of a large space, trained networks may say better: a short run does not tell.
    may_suffice = knows_pairs or objective.frame.noise.space.size <= SMALL
    behind = solved is not None and (
        chosen is None or (may_suffice and are_behind(judges, theirs[chosen], solved.answers()))
    )
    name = lessons.name_of(chosen, NETWORKS) if chosen else names[0]
    kept = [own for own in names if race.agreed(work, own == name and not behind)]
    work.left()
    is_whole = not race.asked(work)
    came_out = Race(scores, dict(steps), len(judges.rows), [*kept, *found], is_whole, work.spent)
    if folder is not None and is_whole and distributed.is_leader():
        race.remember(folder, fingerprint, came_out)
    return came_out


def told(words: Mapping[str, str], shares: Mapping[str, float]) -> dict[str, str]:
    """Say what was solved for, and what held-back rows made of it."""
    return {name: own if shares.get(name) else f"{own}; held-back rows give it no share" for name, own in words.items()}
