"""Fitting many models at once: those that differ in seed or data alone are trained as one batched model."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

import torch

from neurise import devices
from neurise.alphabet import Symbols
from neurise.models._estimator import plain
from neurise.models._schema import learn_schema
from neurise.models._trained import TrainedModel
from neurise.models.base import Model, Run
from neurise.training.batches import Rows
from neurise.training.loop import TrainingDiverged, train
from neurise.training.many import ManyObjective, Stacked
from neurise.training.placing import place_many
from neurise.training.settings import checked_limits


class Trial(NamedTuple):
    """A model that knows its data, and what it is to learn from."""

    model: Model
    rows: Rows
    held: Rows | None
    run: Run
    kind: str  # the same for trials that can be trained as one


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
    as one batched model; the numbers of rows may differ. What differs in more is trained group after group, each as long
    as ``max_seconds`` says.

    Args:
        models: one for each data set, which are fitted and returned; or one to make copies of.
        Xs: a list of data sets, (N, sites) each; or a single array that all models learn from.
        ys, weights, validation: as in ``fit``, a list with one entry for each data set; or, with a single array, its own.
        seeds: one for each model; without it 0, 1, 2, …

    A seed decides a model's first weights and what is held back of its data, as in ``fit``. The noise of the training is
    drawn for all models of a group together: the same list gives the same models, another list slightly others. A model that
    diverges keeps its last good weights, and a warning names it: the others are not disturbed.
    """
    start = None if seeds is None else [devices.checked_seed(seed) for seed in seeds]
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
    steps, seconds = checked_limits(max_steps, max_seconds)
    place = devices.resolve(device)
    runs = [Run(seed, None, False, steps, seconds, verbose) for seed in numbers]
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
    return type(model)(**model.get_params())


def _trial(model: Model, X: Symbols, y: Any, weights: Any, validation: Any, *, run: Run, place: torch.device) -> Trial:
    own = _fresh(model)
    schema, rows, held = learn_schema(X, y, weights, validation, alphabet=own.alphabet, order=own.order)
    own.schema_, own.device_, own.history_, own.stopped_ = schema, place, [], "constant"
    return _unit(own, rows, held, run)


def _unit(own: Model, rows: Rows, held: Rows | None, run: Run) -> Trial:
    """Tell what of a model and its data must be equal for models to be trained together."""
    schema = own.schema_
    looks = [repr(schema.space), schema.classes, schema.constant.tolist()]
    if isinstance(own, TrainedModel):
        own.settings(run.max_steps, run.max_seconds)  # which checks them
        rest, held_back = own.divide(rows, held, run.seed)
        looks += [
            {name: plain(own.chosen(name)) for name in own.open_settings()},
            rest.x.shape[1],  # one more than the sites where there are folds
            rest.weights is None,
            held_back is None,
            held_back is None or held_back.weights is None,
        ]
    kind = json.dumps([type(own).__name__, plain(own.get_params()), looks])
    return Trial(own, rows, held, run, kind)


def _learn_all(trials: list[Trial]) -> None:
    """Train all models, those that have parts by their parts."""
    parts = [_parts(trial) for trial in trials]
    units = [unit for trial, own in zip(trials, parts, strict=True) for unit in (own or [trial])]
    _learn(units)
    for trial, own in zip(trials, parts, strict=True):
        models = [unit.model for unit in own if isinstance(unit.model, TrainedModel)]
        if models and isinstance(trial.model, TrainedModel):
            trial.model.put_together(models, trial.rows, trial.held, trial.run.seed)
        if isinstance(trial.model, TrainedModel) and trial.model.stopped_ != "diverged":
            trial.model.complete(trial.rows, trial.run.seed)
    lost = [number for number, trial in enumerate(trials) if trial.model.stopped_ == "diverged"]
    if lost:
        warnings.warn(
            f"models {', '.join(map(str, lost))} of {len(trials)} diverged and keep their last good weights: try a smaller "
            "learning_rate, or another loss if the model offers any",
            stacklevel=3,
        )


