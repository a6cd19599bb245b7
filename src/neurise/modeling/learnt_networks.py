"""Which networks a fitted model consists of, read off the description of its conditionals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def shares(described: Mapping[str, Any]) -> dict[str, float]:
    """Return how much of the answer comes from each kind of member."""
    found: dict[str, float] = {}
    for weight, member in members(described):
        kind = " + ".join(part["network"] for part in _parts(member))
        found[kind] = found.get(kind, 0.0) + weight
    return found


def kinds(described: Mapping[str, Any]) -> list[str]:
    """Return the kinds of networks, each once; pairwise terms beside a network are none of their own."""
    found = (_parts(member)[-1]["network"] for _, member in members(described) if "network" in member)
    return list(dict.fromkeys(map(str, found)))


def told(described: Mapping[str, Any]) -> str:
    """Say how many networks of which kind and size there are."""
    counts: dict[str, list[bool]] = {}
    for _, member in members(described):
        *terms, network = _parts(member)
        sizes = "".join(f", {name} {network[name]}" for name in ("width", "depth") if name in network)
        counts.setdefault(f"{network['network']}{{}}{sizes}", []).append(bool(terms))
    names = (f"{len(own)} × {name.format(' + pairwise terms' if any(own) else '')}" for name, own in counts.items())
    return "; ".join(names)


def members(described: Mapping[str, Any], weight: float = 1.0) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the conditionals of single networks in a description, with their weights."""
    if "inner" in described:
        yield from members(described["inner"], weight)
    elif "members" in described:
        for own, member in zip(described["weights"], described["members"], strict=True):
            yield from members(member, weight * own)
    else:
        yield weight, described


def _parts(member: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "network" not in member:  # what was solved for
        return [{"network": str(member["answers"]).removesuffix("_conditionals")}]
    network = member["network"]
    parts: list[Mapping[str, Any]] = network.get("sum", [network])
    return parts
