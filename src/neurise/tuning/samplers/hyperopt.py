"""Hyperopt's tree-structured Parzen estimator, the paper's, behind Optuna's studies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neurise.extras import need

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial


def hyperopt(space: Mapping[str, BaseDistribution], seed: int) -> BaseSampler:
    """Ask hyperopt, which is told of every finished trial of the study; the first twenty trials are random."""
    from optuna.samplers import BaseSampler, RandomSampler

    need("hyperopt", "hyperopt")

    class Hyperopt(BaseSampler):
        """What is known is in the study, so that storage, resuming and pruning are those of the other samplers."""

        def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
            return dict(space)

        def sample_relative(
            self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
        ) -> dict[str, Any]:
            return _ask(study, trial, search_space, seed)

        def sample_independent(
            self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
        ) -> Any:
            return RandomSampler(seed=seed + trial.number).sample_independent(
                study, trial, param_name, param_distribution
            )

    return Hyperopt()


def _ask(study: Study, trial: FrozenTrial, space: Mapping[str, BaseDistribution], seed: int) -> dict[str, Any]:
    from hyperopt import JOB_STATE_DONE, STATUS_OK, Domain, Trials, tpe  # type: ignore[import-untyped]
    from optuna.trial import TrialState

    known = Trials()
    for done in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        values = {name: [_to_hyperopt(space[name], value)] for name, value in done.params.items() if name in space}
        document = known.new_trial_docs([done.number], [None], [{"status": STATUS_OK, "loss": done.value}], [{}])[0]
        misc = {"tid": done.number, "cmd": None, "workdir": None}
        document["misc"] = {**misc, "idxs": {name: [done.number] for name in values}, "vals": values}
        document["state"] = JOB_STATE_DONE
        known.insert_trial_doc(document)
    known.refresh()
    domain = Domain(lambda _: 0.0, {name: _expression(name, part) for name, part in space.items()})
    asked = tpe.suggest([trial.number], domain, known, seed + trial.number, verbose=False)[0]
    return {name: _from_hyperopt(space[name], values[0]) for name, values in asked["misc"]["vals"].items()}


def _expression(name: str, part: BaseDistribution) -> Any:
    from hyperopt import hp
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(part, CategoricalDistribution):
        return hp.choice(name, list(part.choices))
    if isinstance(part, IntDistribution):
        return hp.choice(name, list(range(part.low, part.high + 1)))
    if not isinstance(part, FloatDistribution):
        raise TypeError(f"hyperopt cannot search {part!r}")
    if part.log:
        return hp.loguniform(name, math.log(part.low), math.log(part.high))
    return hp.uniform(name, part.low, part.high)


def _to_hyperopt(part: BaseDistribution, value: Any) -> Any:
    """Give a value as hyperopt records it: the place of a choice among all."""
    values = _choices(part)
    return value if values is None else values.index(value)


def _from_hyperopt(part: BaseDistribution, value: Any) -> Any:
    values = _choices(part)
    if values is not None:
        return values[int(value)]
    return min(max(float(value), part.low), part.high)  # type: ignore[attr-defined]  # a rounding beyond the end is refused


def _choices(part: BaseDistribution) -> list[Any] | None:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(part, CategoricalDistribution):
        return list(part.choices)
    return list(range(part.low, part.high + 1)) if isinstance(part, IntDistribution) else None
