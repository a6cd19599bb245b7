"""What a fitted model says of itself."""

from __future__ import annotations

from typing import Any


class Summary(dict[str, Any]):
    """Facts by name, which print as a table of two columns."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {readable(fact)}" for name, fact in self.items())

    def __repr__(self) -> str:
        return str(self)


def readable(fact: Any) -> str:
    """Write a fact for people: thousands apart, and four digits of a number that is not whole."""
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return str(fact)
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"
