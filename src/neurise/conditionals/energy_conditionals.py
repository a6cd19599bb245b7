r"""The exact conditionals of an energy of pairs, and of products of more spins where there are any.

With :math:`H(x) = \sum_i f_{y i}(x_i) + \sum_{(i,j)} W_{ij}(x_i, x_j) + \sum_T \theta_T \prod_{i \in T} \sigma_i` the law
:math:`\mu \propto e^H` has (here without products)

.. math:: \mu(x_u = a \mid x_{>u}) \propto \sum_{x_{<u}} e^{H(x)} = \exp T_u(a, x_{F(u)}), \qquad
   \mu(x_u = a \mid x_{-u}) \propto \exp\Bigl(f_u(a) + \sum_{v \in N(u)} W_{uv}(a, x_v)\Bigr) .

The first are those of a chain under hard noise: the sites before u are summed out one after another, which leaves a table over
the frontier F(u) (:func:`neurise.energies.frontier.frontier`). They are made once, and a step looks one number up. The second are
those of the data itself, which sweeps draw from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise.conditionals._energy_plan import LARGEST, adjacency, entries, plan_in_order, signs
from neurise.conditionals.base import Conditionals, Frame
from neurise.energies.elimination import log_z
from neurise.fields import Field
from neurise.interactions import Interactions
from neurise.networks.parts.plan import View
from neurise.networks.parts.walk import Walk
from neurise.walks import log_law

MOST_ENTRIES = 2**25
"""Numbers that the tables of all sites and classes may hold."""
DOUBLE = 2**20
"""Numbers up to which they are kept in double precision: more would not stay in a cache, and are shorter."""
SIDES = ("after", "both")
MOST_PRODUCTS = 2**16


class Lookup(NamedTuple):
    """A site's logits relative to state 0, for every class and every configuration of the sites that it looks at."""

    sites: tuple[int, ...]  # the first is the most significant digit
    logits: Tensor  # (classes · states^sites, states − 1)


