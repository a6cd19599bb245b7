"""What ``neurise train`` says in the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurise.cli._output import print_facts, print_json

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.modeling.model import Model


def report(model: Model, data: Dataset, output: Path, config: str | None, *, as_json: bool) -> None:
    """Print what was learnt, from what, and how it went."""
    from neurise.modeling.summary import best_scores, readable

    scores = best_scores(model.history_)
    last = model.history_[-1] if model.history_ else {}
    summary = model.summary()
    facts: dict[str, Any] = {
        "model": str(output),
        "kind": repr(model),
        "config": config,
        "rows": model.schema_.count,
        "sites": model.space_.sites,
        "states": model.space_.states,
        "test_rows": 0 if model.split_ is None or data.test is None else len(data.test),
        "parameters": model.num_parameters_,
        "steps": summary.get("steps", 0),
        "seconds": round(last.get("seconds", 0.0), 3),
        "loss": last.get("loss"),
        "validation": summary.get("validation"),
        "validation_of_parts": scores if len(scores) > 1 else None,
        "stopped": model.stopped_,
    }
    chosen = {name: fact for name, fact in summary.items() if name not in (*facts, "data")}
    if as_json:
        facts |= {name.replace(" ", "_"): fact for name, fact in chosen.items()}
        print_json({**facts, "finished": model.stopped_ != "interrupted"})
        return
    reasons = {
        "steps": "all steps are done",
        "time": "the time is over",
        "patience": "the validation score no longer falls",
        "interrupted": "Ctrl-C or SIGTERM",
        "constant": "all rows are equal: there is nothing to learn",
        "solved": "it is counted, not trained",
    }
    units = getattr(model, "score_units", "")
    shown = {
        "saved in": facts["model"],
        "model": facts["kind"],
        **({"configuration": config} if config else {}),
        "data": f"{facts['rows']:,} rows of {facts['sites']:,} sites, {facts['states']} states",
        **({"held back": f"{facts['test_rows']:,} rows to evaluate with"} if model.split_ is not None else {}),
        **{name: readable(fact) for name, fact in chosen.items()},
        "parameters": f"{facts['parameters']:,}",
        "trained": f"{facts['steps']:,} steps{_in_parts(last)} in {facts['seconds']:.1f} s",
        "loss": "–" if facts["loss"] is None else f"{facts['loss']:.4f}",
        "validation": f"{' and '.join(f'{score:.4f}' for score in scores)} {units}" if scores else "–",
        "ended because": reasons.get(model.stopped_, model.stopped_),
    }
    print_facts("", shown)


def _in_parts(last: Mapping[str, float]) -> str:
    """Say how many steps each part of a model made, where there are several: --max-steps counts those."""
    if "steps" not in last:
        return ""
    alike = last["steps"] % last["step"] == 0  # a limit of time gives the parts as many as they manage
    return f" ({last['step']:,.0f} for each part)" if alike else f" (at most {last['step']:,.0f} in one part)"
