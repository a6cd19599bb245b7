"""The facts about a data set, as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FEW = 12
"""Symbols, sites or classes that are named one by one."""


def readable(facts: Mapping[str, Any]) -> dict[str, str]:
    """Put the facts of :func:`neurise.cli._summary.summary` into words; what there is nothing to say about is left out."""
    lines = {
        "size": _size(facts),
        "alphabet": f"{facts['states']} symbols: {_listed(facts['symbols'])}",
        "lattice": " × ".join(map(str, facts["shape"] or [])),
        "distinct rows": _distinct(facts),
        "constant sites": _constant(facts),
        **_correlations(facts.get("correlations")),
        "missing values": _missing(facts["missing"]),
        "weights": _weights(facts["weights"], histogram=facts["histogram"]),
        "labels": _labels(facts["labels"]),
        "law": "known, all probabilities" if facts["law"] else "",
        "couplers": "" if facts["couplers"] is None else f"{facts['couplers']:,}",
    }
    lines |= {key: str(value) for key, value in facts["info"].items() if key not in ("histogram", "name")}
    return {name: line for name, line in lines.items() if line}


def _size(facts: Mapping[str, Any]) -> str:
    parts = [f"{facts[part]:,} {part}" for part in ("rows", "validation", "test") if facts[part] is not None]
    return f"{', '.join(parts) or 'no rows'} of {facts['sites']:,} sites"


def _distinct(facts: Mapping[str, Any]) -> str:
    if "distinct_rows" not in facts:
        return ""
    among = "" if facts["rows_looked_at"] == facts["rows"] else f" among {facts['rows_looked_at']:,} of the rows"
    return f"{facts['distinct_rows']:,}{among}"


def _constant(facts: Mapping[str, Any]) -> str:
    found = facts.get("constant_sites")
    if found is None:
        return ""
    by_symbol: dict[Any, list[str]] = {}
    for site, symbol in found.items():
        by_symbol.setdefault(symbol, []).append(site)
    return "; ".join(f"{len(sites)} always {key}: {_listed(sites)}" for key, sites in by_symbol.items()) or "none"


def _correlations(found: Mapping[str, Any] | None) -> dict[str, str]:
    if not found or not found["pairs"]:
        return {}
    name = "strongest correlations" if found["measure"] == "correlation" else "strongest pairs (Cramér's V)"
    pairs = ", ".join(f"{pair['sites'][0]}–{pair['sites'][1]}: {pair['value']:.3f}" for pair in found["pairs"])
    return {name: f"{pairs} (independent sites show about {found['noise']:.2g})"}


def _missing(found: Mapping[str, Any]) -> str:
    if not found["cells"]:
        return "none"
    line, column = found["first"]
    return (
        f"{found['cells']:,} cells in {found['rows']:,} rows, which are left out here; the first in line {line}, "
        f"column {column}"
    )


def _weights(found: Mapping[str, Any] | None, *, histogram: bool) -> str:
    if found is None:
        return ""
    note = ", taken from the first column" if histogram else ""
    span = f"from {found['smallest']:,.4g} to {found['largest']:,.4g}"
    if found["whole"]:
        return f"counts {span}: the rows were seen {found['sum']:,.0f} times in all{note}"
    return f"importances {span}, sum {found['sum']:,.6g}, worth {found['effective_rows']:,.0f} rows of equal importance"


def _labels(found: Mapping[str, int] | None) -> str:
    if found is None:
        return ""
    return f"{len(found)} classes: {_listed([f'{label} ({count:,})' for label, count in found.items()])}"


def _listed(entries: Sequence[Any]) -> str:
    more = f", … ({len(entries) - FEW} more)" if len(entries) > FEW else ""
    return ", ".join(str(entry) if str(entry).isprintable() else repr(entry) for entry in entries[:FEW]) + more
