"""The JSON of dimod's models, read here: dimod itself believes what a file says, and crashes on a wrong index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neurise.datasets._annealers.problem import Labels

DOMAINS = {"SPIN": "spin", "BINARY": "boolean"}


def labels_of_model(data: Mapping[str, Any], where: str) -> Labels:
    """List the variables of a model; dimod writes tuples as lists."""
    labels = data.get("variable_labels")
    if not isinstance(labels, list) or not labels:
        raise ValueError(f"{where}: variable_labels is {labels!r:.80}; a list of the variables is needed")
    return tuple(_label(label, where) for label in labels)


def as_bqpjson(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Write the JSON of a ``BinaryQuadraticModel`` as bqpjson."""
    labels, domain = labels_of_model(data, where), data.get("variable_type")
    if not isinstance(domain, str) or domain not in DOMAINS:
        raise ValueError(f"{where}: variable_type is {domain!r:.80}; SPIN and BINARY are supported")
    linear, quadratic = (_list(data, name, where) for name in ("linear_biases", "quadratic_biases"))
    ends = [_list(data, name, where) for name in ("quadratic_head", "quadratic_tail")]
    if len(linear) != len(labels) or any(len(end) != len(quadratic) for end in ends):
        raise ValueError(
            f"{where}: {len(labels)} variables have {len(linear)} linear_biases, and {len(quadratic)} quadratic_biases have "
            f"{len(ends[0])} heads and {len(ends[1])} tails"
        )
    pairs = [[_variable(labels, place, where) for place in end] for end in ends]
    return {
        "variable_ids": list(labels),
        "variable_domain": DOMAINS[domain],
        "scale": 1,
        "offset": data.get("offset", 0),
        "linear_terms": [{"id": label, "coeff": bias} for label, bias in zip(labels, linear, strict=True)],
        "quadratic_terms": [
            {"id_head": head, "id_tail": tail, "coeff": bias}
            for head, tail, bias in zip(*pairs, quadratic, strict=True)
        ],
    }


def _list(data: Mapping[str, Any], name: str, where: str) -> list[Any]:
    values = data.get(name)
    if not isinstance(values, list):
        raise ValueError(f"{where}: {name} is of type {type(values).__name__}; a list of numbers is needed")
    return values


def _variable(labels: Labels, place: Any, where: str) -> Any:
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(labels):
        raise ValueError(f"{where}: a coupler ends at {place!r:.80}, and there are the variables 0 … {len(labels) - 1}")
    return labels[place]


def _label(label: Any, where: str, depth: int = 0) -> Any:
    if isinstance(label, list) and depth < 8:
        return tuple(_label(entry, where, depth + 1) for entry in label)
    if not isinstance(label, int | float | str):
        raise ValueError(f"{where}: variable_labels has {label!r:.80}; a number, text, or a list of them is needed")
    return label
