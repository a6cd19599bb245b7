"""The contracts that networks keep: one site per question, all sites of a row in one pass, or all sites from all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from neurise.deadline import Work
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk
from neurise.rows import Rows
from neurise.space import Space


class Network(nn.Module, ABC):
    """What all networks share. Every weight is given a value by :meth:`reset`; none may be read before that.

    Networks are built on torch's meta device, so that their size is known before memory is taken: the constructor makes
    parameters with ``torch.empty`` and does not look at their values. A network has parameters only, no buffers: many of
    them are stacked and trained as one. It is saved as its file name, its options and its parameters.
    """

    starts_from_rows: ClassVar[bool] = False
    """Whether it finds something in the rows before it is trained, so that networks that see other rows differ the more."""

    options: ClassVar[tuple[str, ...]] = ()
    """Names of keyword arguments of the constructor beyond width, depth and classes that a model may pass on."""

    space: Space
    num_steps: int
    classes: int
    width: int
    depth: int

    @classmethod
    def least_numbers(cls, space: Space, num_steps: int, width: int, depth: int) -> int:
        """Return how many numbers such a network learns at least, by arithmetic alone: what cannot be held is not made.

        By default a layer has as many as it is wide.
        """
        return width * depth

    @abstractmethod
    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights, every one of them from the generator or as a constant."""

    def description(self) -> dict[str, Any]:
        """Name the file and the constructor's arguments, in JSON's types. A network with other arguments writes its own."""
        name = type(self).__module__.rpartition(".")[2]
        own = {option: getattr(self, option) for option in self.options}
        return {"network": name, "width": self.width, "depth": self.depth, **own}


class SiteNetwork(Network):
    r"""Logits of one site, f(t, u, x with hidden sites, y) → p numbers.

    **Writing one.** A site network is one file in ``networks/`` (or a module of another package, named by an entry point of
    the group ``neurise.networks``) whose class bears the file's name::

        class MyNetwork(SiteNetwork):
            def __init__(self, space, num_steps, *, width, depth, classes=0):
                super().__init__()
                self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
                self.first = nn.Linear(space.sites * space.states + space.sites, width)
                ...

            def reset(self, generator): ...
            def forward(self, t, u, x, hidden, y=None): ...

    and then ``NeurISE(network="my_network")`` fits, samples, saves, loads, resumes, and takes part in committees.

    ``forward`` is given tokens x (..., sites) and returns (..., states). u (...) is the site that is asked for; neither x at
    site u nor x at a hidden site may influence the answer. :func:`neurise.networks.parts.layers.visible_one_hot` sees to that.
    t, u and y broadcast against the leading axes of x. At the start every conditional should be uniform: set the output
    layer to zero, where the screening loss is 1 and its gradient is moderate.

    A network whose first layer is linear in the one-hot of x may add :meth:`plan`: samplers then update it by one column
    per step instead of evaluating the network anew. Tests tie the two. It may also take a *stretch* of K questions about one
    row, which differ by one token each, and says so by ``takes_stretches``: ``after`` is given then, t and u are (n, K), and
    x (n, sites) is the row at the first of them. ``after`` (n, K) are the tokens that the sites u hold once they were asked
    for, token p where they are hidden from then on; it is (n, 0) where all of them are. The answer is (n, K, states).

    Class attributes:
        any_site: whether any (t, u) can be asked for, or only u = t mod q. Corrector sweeps need the former.
        takes_stretches: whether ``forward`` has a last argument ``after``.
    """

    any_site: ClassVar[bool] = True
    takes_stretches: ClassVar[bool] = False

    @abstractmethod
    def forward(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logits f(t, u, x), (..., states)."""

    def plan(self, view: View) -> Plan | None:
        """Return what a walk needs to update the first layer site by site; None where the network has no such form."""
        return None


class RowNetwork(Network):
    r"""Logits of all sites of a row in one pass, each from the sites that are generated before it: f(x, y) → (n, q, p).

    For hard noise of one cycle: site u may depend on the sites after u in the order of noising alone, so that the product of
    the conditionals is a law. One pass teaches all conditionals of a row. Rows with gaps come as int16, with the token p where
    a value is missing; it may not be looked at (:func:`neurise.networks.parts.layers.one_hot` sees to that).

    **Writing one.** As with a site network, one file whose class bears the file's name, with a constructor of
    (space, num_steps, \*, width, depth, classes=0), and ``reset``, ``forward`` and ``bytes_per_row``. :meth:`walk` is worth
    writing: without it, generating a row takes as many passes as there are sites. Tests tie the two.
    """

    side_by_side: ClassVar[bool] = True
    """Whether several networks of this kind learn in batched products; not where one of them keeps a device busy."""
    takes_graph: ClassVar[bool] = False
    """Whether :meth:`begin` makes use of a graph that the user knows."""
    looks_both_ways: bool = False
    """Whether a site depends on sites before it as well: as sweeps need it, which a chain cannot be run by."""
    walks_in: ClassVar[str] = "float32"
    """Numbers that walks on a GPU compute with where nobody asks for others: "float32" or "bfloat16"."""

    @abstractmethod
    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logits of every site of rows (n, sites), (n, sites, states); y (n,) are labels."""

    @abstractmethod
    def bytes_per_row(self, *, training: bool) -> int:
        """Estimate the memory of one row, on the way forward alone or there and back."""

    @property
    def bytes_per_walk(self) -> int:
        """Estimate what a walk keeps of one row beyond a few layers, as keys and values of all sites are."""
        return 0

    def economise(self) -> None:
        """Take less memory for the way back, and more time; by default there is no such form."""

    def masks(self, n: int, *, generator: torch.Generator) -> Tensor | None:
        """Draw what dropout leaves to n rows, (n, ...), a third argument of ``forward``; None where nothing is dropped.

        A network never drops anything of its own accord: rows are scored and generated by all of it.
        """
        return None

    def begin(self, rows: Rows, held: Rows | None, varies: Tensor, work: Work, near: Tensor | None = None) -> Any:
        """Return what is found out without descent; by default nothing. :meth:`take` makes use of it.

        ``held`` are rows to judge by, ``varies`` (sites,) tells which sites do, and ``work`` whether there is time to go on.
        ``near`` (sites, sites) booleans are the sites that are known to depend on each other directly, if any are.
        """

    def take(self, found: Any) -> None:
        """Start from what :meth:`begin` of a network like this one has found, before the training and after :meth:`reset`."""

    @classmethod
    def suited(cls, rows: int, space: Space, *, gpu: bool) -> Mapping[str, Any]:
        """Return settings that suit the size of the data where the user leaves them open: width, steps, batch_size, …

        What is not named is taken from the table that all networks share.
        """
        return {}

    def looked_at(self) -> Tensor | None:
        """Return which few sites (columns) each site looks at, (sites, sites) booleans; None where it looks at all."""
        return None

    def walk(self, x: Tensor, y: Tensor | None, *, precision: str) -> Walk | None:
        """Follow rows (sites, n) from the last site to the first, each of which is put before the next is asked for.

        The tokens that x holds mean nothing yet. None where the network has no such form.
        """
        return None


class JointNetwork(Network):
    r"""Numbers for all sites at once, from all of them: f(t, x, y) → (..., q, p), with t in [0, 1]; the peers' backbone."""

    @abstractmethod
    def forward(self, t: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return f(t, x), (..., sites, states); t and y broadcast against the rows of x."""
