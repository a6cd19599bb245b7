"""What a way to solve for conditionals returns, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from neurise.conditionals.base import Conditionals, Frame
from neurise.deadline import Work
from neurise.rows import Rows


@dataclass(frozen=True, eq=False)
class Solved:
    """Conditionals that were solved for.

    Args:
        conditionals: those of the chain: hard noise, one cycle, every site given those after it.
        parameters: how many numbers are free. Where two answers cannot be told apart, the one with fewer is taken.
        words: what ``summary()`` says of it.
        again: solves the same problem for other rows, all that were chosen by held-back rows (a graph, a penalty) kept; None
            where there is no time. Without it, the conditionals stay as they are.
    """

    conditionals: Conditionals
    parameters: int
    words: str
    again: Callable[[Rows, Work], Solved | None] | None = None


@dataclass(frozen=True, eq=False)
class Teacher:
    """A law that rows can be drawn from, and whose conditionals of the chain are not known: it teaches the networks.

    Args:
        draw: ``f(n, seed, work)`` draws about n rows of all sites, whose weights sum to 1.
        words: what ``summary()`` says of it.
    """

    draw: Callable[[int, int, Work], Rows]
    words: str


class Way(Protocol):
    r"""A way to solve for the conditionals of rows.

    **Writing one.** A file ``solving/<name>.py`` offers a function ``<name>`` with this signature, and the group
    :class:`~neurise.modeling.groups.Architecture` a parameter of the same name: True, False, or None, which leaves it to the data.
    ``NeurISE`` then learns it before any network is trained, weighs it on held-back rows, and keeps it alone, beside the
    networks, or not at all. Where conditionals cannot be had, a :class:`Teacher` draws rows that networks learn from.
    """

    def __call__(
        self, rows: Rows, held: Rows | None, frame: Frame, *, seed: int, work: Work, near: Tensor | None = None
    ) -> Solved | Teacher | None:
        """Learn from rows without gaps; ``held`` may choose among candidates. None where it cannot be done.

        ``near`` (sites, sites) says which sites depend on each other directly, where the user knows that.
        """
