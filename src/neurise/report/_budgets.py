"""What each method was given: how long it was trained, with which settings, and how long that took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape
from typing import Any

from neurise.experiments import Experiment, store
from neurise.experiments.parts.summary import device_of, number, ran_alone, split
from neurise.report._numbers import readable

COLUMNS = {
    "steps": "steps",
    "batch_size": "examples a step",
    "examples": "examples",
    "width": "width",
    "depth": "depth",
    "loss": "loss",
    "learning_rate": "learning rate",
    "parameters": "parameters",
    "learnt_from": "rows learnt from",
    "compared_with": "rows compared with",
    "drawn": "samples",
}
"""What is shown of a budget, where rows say it."""
SECONDS = "train_seconds"


def budgets(experiment: Experiment, rows: Sequence[store.Row]) -> str:
    """Write the table of budgets, a line for each method; times only of cells that ran alone on their device."""
    lines = [(label, budget_of(line), _seconds(line)) for label, line in split(experiment, rows, None)]
    shown = [name for name in COLUMNS if any(name in facts for _, facts, _ in lines)]
    if not shown:
        return ""
    timed = any(seconds for *_, seconds in lines)
    heads = "".join(f'<th scope="col">{escape(COLUMNS[name])}</th>' for name in shown)
    heads += '<th scope="col">training, s, alone on the device</th>' if timed else ""
    body = ""
    for label, facts, seconds in lines:
        cells = "".join(f"<td>{escape(facts.get(name, '–'))}</td>" for name in shown)
        cells += f"<td>{escape(seconds or 'not measured alone')}</td>" if timed else ""
        body += f'<tr><th scope="row">{escape(label or "all")}</th>{cells}</tr>'
    return (
        '<h3>Budgets</h3><div class="wide" role="region" tabindex="0" aria-label="Budgets"><table><thead><tr>'
        f'<th scope="col">method</th>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def budget_of(rows: Sequence[store.Row]) -> dict[str, str]:
    """Collect the budgets of rows: the value of all of them, or two of them, or from where to where they go."""
    found: dict[str, set[Any]] = {}
    for row in rows:
        for name, entry in _facts(row).items():
            if name in COLUMNS and entry is not None:
                found.setdefault(name, set()).add(entry if isinstance(entry, float | int) else str(entry))
    return {name: _told(values) for name, values in found.items()}


def _told(values: set[Any]) -> str:
    words = [entry for entry in values if isinstance(entry, str)]
    numbers = list(dict.fromkeys(_number(entry) for entry in sorted(values - set(words))))
    if len(numbers) > 2:
        numbers = [f"{numbers[0]} … {numbers[-1]}"]
    return ", ".join([" and ".join(numbers)] * bool(numbers) + sorted(words))


def _number(value: float) -> str:
    """Write a whole number as it is where it may be a setting; a width of 1024 is not 1,020."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 10_000 else readable(value)


def _facts(row: store.Row) -> dict[str, Any]:
    trained = (
        row["metrics"].get("parameters") != 0
    )  # real rows are not, and their cells have the settings of the others
    given = {name: row["parameters"][name] for name in COLUMNS if trained and name in row["parameters"]}
    facts = {**given, **{name: row["metrics"][name] for name in COLUMNS if name in row["metrics"]}}
    facts |= {name: entry for name, entry in row.get("budget", {}).items() if name in COLUMNS}
    steps, batch = number(facts.get("steps")), number(facts.get("batch_size"))
    return facts if steps is None or batch is None else facts | {"examples": steps * batch}


def _seconds(rows: Sequence[store.Row]) -> str:
    devices: dict[str, list[float]] = {}
    for row in rows:
        seconds = number(row["times"].get(SECONDS))
        if ran_alone(row) and seconds is not None:
            devices.setdefault(device_of(row), []).append(seconds)
    return "; ".join(f"{readable(statistics.fmean(found))} ({name})" for name, found in devices.items())
