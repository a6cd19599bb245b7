"""The paper's network: one multilayer perceptron for every site and every time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise import checks
from neurise.networks.base import SiteNetwork
from neurise.networks.parts.layers import Blocks, one_hot, own, seen_one_hot, side_by_side, terms, visible_one_hot
from neurise.networks.parts.plan import Layers, Plan, View
from neurise.space import Space

HEADS = ("shared", "site")
SITE_INPUTS = ("one_hot", "number")


class SiteMLP(SiteNetwork):
    r"""(time, site one-hot, x with the site hidden, class label) → p logits.

    ``depth`` blocks Linear → LayerNorm → SiLU of ``width`` units, then Linear → p. The first Linear acts on the one-hots
    of the concatenated input, so it is a sum of columns,

    .. math:: h = b + \sum_{i\ \mathrm{visible}} W_{i, x_i} + S_u + \tau(t)\,c + L_y, \qquad \tau(t) = 2t/T - 1,

    and the change of one site from a to b adds :math:`W_{i,b} - W_{i,a}`: O(width).

    Three departures from the paper, each off unless it is asked for: ``heads="site"`` gives every site u an output layer of
    its own, ``residual`` adds what enters a block, from the second on, to what leaves it, and ``site_input="number"`` shows the
    site as one number in the place of a one-hot, :math:`S_u = (2u/q - 1)\,S`.
    """

    options = ("heads", "residual", "site_input")
    takes_stretches = True

    def __init__(
        self,
        space: Space,
        num_steps: int,
        *,
        width: int,
        depth: int,
        classes: int = 0,
        heads: str = "shared",
        residual: bool = False,
        site_input: str = "one_hot",
    ) -> None:
        super().__init__()
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        self.heads, self.residual = checks.one_of("heads", heads, HEADS), checks.flag("residual", residual)
        self.site_input = checks.one_of("site_input", site_input, SITE_INPUTS)
        self.token = nn.Parameter(torch.empty(space.sites * space.states, width))
        self.site = nn.Parameter(torch.empty(space.sites if site_input == "one_hot" else 1, width))
        self.time = nn.Parameter(torch.empty(width))
        self.label = nn.Parameter(torch.empty(classes, width))
        self.bias = nn.Parameter(torch.empty(width))
        self.hidden = Blocks(width, depth, residual=self.residual)
        outputs = space.sites if heads == "site" else 1
        self.head = nn.Parameter(torch.empty(outputs, space.states, width))
        self.head_bias = nn.Parameter(torch.empty(outputs, space.states))

    @classmethod
    def least_numbers(cls, space: Space, num_steps: int, width: int, depth: int) -> int:
        """Count the tokens' first layer and the square layers after it."""
        return width * (space.sites * space.states + (depth - 1) * width)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights. The q visible tokens together weigh as much as the one site, the time or the label does."""
        nn.init.normal_(self.token, std=self.space.sites**-0.5, generator=generator)
        for one in (self.site, self.time, self.label):
            nn.init.normal_(one, generator=generator)
        self.hidden.reset(generator)
        # Every conditional starts uniform, where the screening loss is 1 and its gradient is tame.
        for zero in (self.bias, self.head, self.head_bias):
            nn.init.zeros_(zero)

    def context(self, t: Tensor, u: Tensor, y: Tensor | None) -> Tensor:
        """Compute the part of the first layer that does not depend on x, (..., width)."""
        context = self.bias + _row(self._sites(), u) + self._tau(t)[..., None] * self.time
        return context if y is None else context + self.label[y]

    def forward(
        self,
        t: Tensor,
        u: Tensor,
        x: Tensor,
        hidden: Tensor,
        y: Tensor | None = None,
        after: Tensor | None = None,
    ) -> Tensor:
        """Return the logits f(t, u, x), (..., states), or those of a stretch of questions about each row."""
        if after is not None:
            return self._stretch(t, u, x, hidden, y, after)
        if u.numel() > 1 and t.shape == u.shape == x.shape[:-1]:
            h = self._first_layer(t, u, x, hidden, y)
        else:  # a step is shared by many rows: so is its context
            visible = visible_one_hot(x, u, hidden, self.space.states, self.token.dtype)
            h = visible @ self.token + self.context(t, u, y)
        h = self.hidden(h)
        if len(self.head) == 1:
            return functional.linear(h, self.head[0], self.head_bias[0])
        if u.numel() > 1 and self.space.sites <= h.shape[-1]:
            # As many multiplications as to look the heads up, and less to write.
            return own(functional.linear(h, self.head.flatten(0, 1), self.head_bias.flatten()), u, self.space)
        head = _row(self.head.flatten(1), u)
        head = head.reshape(*head.shape[:-1], *self.head.shape[1:])  # (..., states, width)
        logits: Tensor = (head @ h[..., None]).squeeze(-1) + _row(self.head_bias, u)
        return logits

    def _stretch(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None, after: Tensor) -> Tensor:
        r"""Return the logits of K questions about each row, (n, K, states), for one product with the token columns per row.

        With :math:`a_j` the token of site :math:`u_j` before its question and :math:`b_j` the one after it,

        .. math:: h_k = h_{\mathrm{row}} - \sum_{j \le k} W_{u_j, a_j} + \sum_{j < k} W_{u_j, b_j} ,

        where a hidden token has no column. Columns and heads are looked up: there is one of each per question.
        """
        row = seen_one_hot(x, hidden, self.space.states, self.token.dtype) @ self.token  # (n, width)
        before = x.gather(-1, u).long().masked_fill(hidden.gather(-1, u), self.space.states)
        change = -self._columns(u, before)
        if after.shape[-1]:
            change = change + functional.pad(self._columns(u, after)[..., :-1, :], (0, 0, 1, 0))
        context = functional.embedding(u, self._sites()) + self._tau(t)[..., None] * self.time + self.bias
        row = row if y is None else row + self.label[y]
        h = self.hidden(change.cumsum(-2) + context + row[..., None, :])
        if len(self.head) == 1:
            return functional.linear(h, self.head[0], self.head_bias[0])
        head = functional.embedding(u, self.head.flatten(1)).view(*u.shape, *self.head.shape[1:])
        logits: Tensor = (head @ h[..., None]).squeeze(-1) + functional.embedding(u, self.head_bias)
        return logits

    def _columns(self, u: Tensor, tokens: Tensor) -> Tensor:
        """Look up the columns of tokens at the sites u, (..., width), zero where a token is none of the states."""
        states = self.space.states
        columns = functional.embedding(u * states + tokens.clamp(max=states - 1), self.token)
        return columns * (tokens < states)[..., None]

    def _sites(self) -> Tensor:
        """Return what the first layer adds for each site, S_u, (sites, width)."""
        if self.site_input == "one_hot":
            return self.site
        places = torch.arange(self.space.sites, device=self.site.device, dtype=self.site.dtype)
        return (2 * places / self.space.sites - 1)[:, None] * self.site

    def _tau(self, t: Tensor) -> Tensor:
        return (2 * t / self.num_steps - 1).to(self.time.dtype)

    def _first_layer(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None) -> Tensor:
        """Compute the first layer where every row has a step of its own, (..., width).

        It is one product, so that nothing of its size is written but itself. Such a product may round its factors to ten
        bits or to eight: all that is shown is a one-hot, or a part of τ that this leaves as it is.
        """
        short = x.is_cuda and torch.is_autocast_enabled("cuda")
        dtype = torch.get_autocast_dtype("cuda") if short else self.token.dtype
        number, sites = self._tau(t), self._sites()
        tau = terms(number, 3)
        sizes = {"states": self.space.states, "classes": self.classes}
        shown = side_by_side(x, u, hidden, y, tau, **sizes, dtype=dtype)
        rows: list[Tensor] = [self.token, sites]
        if y is not None:
            rows.append(self.label)
        rows += [self.time.expand(len(tau), -1), self.bias[None]]
        zeros = self.bias.new_zeros(shown.shape[-1] - sum(map(len, rows)), len(self.bias))
        return shown @ torch.cat([*rows, zeros])

    @torch.no_grad()
    def plan(self, view: View) -> Plan:
        """Lay the network out for a walk: contexts of all steps, and columns without the tokens that are not looked at."""
        space = self.space
        u = torch.arange(space.sites, device=self.token.device)
        context = self.context(view.times, u.expand_as(view.times), None)
        columns = self.token.view(space.sites, space.states, -1) * view.looked_at[:, None, None]
        head, offset = self.head.detach(), self.head_bias.detach().expand(space.sites, -1)
        if view.binary:
            context = context + _others(columns[:, 0], grows=view.grows)
            columns, head, offset = (part[:, 1:] - part[:, :1] for part in (columns, head, offset))
        norms = [norm for norm in self.hidden.norms if isinstance(norm, nn.LayerNorm)]  # all of them, with their type
        linears = [linear for linear in self.hidden.linears if isinstance(linear, nn.Linear)]
        layers = Layers(
            context=context,
            columns=columns.contiguous(),
            label=self.label.detach(),
            scales=[norm.weight.detach() for norm in norms],
            shifts=[norm.bias.detach() for norm in norms],
            weights=[linear.weight.detach() for linear in linears],
            biases=[linear.bias.detach() for linear in linears],
            eps=norms[0].eps,
            residual=self.residual,
            head=head,
        )
        return Plan(((1.0, layers),), offset.contiguous(), None)


def _others(first: Tensor, *, grows: bool) -> Tensor:
    """Sum over the sites that step u sees, (sites, width); long sums are kept in float64."""
    total = first.double().sum(0)
    seen = total - first.double().cumsum(0) if grows else total - first.double()
    return seen.to(first.dtype)


def _row(table: Tensor, u: Tensor) -> Tensor:
    """Look rows up in a table, (sites, ...) → (..., columns), by a product: its gradient is one too, and needs no sorting."""
    return table[u] if u.numel() == 1 else one_hot(u, len(table), table.dtype) @ table
