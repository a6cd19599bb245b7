"""The paper's network: one multilayer perceptron for every site and every time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise.networks._blocks import Blocks
from neurise.networks._inputs import one_hot, side_by_side, terms, visible_one_hot
from neurise.space import Space

HEADS = ("shared", "site")


class SiteMLP(nn.Module):
    r"""(time, site one-hot, x with the site hidden, class label) → p logits.

    ``depth`` blocks Linear → LayerNorm → SiLU of ``width`` units, then Linear → p. The first Linear acts on the one-hots
    of the concatenated input, so it is a sum of columns,

    .. math:: h = b + \sum_{i\ \mathrm{visible}} W_{i, x_i} + S_u + \tau(t)\,c + L_y, \qquad \tau(t) = 2t/T - 1,

    and the change of one site from a to b adds :math:`W_{i,b} - W_{i,a}`: O(width).

    Three departures from the paper, each off unless it is asked for. ``heads="site"`` gives every site u an output layer of
    its own. ``residual`` adds what enters a block, from the second on, to what leaves it. ``skip`` adds the terms of a
    pairwise model to the logits, :math:`B_{ua} + \sum_{i\ \mathrm{visible}} A_{ua, i x_i}`: its conditionals are linear in the
    other sites, which the blocks need not learn then. ``clean`` gives the steps at t = 0, where a corrector may ask for any
    site, pairwise terms of their own.
    """

    one_site = True  # logits of the asked site alone
    extras = ("heads", "residual", "skip", "clean")  # what may be asked of it beyond the paper's
    free_steps = True  # any (t, u) can be asked for, though only those it was trained at mean something

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
        skip: bool = False,
        clean: bool = False,
    ) -> None:
        super().__init__()
        if heads not in HEADS:
            raise ValueError(f"heads must be {' or '.join(map(repr, HEADS))}, got {heads!r}")
        self.space, self.num_steps, self.classes = space, num_steps, classes
        self.token = nn.Parameter(torch.empty(space.sites * space.states, width))
        self.site = nn.Parameter(torch.empty(space.sites, width))
        self.time = nn.Parameter(torch.empty(width))
        self.label = nn.Parameter(torch.empty(classes, width))
        self.bias = nn.Parameter(torch.empty(width))
        self.hidden = Blocks(width, depth, residual=residual)
        self.heads = space.sites if heads == "site" else 1
        self.head = nn.Parameter(torch.empty(self.heads, space.states, width))
        self.head_bias = nn.Parameter(torch.empty(self.heads, space.states))
        self.pair, self.pair_bias = _pairwise(space, there=skip)
        self.clean_pair, self.clean_pair_bias = _pairwise(space, there=skip and clean)

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights. The q visible tokens together weigh as much as the one site, the time or the label does."""
        nn.init.normal_(self.token, std=self.space.sites**-0.5, generator=generator)
        for one in (self.site, self.time, self.label):
            nn.init.normal_(one, generator=generator)
        self.hidden.reset(generator)
        # Every conditional starts uniform, where the screening loss is 1 and its gradient is tame.
        for zero in (self.bias, self.head, self.head_bias, *self.fixed().values()):
            nn.init.zeros_(zero)

    def fixed(self) -> dict[str, nn.Parameter]:
        """Return the pairwise terms by name, which can be fitted by themselves and left as they are then."""
        names = ("pair", "pair_bias", "clean_pair", "clean_pair_bias")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def context(self, t: Tensor, u: Tensor, y: Tensor | None) -> Tensor:
        """Compute the part of the first layer that does not depend on x, (..., width)."""
        context = self.bias + _row(self.site, u) + self._tau(t)[..., None] * self.time
        return context if y is None else context + self.label[y]

    def forward(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the logits f(t, u, x), (..., states)."""
        if u.numel() > 1 and t.shape == u.shape == x.shape[:-1]:
            shown, h = self._first_layer(t, u, x, hidden, y)
            visible = shown[..., : len(self.token)]
        else:  # a step is shared by many rows: so is its context
            visible = visible_one_hot(x, u, hidden, self.space.states, self.token.dtype)
            h = visible @ self.token + self.context(t, u, y)
        logits = self.answer(self.hidden(h), u)
        return logits if self.pair is None else logits + self.pairwise(t, u, visible)

    def _tau(self, t: Tensor) -> Tensor:
        return (2 * t / self.num_steps - 1).to(self.time.dtype)

    def _first_layer(self, t: Tensor, u: Tensor, x: Tensor, hidden: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute the first layer where every row has a step of its own, (..., width), and what it was shown.

        It is one product, so that nothing of its size is written but itself. Such a product may round its factors to ten
        bits or to eight: all that is shown is a one-hot, or a part of τ that this leaves as it is.
        """
        short = x.is_cuda and torch.is_autocast_enabled("cuda")
        dtype = torch.get_autocast_dtype("cuda") if short else self.token.dtype
        tau = terms(self._tau(t), 3)
        sizes = {"states": self.space.states, "classes": self.classes}
        shown = side_by_side(x, u, hidden, y, tau, **sizes, dtype=dtype)
        rows: list[Tensor] = [self.token, self.site]
        if y is not None:
            rows.append(self.label)
        rows += [self.time.expand(len(tau), -1), self.bias[None]]
        zeros = self.bias.new_zeros(shown.shape[-1] - sum(map(len, rows)), len(self.bias))
        return shown, shown @ torch.cat([*rows, zeros])

    def answer(self, h: Tensor, u: Tensor) -> Tensor:
        """Apply the output layer of the sites u to the last block, (..., states)."""
        if self.heads == 1:
            return functional.linear(h, self.head[0], self.head_bias[0])
        if u.numel() > 1 and self.space.sites <= h.shape[-1]:
            # As many multiplications as to look the heads up, and less to write.
            return self._own(functional.linear(h, self.head.flatten(0, 1), self.head_bias.flatten()), u)
        head = _row(self.head.flatten(1), u)
        head = head.reshape(*head.shape[:-1], *self.head.shape[1:])  # (..., states, width)
        return (head @ h[..., None]).squeeze(-1) + _row(self.head_bias, u)

    def pairwise(self, t: Tensor, u: Tensor, visible: Tensor) -> Tensor:
        """Sum the pairwise terms of the sites u over the visible one-hot, (..., states)."""
        if self.pair is None or self.pair_bias is None:
            raise ValueError("this network has no pairwise terms")
        terms = self._terms(self.pair, self.pair_bias, u, visible)
        if self.clean_pair is None or self.clean_pair_bias is None:
            return terms
        return torch.where((t == 0)[..., None], self._terms(self.clean_pair, self.clean_pair_bias, u, visible), terms)

    def _terms(self, pair: Tensor, bias: Tensor, u: Tensor, visible: Tensor) -> Tensor:
        if u.numel() == 1:
            return visible @ pair[u.reshape(())].T + bias[u.reshape(())]
        # The terms of all sites, of which one is picked: to gather a matrix an example would take far more memory.
        return self._own(visible @ pair.flatten(0, 1).T, u) + _row(bias, u)

    def _own(self, every: Tensor, u: Tensor) -> Tensor:
        """Pick what belongs to the sites u from what was found for all, (..., sites · states) → (..., states)."""
        every = every.reshape(*every.shape[:-1], self.space.sites, self.space.states)
        place = u[..., None, None].expand(*every.shape[:-2], 1, self.space.states)
        return every.gather(-2, place).squeeze(-2)


def _pairwise(space: Space, *, there: bool) -> tuple[nn.Parameter | None, nn.Parameter | None]:
    if not there:
        return None, None
    sites, states = space.sites, space.states
    return nn.Parameter(torch.empty(sites, states, sites * states)), nn.Parameter(torch.empty(sites, states))


def _row(table: Tensor, u: Tensor) -> Tensor:
    """Look rows up in a table, (sites, ...) → (..., columns), by a product: its gradient is one too, and needs no sorting."""
    return table[u] if u.numel() == 1 else one_hot(u, len(table), table.dtype) @ table
