"""A package of somebody else's, written to a folder: one file each for what another package may offer."""

from __future__ import annotations

import textwrap
from pathlib import Path

NETWORK = '''
"""One hidden layer of sines, and a table of biases: no plan, no options."""

import torch
from torch import nn

from neurise.networks.base import SiteNetwork
from neurise.networks.parts.layers import one_hot, visible_one_hot


class Sines(SiteNetwork):
    def __init__(self, space, num_steps, *, width, depth, classes=0):
        super().__init__()
        self.space, self.num_steps, self.classes, self.width, self.depth = space, num_steps, classes, width, depth
        self.first = nn.Parameter(torch.empty(space.sites * space.states + space.sites + classes, width))
        self.last = nn.Parameter(torch.empty(width, space.states))

    def reset(self, generator):
        nn.init.normal_(self.first, generator=generator)
        nn.init.zeros_(self.last)

    def forward(self, t, u, x, hidden, y=None):
        seen = visible_one_hot(x, u, hidden, self.space.states, self.first.dtype)
        shape = seen.shape[:-1]
        parts = [seen, one_hot(u, self.space.sites, seen.dtype).expand(*shape, -1)]
        if self.classes:
            parts.append(one_hot(y, self.classes, seen.dtype).expand(*shape, -1))
        return torch.sin(torch.cat(parts, -1) @ self.first) @ self.last
'''

NOISE = '''
"""A chain whose later cycles keep less: cycle c keeps a site with probability keep_prob / (c + 1)."""

import torch

from neurise.noise.round_robin import Turns


class Melting(Turns):
    def once(self, cycle):
        return self.keep_prob / (cycle + 1.0)

    def kept(self, visits):
        """The product over the first v cycles."""
        table = torch.ones(self.cycles + 1, dtype=torch.float64)
        for cycle in range(self.cycles):
            table[cycle + 1] = table[cycle] * self.once(cycle)
        return table[visits]

    def corrupt(self, x_0, t, *, generator):
        keep = torch.rand(x_0.shape, generator=generator, dtype=torch.float64) < self.kept(self.visits(t))
        return torch.where(keep, x_0, self.start(len(x_0), generator=generator))

    def target(self, x_0, x_t, u):
        return x_t.gather(-1, u[:, None]).squeeze(-1)

    def log_noised(self, law, visits, u=None):
        keep = self.kept(visits)[..., None]
        return torch.log(keep * law + (1 - keep) / self.space.states)

    def log_noised_token(self, token, visits, u=None):
        return self.log_noised((token[..., None] == torch.arange(self.space.states)).double(), visits)

    def likelihood(self, x_u, t):
        """log k_t(x_u | a) of every a."""
        keep = self.once(t // self.space.sites)[..., None]
        same = (x_u[..., None] == torch.arange(self.space.states)).double()
        return torch.log(keep * same + (1 - keep) / self.space.states)

    def reverse(self, log_conditional, x_u, t):
        return torch.log_softmax(log_conditional + self.likelihood(x_u, t).to(log_conditional.dtype), dim=-1)

    def push(self, law, conditional, t):
        states = torch.arange(self.space.states)
        kernel = self.reverse(conditional.log()[..., None, :], states, torch.tensor(t)).exp()  # [..., from, to]
        return (law[..., None, :] @ kernel).squeeze(-2)

    def bridge(self, x_0u, x_u, t):
        past = self.log_noised_token(x_0u, self.visits_of_site(t))
        return torch.log_softmax(past + self.likelihood(x_u, t), dim=-1)

    def start(self, n, *, generator):
        return torch.randint(self.space.states, (n, self.space.sites), generator=generator, dtype=torch.uint8)

    def start_law(self):
        return torch.full((self.space.states,), 1 / self.space.states, dtype=torch.float64)
'''