def _parts(trial: Trial) -> list[Trial]:
    """Take a model apart, if it is trained in parts."""
    if not isinstance(trial.model, TrainedModel) or not bool((trial.model.schema_.constant < 0).any()):
        return []
    found = trial.model.parts()
    for part in found:
        part.take_place(trial.model)
    runs = [trial.model.run_of_part(number, len(found), trial.run) for number in range(len(found))]
    return [_unit(part, trial.rows, trial.held, run) for part, run in zip(found, runs, strict=True)]


def _learn(trials: list[Trial]) -> None:
    """Train group after group; after Ctrl-C, what is left keeps the weights that it starts from."""
    interrupted = False
    for _, members in groupby(sorted(trials, key=lambda trial: trial.kind), key=lambda trial: trial.kind):
        group = list(members)
        trained = [(trial.model, trial) for trial in group if isinstance(trial.model, TrainedModel)]
        if len(trained) < 2 and not (interrupted and trained):
            for trial in group:
                _alone(trial)
        else:
            _together([model for model, _ in trained], group, begin_only=interrupted)
        interrupted = interrupted or any(trial.model.stopped_ == "interrupted" for trial in group)


def _alone(trial: Trial) -> None:
    with suppress(TrainingDiverged):  # stopped_ tells
        if isinstance(trial.model, TrainedModel):  # or a part of one
            settings = trial.model.settings(trial.run.max_steps, trial.run.max_seconds)
            trial.model._learn_whole(trial.rows, trial.held, settings, trial.run)
        else:
            trial.model._learn(trial.rows, trial.held, trial.run)


def _together(models: list[TrainedModel], group: list[Trial], *, begin_only: bool) -> None:
    """Train models of one kind as one."""
    run, device = group[0].run, models[0].device_
    settings = models[0].settings(run.max_steps, run.max_seconds)
    largest = max((trial.rows for trial in group), key=len)
    for model, trial in zip(models, group, strict=True):
        model.begin(largest, settings, trial.run.seed, together=len(group))
    if not bool((models[0].schema_.constant < 0).any()):
        return
    for model in models:
        model.stopped_ = "interrupted"  # unless training comes to an end of its own
    if begin_only:
        return
    parts = [model.divide(t.rows, t.held, t.run.seed) for model, t in zip(models, group, strict=True)]
    began = time.monotonic()
    for model, part, trial in zip(models, parts, group, strict=True):
        model.prepare(*part, trial.run.seed, given=trial.held is not None)
    settings = settings.after(time.monotonic() - began)
    stacked = Stacked([model.objective_.network for model in models])
    held = [part for _, part in parts if part is not None]
    history: list[dict[str, Any]] = []
    reason = train(
        ManyObjective(models[0].objective_, stacked),
        place_many([rows for rows, _ in parts], models[0].symbols_in(parts[0][0]), device),
        place_many(held, models[0].symbols_in(held[0]), device) if held else None,
        settings,
        generator=devices.generator(_joint_seed(trial.run.seed for trial in group), device),
        fingerprint={},
        verbose=run.verbose,
        history=history,
    )
    for k, model in enumerate(models):
        model.objective_.network.load_state_dict(stacked.weights_of(k))
        model.objective_.network.requires_grad_(False)
        model.finish()
        model.history_ = [_of(k, record) for record in history if record["judged"][k]]
        if history and history[-1]["diverged"][k]:
            model.stopped_ = "diverged"
        else:
            model.stopped_ = reason if len(model.history_) == len(history) else "patience"


def _of(k: int, record: dict[str, Any]) -> dict[str, float]:
    """Take the part of one model out of a record of all."""
    own = {name: values[k] for name, values in record.items() if name in ("loss", "validation")}
    return {"step": record["step"], "seconds": record["seconds"], **own}


def _joint_seed(seeds: Iterable[int]) -> int:
    """Make one seed of many: that of any other list is another."""
    return int.from_bytes(hashlib.sha256(repr(list(seeds)).encode()).digest()[:7])
