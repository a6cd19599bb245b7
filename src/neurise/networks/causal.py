"""A transformer over the sites in the order of generation: all conditionals of a row in one pass, by attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise import checks
from neurise.networks.base import RowNetwork
from neurise.networks.parts.attention import EXPANSION, Attention, Kept, heads_for, norm
from neurise.networks.parts.layers import one_hot
from neurise.networks.parts.walk import Walk
from neurise.networks.parts.within_group import EMBEDDED, Tokens, WithinGroup, by_place
from neurise.space import Space

DROPOUTS = ((10, 0.5), (50, 0.2), (float("inf"), 0.1))
"""Below so many rows per site such a share of the channels is left out."""
SEVERAL = 200
"""Rows per site below which two networks that answer together are better than one that learns for longer."""


class Causal(RowNetwork):
    r"""A decoder-only transformer. ``group`` consecutive sites in the order of generation make one place of it.

    Place g reads the tokens of group g − 1 and is asked for group g; by attention it looks at all places before it:

    .. math:: h_g = \mathrm{attention}\Bigl(\textstyle\sum_{i \in g-1} R_{i, x_i} + A_g + L_y\Bigr)_{\le g} .

    Inside a group a small network resolves one site after another (:class:`WithinGroup`), and every site u has an output
    layer of its own, :math:`f_u = H_u k_u + b_u`; with one site per group :math:`k_u = \mathrm{norm}(h_g)`. A group of m sites
    takes 1/m of the time and of the memory that its sites would take one by one.

    Args:
        group: sites per place.
        attention_heads: heads of every layer; by default one for 64 channels.
        shared_heads: so many heads have the same keys and values, which rows that are generated keep of every place.
        dropout: share of the channels that are left out of what each half of a layer adds, drawn anew for every row and step.
    """

    options = ("group", "attention_heads", "shared_heads", "dropout")
    walks_in = "bfloat16"
    side_by_side = False

    def __init__(
        self,
        space: Space,
        num_steps: int,
        *,
        width: int,
        depth: int,
        classes: int = 0,
        group: int = 4,
        attention_heads: int | None = None,
        shared_heads: int = 1,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        self.group, self.dropout = checks.positive_whole("group", group), checks.share("dropout", dropout)
        self.shared_heads = checks.positive_whole("shared_heads", shared_heads)
        self.attention_heads = (
            heads_for(width) if attention_heads is None else checks.positive_whole("attention_heads", attention_heads)
        )
        sites = min(self.group, space.sites)  # of a place
        self.places = -(-space.sites // sites)
        self.read = Tokens(self.places, sites * space.states, width)
        self.asked = nn.Parameter(torch.empty(self.places, width))
        self.label = nn.Parameter(torch.empty(classes, width))
        self.attention = Attention(width, depth, heads=self.attention_heads, shared=self.shared_heads)
        self.last = nn.Parameter(torch.empty(width))  # scale of the norm after the last layer
        inner = width if sites == 1 else max(1, width // 2)
        self.within = WithinGroup(space.states, self.places, sites, width, inner) if sites > 1 else None
        self.head = nn.Parameter(torch.empty(self.places * sites, space.states, inner))
        self.head_bias = nn.Parameter(torch.empty(self.places * sites, space.states))

    @classmethod
    def suited(cls, rows: int, space: Space, *, gpu: bool) -> Mapping[str, Any]:
        """Return sizes that suit the data: about thirty times through the rows on a GPU, and a short run on a CPU.

        The fewer rows there are for each site, the more is left out.
        """
        dropout = next(share for many, share in DROPOUTS if rows < many * space.sites)
        if not gpu:
            size = {"width": 64, "depth": 3, "members": 1, "batch_size": 32, "learning_rate": 2e-3, "steps": 1000}
            return {**size, "dropout": dropout}
        members = 2 if rows < SEVERAL * space.sites else 1
        size = {"width": 256, "depth": 6, "members": members, "batch_size": 128, "learning_rate": 1.5e-3}
        steps = min(20_000, max(2000, 30 * rows // 128))
        return {**size, "steps": steps, "precision": "bfloat16", "dropout": dropout}

    @classmethod
    def least_numbers(cls, space: Space, num_steps: int, width: int, depth: int) -> int:
        """Count what a token adds at each site, and the square layers."""
        return width * (space.sites * space.states + (2 + 2 * EXPANSION) * depth * width)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights; the output starts at zero, so that every conditional starts uniform."""
        self.read.reset(generator)
        for embedded in (self.asked, self.label):
            nn.init.normal_(embedded, std=EMBEDDED, generator=generator)
        self.attention.reset(generator)
        nn.init.ones_(self.last)
        if self.within is not None:
            self.within.reset(generator)
        nn.init.zeros_(self.head)
        nn.init.zeros_(self.head_bias)

    def forward(self, x: Tensor, y: Tensor | None = None, kept: Tensor | None = None) -> Tensor:
        """Return the logits of every site of rows (n, sites), (n, sites, states); ``kept`` is what :meth:`masks` drew."""
        dtype, sites, states = self._dtype(x), self.space.sites, self.space.states
        with torch.autocast(x.device.type, enabled=False):  # numbers are rounded where they are read, and nowhere else
            z = functional.pad(
                x.flip(-1), (0, self.head.shape[0] - sites)
            )  # in the order of generation, in whole groups
            tokens = one_hot(z, states, dtype).reshape(len(z), self.places, -1)
            read = by_place(tokens[:, :-1], self.read.table(dtype)[:-1])
            h = functional.pad(read, (0, 0, 1, 0)) + self.asked.to(dtype)
            if y is not None:
                h = h + self.label.to(dtype)[y][:, None]
            h = self.attention(h, None if kept is None else kept.to(dtype) / (1 - self.dropout))
            h = norm(h, self.last.to(dtype))
            if self.within is not None:
                h = self.within(h, tokens)
            logits = by_place(h, self.head.to(dtype).transpose(1, 2)).to(self.head_bias.dtype) + self.head_bias
        return logits[:, :sites].flip(-2)

    def _dtype(self, x: Tensor) -> torch.dtype:
        """Return the numbers to compute with: those of the weights, or shorter ones where a GPU is told so."""
        if x.is_cuda and torch.is_autocast_enabled("cuda"):
            return torch.get_autocast_dtype("cuda")
        return self.head.dtype

    def masks(self, n: int, *, generator: torch.Generator) -> Tensor | None:
        """Draw which channels dropout leaves to n rows, (n, 2 · depth, width) booleans."""
        if not self.dropout:
            return None
        chance = torch.rand(n, 2 * self.depth, self.width, generator=generator, device=generator.device)
        return chance >= self.dropout

    @torch.no_grad()
    def walk(self, x: Tensor, y: Tensor | None, *, precision: str) -> Walk:
        """Generate rows site by site, with the keys and values of the places so far."""
        return Cached(self, x.shape[1], y, torch.bfloat16 if precision == "bfloat16" else self.head.dtype)

    @property
    def bytes_per_walk(self) -> int:
        """What a row keeps while it is generated: keys and values of all places, in float32."""
        return 4 * self.places * self.depth * 2 * self.width // self.shared_heads

    def economise(self) -> None:
        """Keep less on the way forward, and compute it again on the way back."""
        self.attention.recomputes = True

    def bytes_per_row(self, *, training: bool) -> int:
        """Estimate the memory of one row: of a layer, or of all of them where the way back needs them, in float32."""
        layer = 4 * self.places * self.width * (10 + 2 * EXPANSION)
        entry = 4 * self.places * self.width
        resolved = 4 * len(self.head) * (8 * self.head.shape[-1] + 4 * self.space.states)
        if not training:
            return layer + resolved
        kept = self.depth * entry + layer if self.attention.recomputes else self.depth * layer
        return kept + 2 * resolved