MODEL = '''
"""Independent sites learnt by gradient descent, from the bare contract of a trained model."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from neurise import exact, losses
from neurise.categorical import draw, uniforms
from neurise.modeling.trained import TrainedModel


class Table(nn.Module):
    def __init__(self, space, classes):
        super().__init__()
        self.logits = nn.Parameter(torch.empty(max(classes, 1), space.sites, space.states))

    def reset(self, generator):
        nn.init.normal_(self.logits, std=0.1, generator=generator)

    def forward(self, y):
        return self.logits[y]


class Shown(NamedTuple):
    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Fit:
    network: nn.Module
    bytes_per_example: int = 1024
    noisings: int = 1

    def draw(self, batch, *, generator):
        return Shown(batch.x, torch.zeros(len(batch.x), dtype=torch.int64) if batch.y is None else batch.y)

    def losses(self, network, drawn):
        return losses.cross_entropy(network(drawn[1]), drawn[0]).sum(-1)

    scores = losses


@dataclass(kw_only=True, eq=False, repr=False)
class Lonely(TrainedModel):
    """Every site by itself."""

    def _build(self):
        return Fit(Table(self.schema_.space, self.schema_.classes))

    def _log_laws(self, y):
        logits = self.objective_.network(torch.zeros(1, dtype=torch.int64) if y is None else y).double()
        certain = self.schema_.constant[:, None] == torch.arange(self.space_.states)
        known = (self.schema_.constant >= 0)[:, None]
        return torch.where(known, certain.double().log(), logits.log_softmax(-1))

    def _draw(self, request):
        self._refuse(clamp=request.clamp, sweeps=request.sweeps, start=request.start)
        laws = self._log_laws(request.y).expand(request.n, -1, -1)
        level = uniforms(request.n * laws.shape[1], generator=request.generator).view(laws.shape[:2])
        return draw(laws, level).to(torch.uint8)

    def _log_prob(self, x, y):
        laws = self._log_laws(y).expand(len(x), -1, -1)
        return laws.gather(-1, x.long()[..., None]).squeeze(-1).sum(-1)

    def chain_law(self, label, start=None, sweeps=None):
        return exact.product_law(list(self._log_laws(label)[0].exp()))
'''

CHAIN_MODEL = '''
"""A model of the chain with a loss of its own: the quadratic score, which is minimal at the true conditional."""

from dataclasses import dataclass

import torch

from neurise.modeling.round_robin import RoundRobinModel


def quadratic(logits, x_u):
    observed = x_u.long()[..., None] == torch.arange(logits.shape[-1])
    return (logits.softmax(-1) - observed.to(logits.dtype)).square().sum(-1)


@dataclass(kw_only=True, eq=False, repr=False)
class Brier(RoundRobinModel):
    """NeurISE with the quadratic score."""

    def check(self):
        super().check()
        self.loss_ = quadratic
'''

METRIC = '''
"""How often the first site holds its last symbol."""

from neurise.evaluation.measurement import Measurement


def last_symbol(rows, symbols):
    return float((rows[:, 0] == symbols[-1]).mean())


def measure(case):
    value = last_symbol(case.drawn, case.data.symbols)
    yield Measurement("last_symbol", value, floor=last_symbol(case.truth.real[0], case.data.symbols))
'''

DATA_SET = '''
"""Rows whose second site repeats the first."""

import numpy as np

from neurise.dataset import Dataset
from neurise.space import Space


def echoes(sites: int = 3, n: int = 60, seed: int = 0) -> Dataset:
    """Rows of three symbols.

    ``sites`` is how many sites there are.
    """
    x = np.random.default_rng(seed).integers(3, size=(n, sites))
    x[:, 1] = x[:, 0]
    return Dataset("echoes", Space(sites, 3), np.arange(3), train=x)
'''

EXPERIMENT = '''
"""Counts to three."""

from neurise.experiments import Column, Experiment, Field, Outcome, Scale, Table


class CountingUp(Experiment):
    title, reproduces = "Counting", "nothing"
    tables = (Table("summary", "Counting", "number", (Column(Field("square", "square")),)),)
    scales = {"smoke": Scale(1, {"number": (1, 2, 3)})}

    def run(self, cell, device):
        return Outcome({"square": float(cell.parameters["number"] ** 2)})
'''

OFFERED = {
    "networks": ("sines", NETWORK),
    "noise": ("melting", NOISE),
    "models": ("lonely", MODEL),
    "metrics": ("last_symbol", METRIC),
    "datasets": ("echoes", DATA_SET),
    "experiments": ("counting_up", EXPERIMENT),
}
PACKAGE = "somebody_elses"


def write(folder: Path) -> None:
    """Write the package as an installer would leave it: its files, and a description that names its entry points."""
    package, info = folder / PACKAGE, folder / f"{PACKAGE}-1.0.dist-info"
    package.mkdir(parents=True)
    info.mkdir()
    (package / "__init__.py").touch()
    lines = []
    for group, (name, text) in OFFERED.items():
        (package / f"{name}.py").write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
        lines += [f"[neurise.{group}]", f"{name} = {PACKAGE}.{name}"]
    (package / "brier.py").write_text(CHAIN_MODEL.lstrip(), encoding="utf-8")
    place = lines.index("[neurise.models]")
    lines.insert(place + 1, f"brier = {PACKAGE}.brier:Brier")  # the other way to name it
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
