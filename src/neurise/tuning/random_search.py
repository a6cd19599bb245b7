"""Search by chance alone, which needs no other library: the same number of settings, and the same time, for every method."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neurise.modeling.estimator import plain
from neurise.modeling.search_space import Choice, Domain, Integer, LogUniform, Unless, ZeroOr, as_parameters
from neurise.presets import Configuration
from neurise.training.loop import TrainingDiverged
from neurise.tuning.task import Task

SCORED, DRAWS = 128, 2
"""So many validation rows are scored at the end of a trial, and where there is only a bound, each of them by so many runs of the
noise. On wide data with soft noise a score should not take longer than the training."""


def drawn(task: Task, place: int) -> dict[str, Any]:
    """Draw the settings of a trial; its randomness is its own, so that a search goes on as if it had not been interrupted."""
    source = np.random.default_rng([task.seed, place])
    found = {name: _draw(domain, source) for name, domain in task.space.items()}
    return as_parameters(task.space, found, task.fixed)


def random_search(task: Task, trials: int, journal: Path, about: Mapping[str, Any] | None = None) -> Configuration:
    """Try so many settings, and return the best; trials that the journal has are not made again.

    The journal has a line for each trial, and may hold those of several searches.
    """
    known = _read(journal, task.identity())
    for place in range(trials):
        if place not in known:
            known[place] = _tried(task, place)
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"search": task.identity(), **known[place]}, ensure_ascii=False) + "\n")
    finished = [known[place] for place in range(trials) if known[place]["score"] is not None]
    if not finished:
        raise ValueError(f"none of {trials} trials of {task.model} could be scored; {journal} has what became of each")
    best = min(finished, key=lambda trial: (trial["score"], trial["place"]))
    fixed = {name: value for name, value in plain(dict(task.fixed)).items() if name != "alphabet"}
    facts = {
        **(about or {}),
        "sampler": "random",
        "seed": task.seed,
        "trial": best["place"],
        "finished": len(finished),
        "failed": trials - len(finished),
        "steps_a_trial": task.max_steps,
        "seconds_a_trial": task.max_seconds,
        "score_is": "mean of -log p, or of a bound on it, over the validation rows, in nats per row",
        "searched": sorted(task.space),
    }
    return Configuration(task.model, {**fixed, **best["params"]}, best["score"], facts)


def _tried(task: Task, place: int) -> dict[str, Any]:
    """Train with settings drawn at random, and score; what diverges has no score."""
    params = drawn(task, place)
    model = task.kind().set_params(**task.fixed, **params)
    told: dict[str, Any] = {"place": place, "params": plain(params), "score": None, "steps": None}
    began = time.perf_counter()
    try:
        task.fit(model)
    except TrainingDiverged as error:
        return {**told, "error": str(error)}
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    told |= {"seconds": round(time.perf_counter() - began, 3), "parameters": model.num_parameters_}
    told["steps"] = int(model.history_[-1]["step"]) if model.history_ else None
    score = task.score(model, SCORED, DRAWS)
    return {**told, "score": score if math.isfinite(score) else None}


def _draw(domain: Domain, source: np.random.Generator) -> Any:
    if isinstance(domain, Unless):
        return _draw(domain.domain, source)
    if isinstance(domain, Choice):
        return domain.values[source.integers(len(domain.values))]
    if isinstance(domain, Integer):
        return int(source.integers(domain.low, domain.high + 1))
    if isinstance(domain, LogUniform):
        return float(np.exp(source.uniform(np.log(domain.low), np.log(domain.high))))
    low = domain.start if isinstance(domain, ZeroOr) else domain.low
    return float(source.uniform(low, domain.high))


def _read(journal: Path, search: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the trials of a search that a journal has; a last line that was cut short is no trial."""
    found: dict[int, dict[str, Any]] = {}
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict) and told.pop("search", None) == search:
            found[told["place"]] = told
    return found