class Cached(Walk):
    """Rows that are generated site by site: the keys and values of the places so far are kept."""

    def __init__(self, network: Causal, rows: int, y: Tensor | None, dtype: torch.dtype) -> None:
        self.sites, self.group = network.space.sites, len(network.head) // network.places
        device, states = network.head.device, network.space.states
        self.kept = Kept(network.attention, rows, network.places, dtype, device)
        self.read = network.read.table(dtype).view(len(network.head), states, -1)
        self.asked, self.last = network.asked.to(dtype), network.last.to(dtype)
        head, bias = network.head.detach(), network.head_bias.detach()
        if states == 2:  # the log-odds are all that is asked for
            head, bias = head[:, 1:] - head[:, :1], bias[:, 1:] - bias[:, :1]
        self.head, self.bias = head.to(dtype), bias
        self.within = None if network.within is None else network.within.resolver(dtype)
        self.start = (
            torch.zeros(rows, network.width, dtype=dtype, device=device) if y is None else network.label.to(dtype)[y]
        )
        self.place, self.shown = -1, self.start  # what the next place reads: the label, and the tokens of this group
        self.known = self.start  # what the sites of this group know

    def logits(self, u: int) -> Tensor:
        """Resolve site u, (n, outputs)."""
        site = self._enter(u)
        h = self.known if self.within is None else self.within.resolved(self.known + self.within.site[site])
        return functional.linear(h, self.head[site]).to(self.bias.dtype) + self.bias[site]

    def put(self, u: int, token: Tensor) -> None:
        """Let the next place read the token, and the later sites of the group see it."""
        site, token = self._enter(u), token.int()
        self.shown = self.shown + self.read[site].index_select(0, token)
        if self.within is not None:
            columns = self.within.token.view(len(self.read), -1, self.known.shape[-1])
            self.known = self.known + columns[site].index_select(0, token)

    def _enter(self, u: int) -> int:
        """Go on to the place of site u, unless it is reached; return the site's number in the order of generation.

        A site whose answer is known is not asked for, so that a place may begin with a token that is put.
        """
        site = self.sites - 1 - u
        if self.place < site // self.group:
            self.place += 1
            h = norm(self.kept.advance(self.shown + self.asked[self.place], self.place), self.last)
            self.known, self.shown = h if self.within is None else self.within.begin(h), self.start
        return site