class EnergyConditionals(Conditionals):
    """Conditionals of an energy: of the chain (``sides="after"``), or of the data itself (``"both"``).

    Sites that never vary have no couplings. Where sites have two states, there may be products of three and four of them.
    """

    has_clean = True
    edges: Tensor
    fields: Tensor
    couplings: Tensor
    table_errors: Tensor
    field_errors: Tensor
    is_edge: Tensor
    products: Tensor
    strengths: Tensor
    strength_errors: Tensor

    def __init__(self, frame: Frame, pairs: int, *, products: int = 0, sides: str = "after") -> None:
        super().__init__()
        space = frame.noise.space
        self.noise, self.sides = frame.noise, sides
        self.hide_noised, self.can_sweep = sides == "after", sides == "both"
        self.kinds, self.pairs = max(1, frame.classes), pairs
        self.register_buffer("ignored", frame.constant >= 0, persistent=False)
        self.register_buffer("edges", torch.zeros(pairs, 2, dtype=torch.int64))
        self.register_buffer("fields", torch.zeros(self.kinds, space.sites, space.states, dtype=torch.float64))
        self.register_buffer("couplings", torch.zeros(pairs, space.states, space.states, dtype=torch.float64))
        # Standard errors: of the norm of each pair's table, and of the fields. They belong to the estimate, not to the answers.
        self.register_buffer("table_errors", torch.zeros(pairs, dtype=torch.float64))
        self.register_buffer("field_errors", torch.zeros_like(self.fields))
        self.register_buffer(
            "is_edge", torch.ones(pairs, dtype=torch.bool)
        )  # of the graph, where more pairs have couplings
        # Files of an energy of pairs alone do not mention products.
        found = {"products": torch.full((products, LARGEST), -1), "strengths": torch.zeros(products).double()}
        for name, tensor in {**found, "strength_errors": torch.zeros(products).double()}.items():
            self.register_buffer(name, tensor, persistent=products > 0)
        self.bytes_per_row = 16 * space.sites + 32 * space.states
        self.register_load_state_dict_post_hook(_check)  # type: ignore[no-untyped-call]

    @classmethod
    def of(
        cls, laws: list[Interactions], frame: Frame, products: Sequence[tuple[int, ...]] = ()
    ) -> EnergyConditionals | None:
        """Return the conditionals of the chain of a law per class, with equal couplings; None where tables are too large.

        ``products`` are sites in ascending order, whose strengths :meth:`describe_products` tells.
        """
        first = laws[0]
        padded = torch.tensor([(*sites, *[-1] * (LARGEST - len(sites))) for sites in products]).view(-1, LARGEST)
        if entries(first.edges, frame.noise.space, len(laws), padded) > MOST_ENTRIES:
            return None
        device = frame.constant.device
        made = cls(frame, len(first.edges), products=len(products)).to(device)
        made.products.copy_(padded)
        made.edges.copy_(torch.from_numpy(first.edges))
        fields = torch.from_numpy(np.stack([law.fields for law in laws]))
        made.fields.copy_(fields.nan_to_num(neginf=0.0))  # what is impossible is known from the space
        made.couplings.copy_(torch.from_numpy(first.tables))
        return made

    def describe_products(self, strengths: np.ndarray, errors: np.ndarray) -> None:
        """Tell the strengths θ of the products, (products,), and their standard errors."""
        self.strengths.copy_(torch.from_numpy(strengths))
        self.strength_errors.copy_(torch.from_numpy(errors))

    def describe_estimate(self, tables: Tensor, fields: Tensor, is_edge: Tensor) -> None:
        """Keep what is known of the estimate: standard errors of the norms of tables, (pairs,), and of fields; its graph."""
        self.table_errors.copy_(tables)
        self.field_errors.copy_(fields)
        self.is_edge.copy_(is_edge)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made when it is first asked for."""
        made = ("lookups", "neighbours", "around", "bare", "_twin")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @property
    def clean(self) -> EnergyConditionals:
        """Return the conditionals of the same energy from both sides of a site."""
        return self if self.can_sweep else self._twin

    @cached_property
    def _twin(self) -> EnergyConditionals:
        frame = Frame(self.noise, self.kinds if self.kinds > 1 else 0, torch.where(self.ignored, 0, -1))
        made = EnergyConditionals(frame, self.pairs, products=len(self.products), sides="both").to(self.device)
        made.load_state_dict(self.state_dict())
        return made

    def interactions(self, kind: int = 0) -> Interactions:
        """Return the fields of a class, and the pairs."""
        tensors = (self.edges, self.couplings, self.fields[kind])
        edges, tables, fields = (tensor.detach().cpu().numpy() for tensor in tensors)
        return Interactions(edges, tables, fields, self.noise.space.sizes)

    # --- answers ---------------------------------------------------------------------------------------------------

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the answer at site u whatever the step, (..., states)."""
        leading = torch.broadcast_shapes(t.shape, u.shape, x.shape[:-1])  # type: ignore[no-untyped-call]
        rows = x.expand(*leading, -1).reshape(-1, x.shape[-1]).T
        labels = None if y is None else y.expand(leading).reshape(-1)
        sites, states = u.expand(leading).reshape(-1), self.noise.space.states
        found = self.fields.new_empty(rows.shape[1], states)
        for site in torch.unique(sites).tolist():
            own = torch.nonzero(sites == site).flatten()
            walk = self.walk(rows[:, own], None if labels is None else labels[own], u)
            found[own] = log_law(walk.logits(int(site)).double(), states)
        return found.reshape(*leading, -1)

    def view(self, *, sweep: bool) -> View | None:
        """Return None: there is no first layer that follows one token."""
        return None

    def looked_at(self) -> Tensor:
        """Return which sites are coupled to each site, (sites, sites)."""
        return adjacency(self.edges, self.noise.space.sites, self.products)

    def _walk_without_plan(
        self, x: Tensor, y: Tensor | None, cycle: Tensor, *, top: int, sweep: bool, precision: str
    ) -> Walk:
        if sweep and not self.can_sweep:
            raise NotImplementedError("conditionals given the sites after a site cannot sweep; ask clean")
        states = self.noise.space.states
        tokens = x.long() if self.noise.tokens == states else x.long().masked_fill(x >= states, 0)
        return SumWalk(self, tokens, y) if self.can_sweep else LookupWalk(self.lookups, states, tokens, y)

    @cached_property
    def lookups(self) -> list[Lookup]:
        """The tables of all sites. Made once: the energy must not change any more."""
        space, edges = self.noise.space, self.edges.cpu().numpy()
        plan = plan_in_order(edges, space, self.products.cpu())
        others = [(sites, strength * signs(len(sites))) for sites, strength in self._listed()]
        found: list[list[Tensor]] = [[] for _ in range(space.sites)]
        dtype = torch.float64 if plan.entries * self.kinds <= DOUBLE else torch.float32
        for kind in range(self.kinds):
            fields, numbers = self._possible(kind).cpu(), iter(range(space.sites))

            def keep(values: Tensor, numbers: Any = numbers) -> None:
                # Where the sites after it hold what they cannot, both are −∞: nobody asks.
                logits = (values[1:] - values[0]).nan_to_num(nan=0.0, neginf=-torch.inf)
                found[next(numbers)].append(logits.T.to(dtype))

            log_z(plan, edges, fields, self.couplings.cpu(), keep, others)
        return [
            Lookup(scope, torch.cat(parts).to(self.device)) for scope, parts in zip(plan.scopes, found, strict=True)
        ]

    def _possible(self, kind: int) -> Tensor:
        """Return the fields of a class, −∞ where a site does not have a state, (sites, states)."""
        return self.fields[kind].masked_fill(~self.noise.space.allowed(self.device), -torch.inf)

    @cached_property
    def neighbours(self) -> list[list[tuple[int, Tensor]]]:
        """For each site the others that it is coupled to, with the table of their state and its own relative to state 0."""
        found: list[list[tuple[int, Tensor]]] = [[] for _ in range(self.noise.space.sites)]
        for (i, j), table in zip(self.edges.tolist(), self.couplings, strict=True):
            found[i].append((j, (table[1:] - table[0]).T.contiguous()))
            found[j].append((i, (table[:, 1:] - table[:, :1]).contiguous()))
        return found

    @cached_property
    def around(self) -> list[list[tuple[list[int], float]]]:
        """For each site the others of each product that it belongs to, with the strength."""
        found: list[list[tuple[list[int], float]]] = [[] for _ in range(self.noise.space.sites)]
        for sites, strength in self._listed():
            for own in sites:
                found[own].append(([site for site in sites if site != own], strength))
        return found

    def _listed(self) -> list[tuple[tuple[int, ...], float]]:
        """Return the sites and the strength of each product."""
        lines = zip(self.products.tolist(), self.strengths.tolist(), strict=True)
        return [(tuple(site for site in sites if site >= 0), strength) for sites, strength in lines]

    @cached_property
    def bare(self) -> Tensor:
        """The fields relative to state 0, (classes, sites, states − 1)."""
        every = torch.stack([self._possible(kind) for kind in range(self.kinds)])
        return every[..., 1:] - every[..., :1]

    # --- files -----------------------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """Say how many pairs are coupled, and how many products there are; the energy is in the tensors."""
        products = {"products": len(self.products)} if len(self.products) else {}
        return {"answers": "energy_conditionals", "pairs": self.pairs, "sides": self.sides, **products}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> EnergyConditionals:
        """Make room for the energy."""
        field, sites = Field(description, "learnt.conditionals"), frame.noise.space.sites
        if field["sides"].value not in SIDES:
            raise field["sides"].wrong(f"one of {', '.join(SIDES)}")
        products = field["products"].whole(0, MOST_PRODUCTS) if "products" in field else 0
        if products and frame.noise.space.states != 2:
            raise field["products"].wrong("0 where sites have more than two states")
        pairs = field["pairs"].whole(0, sites * (sites - 1) // 2)
        return cls(frame, pairs, products=products, sides=description["sides"])


class LookupWalk(Walk):
    """Rows (sites, n) whose sites are looked up, each in the table of what it looks at."""

    def __init__(self, lookups: list[Lookup], states: int, x: Tensor, y: Tensor | None) -> None:
        self.lookups, self.states, self.y = lookups, states, y
        self.x = x.to(torch.int32)
        self.first = self.x.new_zeros(x.shape[1]) if y is None else y.to(torch.int32)

    def logits(self, u: int) -> Tensor:
        """Look up, (n, states − 1), or the logits of all states where there are more than two."""
        sites, logits = self.lookups[u]
        place = self.first
        for site in sites:
            place = torch.add(self.x[site], place, alpha=self.states)
        return _whole(logits.index_select(0, place))

    def put(self, u: int, token: Tensor) -> None:
        """Write the tokens down."""
        self.x[u] = token


class SumWalk(Walk):
    """Rows (sites, n) whose sites add up what their neighbours say."""

    def __init__(self, energy: EnergyConditionals, x: Tensor, y: Tensor | None) -> None:
        self.energy, self.x, self.y = energy, x.clone(), y

    def logits(self, u: int) -> Tensor:
        """Add up."""
        bare = self.energy.bare[:, u]
        total = bare.expand(self.x.shape[1], -1) if self.y is None else bare.index_select(0, self.y)
        for site, table in self.energy.neighbours[u]:
            total = total + table.index_select(0, self.x[site])
        for sites, strength in self.energy.around[u]:
            total = total + 2 * strength * (2 * self.x[sites] - 1).prod(0)[:, None]
        return _whole(total)

    def put(self, u: int, token: Tensor) -> None:
        """Write the tokens down."""
        self.x[u] = token


def _whole(logits: Tensor) -> Tensor:
    """Give state 0 its place again where there are more than two states: see :class:`~neurise.networks.parts.walk.Walk`."""
    return logits if logits.shape[-1] == 1 else torch.nn.functional.pad(logits, (1, 0))


def _check(made: EnergyConditionals, incompatible: Any) -> None:
    """Raise ValueError for pairs, read from a file, that are none, or whose tables would be too large."""
    edges, sites = made.edges, made.noise.space.sites
    if len(edges):
        if int(edges.min()) < 0 or int(edges.max()) >= sites or bool((edges[:, 0] >= edges[:, 1]).any()):
            raise ValueError(f"the tensor edges must hold pairs i < j of the sites 0 … {sites - 1}")
        if len(torch.unique(edges, dim=0)) < len(edges):
            raise ValueError("the tensor edges holds a pair twice")
    products = made.products.cpu()
    for line in products.tolist():
        own = [site for site in line if site >= 0]
        if own != sorted(set(own)) or own != line[: len(own)] or len(own) < 3 or own[-1] >= sites:
            raise ValueError(
                f"the tensor products must hold three or four of the sites 0 … {sites - 1} in ascending order, got {line}"
            )
    if made.sides == "after" and entries(edges.cpu().numpy(), made.noise.space, made.kinds, products) > MOST_ENTRIES:
        raise ValueError(
            f"the tensor edges asks for tables of more than {MOST_ENTRIES:,} numbers in this order of sites"
        )
