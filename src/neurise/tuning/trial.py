"""One trial: parameters are chosen, a model is trained on the budget, and its validation score is what counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neurise.modeling.model import Model
from neurise.modeling.search_space import Choice, Domain, Integer, LogUniform, Unless, ZeroOr, as_parameters
from neurise.training.loop import TrainingDiverged, progress_of
from neurise.tuning.task import Task

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

RUNGS = 5
"""A trial is looked at so many times, the last time at its end: those that fall behind the others are given up."""
RUNG_ROWS, RUNG_DRAWS = 64, 2
"""What a look before the end costs: so many validation rows, so many draws of the bound."""

INTERRUPTED = "interrupted"
"""The attribute of a trial that was ended by Ctrl-C, or by an error of a disk."""


def run_trial(task: Task, trial: optuna.Trial) -> float:
    """Train with the parameters that the trial suggests; return its score. Raises ``TrialPruned`` for a hopeless one.

    A trial that Ctrl-C or a disk ends, whatever it was about to do, says so: its parameters have not failed.
    """
    try:
        return _trained(task, trial)
    except (KeyboardInterrupt, OSError):
        trial.set_user_attr(INTERRUPTED, True)
        raise


def _trained(task: Task, trial: optuna.Trial) -> float:
    from optuna import TrialPruned

    drawn = {name: _suggest(trial, name, domain) for name, domain in task.space.items()}
    chosen = as_parameters(task.space, drawn, task.fixed)
    looked = 0

    def look(step: int, seconds: float, losses: Mapping[str, float], fitted: Model) -> None:
        nonlocal looked
        over = progress_of(model.settings(task.max_steps, task.max_seconds), step, seconds)
        rung = int(over * RUNGS)
        if rung <= looked or rung == RUNGS:
            return
        looked = rung
        trial.report(task.score(model, RUNG_ROWS, RUNG_DRAWS), rung)
        if trial.should_prune():
            raise TrialPruned(f"behind the others at {rung}/{RUNGS} of the budget")

    model = task.kind().set_params(**task.fixed, **chosen)
    try:
        task.fit(model, look)
    except TrainingDiverged as error:
        raise TrialPruned(str(error)) from None
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    if model.history_:
        trial.set_user_attr("steps", int(model.history_[-1]["step"]))
        trial.set_user_attr("seconds", round(model.history_[-1]["seconds"], 3))
    trial.set_user_attr("parameters", model.num_parameters_)
    return task.score(model)


def distribution(domain: Domain) -> BaseDistribution:
    """Say in Optuna's words where a parameter may lie."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(domain, Unless):
        return distribution(domain.domain)
    if isinstance(domain, Choice):
        return CategoricalDistribution(domain.values)
    if isinstance(domain, Integer):
        return IntDistribution(domain.low, domain.high)
    if isinstance(domain, ZeroOr):
        return FloatDistribution(domain.start, domain.high)
    return FloatDistribution(domain.low, domain.high, log=isinstance(domain, LogUniform))


def _suggest(trial: optuna.Trial, name: str, domain: Domain) -> Any:
    found: Any = distribution(domain)
    if isinstance(domain, Choice):
        return trial.suggest_categorical(name, found.choices)
    if isinstance(domain, Integer | Unless):
        return trial.suggest_int(name, found.low, found.high)
    return trial.suggest_float(name, found.low, found.high, log=found.log)
