"""Fitting many models at once: those that differ in seed or data alone are trained as one batched model."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import torch

from neurise import checks, deadline, devices
from neurise.alphabet import Symbols
from neurise.deadline import Work, noted_interrupts
from neurise.modeling.estimator import plain
from neurise.modeling.model import Model, Run
from neurise.modeling.trained import MOMENT, PREPARING, Job, TrainedModel
from neurise.networks.parts.stack import Stack
from neurise.rows import Rows
from neurise.schema import Schema, learn_schema
from neurise.training.loop import TrainingDiverged, train
from neurise.training.placing import place_many
from neurise.training.stacked import ManyObjective


class Trial(NamedTuple):
    """One of the models to fit, its rows, and the jobs that train it."""

    model: Model
    rows: Rows
    held: Rows | None
    run: Run
    jobs: list[Job]  # none where nothing is trained


def fit_many(
    models: Model | Sequence[Model],
    Xs: Sequence[Symbols] | Symbols,
    ys: Any = None,
    *,
    weights: Any = None,
    validation: Any = None,
    seeds: Iterable[int] | None = None,
    device: str | torch.device | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    verbose: bool | None = None,
) -> list[Model]:
    """Fit many models at once, each as ``fit`` would: on a GPU fifty small ones take little longer than one.

    Models of one class with equal parameters, and data of the same sites, states, labels and constant sites, are trained
    as one batched model; the numbers of rows may differ, unless a setting that was left open goes by them. What differs in
    more is trained group after group, each as long as ``max_seconds`` says.

    Args:
        models: one for each data set, which are fitted and returned; or one to make copies of.
        Xs: a list of data sets, (N, sites) each; or a single array that all models learn from.
        ys, weights, validation: as in ``fit``, a list with one entry for each data set; or, with a single array, its own.
        seeds: one for each model; without it 0, 1, 2, …

    A seed decides a model's first weights and what is held back of its data, as in ``fit``. The noise of the training is
    drawn for all models of a group together: the same list gives the same models, another list slightly others. A model that
    diverges keeps its last good weights, and a warning names it: the others are not disturbed.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.NeurISE(width=4, members=1, steps=5)
    >>> models = neurise.fit_many(model, [X[:40], X[40:]], seeds=[0, 1], verbose=False)
    >>> [one.sample(2, seed=0).shape for one in models]
    [(2, 3), (2, 3)]
    """
    start = None if seeds is None else [checks.seed(seed) for seed in seeds]
    one = not isinstance(Xs, list | tuple) and getattr(Xs, "ndim", 3) == 2
    count = _how_many(models, None if one else Xs, start)
    targets = [_fresh(models) for _ in range(count)] if isinstance(models, Model) else list(models)
    own = {"Xs": Xs, "ys": ys, "weights": weights, "validation": validation}
    lists = {name: [given] * count if one or given is None else list(given) for name, given in own.items()}
    numbers = list(range(count)) if start is None else start
    entries: dict[str, list[Any]] = {"models": targets, "seeds": numbers, **lists}
    for name, values in entries.items():
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} entries for {count} models")
    if len({id(model) for model in targets}) < count:
        raise ValueError("the same model is in the list twice; each needs an object of its own")
    steps, seconds = checks.limits(max_steps, max_seconds)
    place = devices.resolve(device)
    shown = None if verbose is None else checks.flag("verbose", verbose)
    runs = [Run(seed, None, False, steps, seconds, shown, deadline.CLOCK()) for seed in numbers]
    with noted_interrupts():  # also while kinds of networks race
        trials = [
            _trial(model, *data, run=run, place=place)
            for model, run, *data in zip(targets, runs, *lists.values(), strict=True)
        ]
        _learn_all(trials)
    for target, trial in zip(targets, trials, strict=True):  # which are as they were until all is done
        vars(target).clear()
        vars(target).update(vars(trial.model))
    return targets


def _how_many(models: Model | Sequence[Model], Xs: Any, seeds: list[int] | None) -> int:
    """How many models are to be fitted; ``Xs`` is None where all learn from one data set."""
    if Xs is not None:
        if not len(Xs):
            raise ValueError("Xs is empty: there is nothing to learn from")
        return len(Xs)
    if not isinstance(models, Model):
        return len(models)
    if seeds is None:
        raise ValueError("one model and one data set: say with seeds= how many to train")
    return len(seeds)


def _fresh(model: Model) -> Model:
    return type(model)(**model.get_params(deep=False))


def _trial(model: Model, X: Symbols, y: Any, weights: Any, validation: Any, *, run: Run, place: torch.device) -> Trial:
    own = _fresh(model)
    own.begin_fit(place)
    own.schema_, rows, held = learn_schema(X, y, weights, validation, alphabet=own.alphabet, order=own.order)
    if rows.missing is not None or (held is not None and held.missing is not None):
        own.check_gaps()
    own.check()
    varies = bool((own.schema_.constant < 0).any())
    return Trial(own, rows, held, run, own.jobs(rows, held, run) if isinstance(own, TrainedModel) and varies else [])


def _kind(job: Job, schema: Schema) -> str:
    """Tell what of a job must be equal for jobs to be trained together: the objective of the first of them serves all."""
    shapes = {name: list(parameter.shape) for name, parameter in job.objective.network.named_parameters()}
    rows = job.learnt_from
    both = (rows, job.held or rows)
    lacking = [[part is None for part in (own.y, own.weights, own.fold, own.missing)] for own in both]
    order = range(schema.space.sites) if job.order is None else job.order
    sites = [[int(schema.constant[site]), schema.space.digits[site]] for site in order]
    # What is chosen by the number of rows: a penalty, how much is left out at random.
    chosen: dict[str, Any] = {
        name: value for name, value in vars(job.objective).items() if isinstance(value, int | float | str)
    }
    chosen["dropout"] = getattr(getattr(job.objective.network, "pattern", None), "dropout", None)
    return json.dumps([plain(job.params), plain(job.settings), shapes, lacking, job.held is None, sites, chosen])


def _learn_all(trials: list[Trial]) -> None:
    """Train all models: jobs of one kind together, group after group."""
    left = [(number, trial, job) for number, trial in enumerate(trials) for job in trial.jobs if not job.is_over]
    jobs = sorted(
        ((_kind(job, trial.model.schema_), number, job) for number, trial, job in left), key=lambda entry: entry[:2]
    )
    with noted_interrupts() as interrupts:
        for _, group in groupby(jobs, key=lambda entry: entry[0]):
            together = [job for _, _, job in group]
            if interrupts.asked:  # what is left keeps the weights that it starts from
                for job in together:
                    job.begin(len(together))
            else:
                limit = together[0].limit
                _train(together, Work(math.inf if limit is None else limit, interrupts, verbose=trials[0].run.verbose))
        for trial in trials:
            if trial.jobs and isinstance(trial.model, TrainedModel):
                limit, share = trial.run.max_seconds, trial.model.closing_share(trial.jobs)
                last = Work(math.inf if limit is None else share * limit, interrupts, verbose=trial.run.verbose)
                trial.model.finish(trial.jobs, trial.rows, trial.run, last)
            else:
                trial.model._learn(trial.rows, trial.held, trial.run)
    lost = [number for number, trial in enumerate(trials) if trial.model.stopped_ == "diverged"]
    if lost:
        warnings.warn(
            f"models {', '.join(map(str, lost))} of {len(trials)} diverged and keep their last good weights: try a smaller "
            "learning_rate, or another loss if the model offers any",
            stacklevel=3,
        )


def _train(jobs: list[Job], work: Work) -> None:
    """Train jobs of one kind."""
    if len(jobs) == 1:
        with suppress(TrainingDiverged):  # stopped tells
            jobs[0].run(work, checkpoint=None, resume=False)
    else:
        _train_as_one(jobs, work)


def _train_as_one(jobs: list[Job], work: Work) -> None:
    """Train one batched network, and hand its parts back."""
    settings, device, states = jobs[0].settings, jobs[0].device, jobs[0].states
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if device.type == "cpu" else threads)  # pairwise fits are made of small products
    preparing = work.part(PREPARING)
    try:
        for number, job in enumerate(jobs):
            job.get_ready(preparing.part(1 / (len(jobs) - number)), len(jobs))
    finally:
        torch.set_num_threads(threads)
    if work.seconds < math.inf:
        settings = replace(settings, max_seconds=max(work.left(), min(work.seconds, MOMENT)))
    stack = Stack([job.objective.network for job in jobs])
    held = [job.held for job in jobs if job.held is not None]
    history: list[dict[str, Any]] = []
    reason = train(
        ManyObjective(jobs[0].objective, stack),
        place_many([job.learnt_from for job in jobs], states, device),
        place_many(held, states, device) if held else None,
        settings,
        generator=devices.generator(_joint_seed(job.seed for job in jobs), device),
        fingerprint={},
        verbose=work.verbose,
        history=history,
        models=len(jobs),
    )
    for k, (job, network) in enumerate(zip(jobs, stack.networks(), strict=True)):
        job.objective.network.load_state_dict(network.state_dict())
        job.objective.network.requires_grad_(False)
        job.history = [_of(k, record) for record in history if record["judged"][k]]
        if history and history[-1]["diverged_at"][k]:
            job.stopped, job.diverged_at = "diverged", history[-1]["diverged_at"][k]
        else:
            job.stopped = reason if len(job.history) == len(history) else "patience"


def _of(k: int, record: dict[str, Any]) -> dict[str, float]:
    """Take the part of one model out of a record of all."""
    own = {name: values[k] for name, values in record.items() if name in ("loss", "validation")}
    return {"step": record["step"], "seconds": record["seconds"], **own}


def _joint_seed(seeds: Iterable[int]) -> int:
    """Make one seed of many: that of any other list is another."""
    return int.from_bytes(hashlib.sha256(repr(list(seeds)).encode()).digest()[:7])
