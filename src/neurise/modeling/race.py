"""A short race of several kinds of networks: each learns for a little while, and rows that are held back compare them."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from neurise import json_text
from neurise.deadline import Work, noted_interrupts
from neurise.fields import Field
from neurise.files import write_atomically
from neurise.modeling.model import Run
from neurise.modeling.trained import Job, Prepare
from neurise.training import distributed
from neurise.training.loop import TrainingDiverged
from neurise.training.state import RACE, START_AGAIN

SHARE = 0.2
"""Of the steps, and of a limited time, that all kinds together may take."""
LEAST = 10
"""Steps of each kind below which nothing is learnt: such a short run takes the first kind."""
BEHIND = 1.5
"""A kind is left out whose score is more than so many times the best: a kind that learns slowly may catch up from less."""
ERRORS = 2.0
"""Standard errors of that difference over the rows, within which a kind is not yet behind."""
TIE = 1e-9
"""Nats. Differences below are rounding."""
ROWS = 512
"""Rows held back that compare the kinds, at most."""

Judge = Callable[[Job], Tensor]
"""Returns the negative log-likelihood of each of some rows, (n,), by what a job has learnt."""


@dataclass(frozen=True)
class Race:
    """What came out of a race."""

    scores: dict[str, float | None]  # nats per row after the short run; None where there is none
    steps: dict[str, int]  # of each kind
    rows: int  # that compared them
    kept: list[str]  # what is trained whole
    is_whole: bool = True  # not where Ctrl-C ended it
    seconds: float = field(default=0.0, compare=False)

    def found(self) -> dict[str, float]:
        """Return the scores that there are."""
        return {kind: score for kind, score in self.scores.items() if score is not None}

    def told(self) -> str:
        """Say who ran for how long, and who is left."""
        if not self.steps:
            return f"{' and '.join(self.kept)}: there were too few steps, or rows held back, for a race"
        runs = " and ".join(f"{steps:,} steps of {kind}" for kind, steps in self.steps.items())
        ended = "" if self.is_whole else ", which was interrupted"
        return f"{' and '.join(self.kept)}: by a race of {runs} on {self.rows:,} rows held back{ended}"


class Once:
    """Prepare the network of a job, and give what was found to the next job that asks: both start from the same weights."""

    def __init__(self, prepare: Prepare) -> None:
        self.prepare, self.found = prepare, dict[str, Tensor]()

    def __call__(self, job: Job, work: Work) -> None:
        """Prepare, unless it was done before without being cut short."""
        if self.found:
            job.objective.network.load_state_dict(self.found)
            self.found = {}
            return
        self.prepare(job, work)
        if work.left():
            self.found = {name: tensor.clone() for name, tensor in job.objective.network.state_dict().items()}


def kept(scores: Mapping[str, Tensor], *, together: bool) -> list[str]:
    r"""Return the kinds that are not behind, in the order of ``scores``; not ``together``: the first of them alone.

    With :math:`s_k` the score of kind k on a row and b the best kind, kind k is behind where

    .. math:: \overline{s_k - c\,s_b} > e\,\mathrm{SE}(s_k - c\,s_b), \qquad c = 1.5,\ e = 2,

    the mean over the rows, and the standard error of that mean. Scores that are no finite numbers are behind.
    """
    finite = {kind: own.double() for kind, own in scores.items() if bool(own.isfinite().all())}
    if not finite:
        return list(scores)[:1]
    best = min(finite.values(), key=lambda own: float(own.mean()))
    left = []
    for kind, own in finite.items():
        excess = own - BEHIND * best
        error = float(excess.std()) / math.sqrt(len(excess)) if len(excess) > 1 else 0.0
        if float(excess.mean()) <= ERRORS * error + TIE:
            left.append(kind)
    return left if together else left[:1]


def planned(steps: Mapping[str, int]) -> dict[str, int] | None:
    """Return how many of its steps each kind makes in a race; None where they are too few to tell anything."""
    short = {kind: int(SHARE * own / len(steps)) for kind, own in steps.items()}
    return short if min(short.values()) >= LEAST else None


def settle(
    jobs: Mapping[str, Job], steps: Mapping[str, int], judge: Judge, run: Run, *, together: bool
) -> tuple[Race, dict[str, Job]]:
    """Hold the race of a run, and return what came out and the jobs to be trained whole; ``steps`` are those of a whole run.

    A run that goes on from a checkpoint takes what came out before. Where Ctrl-C ends the race, the job that is returned is
    over: what it has learnt is the model.
    """
    first, short = next(iter(jobs)), planned(steps)
    if len(jobs) == 1 or short is None or jobs[first].held is None:
        return Race({}, {}, 0, [first]), {first: jobs[first]}
    folder, team = run.checkpoint, distributed.TEAM.get()
    fingerprint = {} if folder is None else {**jobs[first].fingerprint(), "kinds": list(jobs)}
    race = remembered(folder, fingerprint) if folder is not None and run.resume else None
    if race is None:
        with noted_interrupts() as interrupts:
            seconds = math.inf if run.max_seconds is None else SHARE * run.max_seconds
            work = Work(seconds, interrupts, None if team is None else team.agree, run.verbose)
            race, ran = hold(jobs, short, judge, work, together=together)
        if not race.is_whole:
            (kind,) = race.kept
            return race, {kind: replace(ran[kind], stopped="interrupted", is_over=True)}
        if folder is not None and distributed.is_leader():
            remember(folder, fingerprint, race)
    return race, {kind: jobs[kind] for kind in race.kept}


def hold(
    jobs: Mapping[str, Job], steps: Mapping[str, int], judge: Judge, work: Work, *, together: bool
) -> tuple[Race, dict[str, Job]]:
    """Let the job of every kind make its steps, and compare what they have learnt.

    Returns what came out, and the jobs as they ran. A kind that diverges or does not fit into memory is behind. Ctrl-C ends the
    race with the best kind so far. Several processes do as the leader's scores say.
    """
    scores, ran, lost = dict[str, Tensor](), dict[str, Job](), list[BaseException]()
    whole = work.part(1.0, what="choosing", unit="kinds of networks", total=len(jobs))
    for number, (kind, job) in enumerate(jobs.items()):
        own, part = shortened(job, steps[kind]), whole.part(1 / (len(jobs) - number))
        try:
            own.run(replace(part, verbose=False, shown=None), checkpoint=None, resume=False)
        except (TrainingDiverged, MemoryError, torch.OutOfMemoryError) as error:
            lost.append(error)
            continue
        ran[kind] = own
        if own.stopped == "interrupted":
            break
        scores[kind] = judge(own)
        whole.left(done=1)
    if whole.shown is not None:
        whole.shown.progress.close()
    if not ran:
        raise lost[0]
    is_whole = not asked(work)
    left = kept(scores, together=together) if scores else list(ran)
    left = [kind for kind in ran if agreed(work, kind in left)]
    if not is_whole:  # the best so far, which can be used as it is
        left = [min(scores, key=lambda kind: float(scores[kind].mean()))] if scores else left[:1]
    means = {kind: float(scores[kind].mean()) if kind in scores else None for kind in jobs}
    rows = max(map(len, scores.values()), default=0)
    work.left()
    return Race(means, dict(steps), rows, left, is_whole, work.spent), ran


def shortened(job: Job, steps: int) -> Job:
    """Return a job like another one, with a network of its own and fewer steps."""
    objective: Any = job.objective
    if job.prepare is not None:
        job.prepare = Once(job.prepare)
    alike = replace(objective, network=copy.deepcopy(objective.network))
    return replace(job, objective=alike, settings=replace(job.settings, max_steps=steps), history=[])


def asked(work: Work) -> bool:
    """Whether Ctrl-C has asked any process to end."""
    asked = work.interrupts.asked
    return asked if work.agree is None else work.agree(0.0, asked)[1]


def agreed(work: Work, own: bool) -> bool:
    """Return what the leader of several processes says."""
    return own if work.agree is None else bool(work.agree(float(own), False)[0])


def remember(folder: Path, fingerprint: Mapping[str, Any], race: Race) -> None:
    """Write down what came out, beside the checkpoints of the run: one that goes on does not race again."""
    text = json.dumps({"fingerprint": dict(fingerprint), "race": asdict(race)}, indent=2)
    write_atomically(folder / RACE, lambda place: place.write_text(text))


def remembered(folder: Path, fingerprint: Mapping[str, Any]) -> Race | None:
    """Return what came out of the race of a run that goes on; None where it was stopped before that."""
    path = folder / RACE
    if not path.exists():
        return None
    found = Field(json_text.parse(path.read_text(), str(path)), f"{path}: ")
    if found["fingerprint"].value != json.loads(json.dumps(dict(fingerprint))):
        raise ValueError(f"{path} belongs to another run; resume with the same data and settings, or {START_AGAIN}")
    return checked(found["race"])


def checked(told: Field) -> Race:
    """Return a race that was read from a file."""
    scores, steps = dict[str, float | None](), dict[str, int]()
    for entry in told["scores"].entries():
        scores[_last(entry.name)] = None if entry.value is None else entry.number()
    for entry in told["steps"].entries():
        steps[_last(entry.name)] = entry.whole(1)
    left = [entry.text() for entry in told["kept"]]
    if not left or (scores and not set(left) <= set(scores)):
        raise told["kept"].wrong(f"some of {', '.join(scores)}")
    return Race(scores, steps, told["rows"].whole(), left, told["is_whole"].flag(), told["seconds"].number(0))


def _last(name: str) -> str:
    return name.rpartition(".")[2]
