"""List the parts of an experiment that were never started at the scale that is shown."""

from __future__ import annotations

from neurise.report._gather import Section


def left_out(section: Section) -> list[str]:
    """Name the methods, the values of parameters and the trials of a scale that have no row, not even a failed one."""
    return [*_methods(section), *_values(section), *_trials(section)]


def _methods(section: Section) -> list[str]:
    begun = {row["parameters"].get("method") for row in section.rows}
    absent = [section.experiment.label(name) for name in section.experiment.methods if name not in begun]
    return [", ".join(absent)] if absent else []


def _values(section: Section) -> list[str]:
    parts = []
    for name in dict.fromkeys(name for cell in section.planned for name in cell.parameters if name != "method"):
        planned = dict.fromkeys(cell.parameters[name] for cell in section.planned if name in cell.parameters)
        begun = {row["parameters"].get(name) for row in section.rows}
        absent = [section.experiment.label(value) for value in planned if value not in begun]
        parts += [f"{name} {', '.join(absent)}"] if absent else []
    return parts


def _trials(section: Section) -> list[str]:
    planned, begun = {cell.seed for cell in section.planned}, {row["seed"] for row in section.rows}
    absent = len(planned - begun)
    return [f"{absent} of {len(planned)} trials"] if absent else []
