"""What is timed: sampling and training at the sizes of the paper, and how time grows with each size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from neurise.bench import naive
from neurise.bench.clock import Timing, peak_flops, slope, steps_a_second, timed
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.devices import generator
from neurise.models.neurise import NeurISE
from neurise.networks.base import SiteNetwork
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.reverse import METHODS, sample, serves
from neurise.space import Space
from neurise.training.settings import Training

SECTIONS = ("sampling", "forms", "sites", "states", "width", "batch", "training")
NAIVE_STEPS = 20
"""Steps of the naive loop that are timed; the others cost the same."""


@dataclass(frozen=True)
class SpeedCase:
    """A network, or a committee of several, and a chain to sample with."""

    sites: int = 784
    states: int = 2
    width: int = 192
    depth: int = 3
    keep_prob: float = 0.0
    cycles: int = 1
    rows: int = 10_000
    members: int = 1
    pairwise: int = 0  # members that have pairwise terms

    @property
    def noise(self) -> RoundRobin:
        """The chain."""
        return RoundRobin(Space(self.sites, self.states), self.keep_prob, self.cycles)

    def network(self, device: torch.device, seed: int = 0) -> SiteMLP:
        """Make an untrained network whose conditionals are not uniform."""
        network = SiteMLP(self.noise.space, self.noise.num_steps, width=self.width, depth=self.depth)
        source = generator(seed, torch.device("cpu"))
        network.reset(source)
        torch.nn.init.normal_(network.head, std=0.1, generator=source)
        return network.to(device)

    def terms(self, device: torch.device, seed: int = 0) -> PairwiseTerms:
        """Make pairwise terms that together weigh as much as a field of their own."""
        terms = PairwiseTerms(self.noise.space, self.noise.num_steps)
        source = generator(seed, torch.device("cpu"))
        terms.reset(source)
        torch.nn.init.normal_(terms.pair, std=self.sites**-0.5, generator=source)
        return terms.to(device)

    def conditionals(self, network: SiteNetwork) -> NetworkConditionals:
        """Let a network answer for the chain."""
        frame = Frame(self.noise, 0, torch.full((self.sites,), -1, device=next(network.parameters()).device))
        return NetworkConditionals(network, frame, hide_noised=True)

    def answering(self, device: torch.device) -> Conditionals:
        """Let all members answer, and lay their plans out, as a fitted model does."""
        members = list[Conditionals]()
        for place in range(self.members):
            network: SiteNetwork = self.network(device, place)
            if place < self.pairwise:
                network = Sum([self.terms(device, place), network])
            members.append(self.conditionals(network))
        whole = members[0] if self.members == 1 else Committee(members, [1 / self.members] * self.members)
        return whole.lay_out()

    @property
    def flops(self) -> int:
        """Additions and multiplications that a row needs: one column, the hidden layers and the head, at every step.

        Pairwise terms of all members are summed beforehand: a step adds up one term per site and output.
        """
        step = 2 * self.width * (1 + (self.depth - 1) * self.width + self.states)
        pairs = 2 * self.sites * (1 if self.states == 2 else self.states) if self.pairwise else 0
        return self.sites * self.cycles * (self.members * step + pairs)

    @property
    def training_flops(self) -> int:
        """Those that an example needs to go forward and back: every product is made three times."""
        columns = self.sites * self.states
        return 3 * 2 * self.width * (columns + (self.depth - 1) * self.width + self.states)


@dataclass(frozen=True)
class Timed:
    """One measured figure."""

    section: str
    name: str
    value: float
    unit: str
    ratio: float | None = None  # to the naive reference
    share: float | None = None  # of the roofline
    peak_bytes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that hold something."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Bench:
    """Times the sections that are asked for on one device. ``quick`` makes everything small: seconds instead of minutes."""

    def __init__(self, device: torch.device, *, quick: bool = False, precision: str = "float32") -> None:
        self.device, self.quick, self.precision = device, quick, precision
        self.roof = peak_flops(device)
        self.rows = 10_000 if device.type == "cuda" else 1000
        if quick:
            self.rows //= 20

    def run(self, section: str) -> Iterator[Timed]:
        """Yield the figures of a section as they are measured."""
        sections: dict[str, Callable[[], Iterator[Timed]]] = {
            "sampling": self._sampling,
            "forms": self._forms,
            "training": self._training,
        }
        if section not in SECTIONS:
            raise ValueError(f"section must be one of {', '.join(map(repr, SECTIONS))}, got {section!r}")
        yield from sections[section]() if section in sections else self._growth(section)

    def _sampling(self) -> Iterator[Timed]:
        sites = (50, 100) if self.quick else (784, 2084)
        big = SpeedCase(rows=self.rows, sites=sites[0])
        cases = {
            "hard noise": big,
            "hard noise, more sites": replace(big, sites=sites[1]),
            "four soft cycles": replace(big, keep_prob=0.3, cycles=4),
            "few sites": replace(big, sites=20, states=4, rows=20 * self.rows),
        }
        for name, case in cases.items():
            size = f"{case.sites} sites, {case.states} states"
            yield self._figure("sampling", f"{name}: {size}", case, self._time(case), self._naive(case))

    def _forms(self) -> Iterator[Timed]:
        one = SpeedCase(rows=self.rows, sites=100 if self.quick else 784)
        cases = {
            "": one,
            "4 × width 128, two with pairwise terms: ": replace(one, width=128, members=4, pairwise=2),
            "width 512: ": replace(one, width=512),
        }
        for name, case in cases.items():
            plain, conditionals = self._naive(case), case.answering(self.device)
            for method in METHODS:
                for precision in ("float32", "bfloat16") if method in ("fused", "graphs") else ("float32",):
                    if serves(method, conditionals, precision):
                        rows = replace(case, rows=-(-self.rows // 10)) if method == "reference" else case
                        timing, share = self._time(rows, method, precision), rows.rows / case.rows
                        yield self._figure("forms", f"{name}{method}, {precision}", rows, timing, plain * share)

    def _growth(self, axis: str) -> Iterator[Timed]:
        cuda = self.device.type == "cuda"
        grown: dict[str, list[int]] = {
            "sites": [25, 100, 250, 500, 1000, 2000, 4000, 5000],
            "states": [2, 4, 32] if cuda else [2, 4, 8, 16, 32],  # on a GPU each is compiled first
            "width": [64, 192, 256] if cuda else [64, 128, 192, 256, 512],
            "batch": [100, 1000, 10_000, 100_000] if cuda else [64, 256, 1024],
        }
        sizes = grown[axis][:3] if self.quick else grown[axis]
        field = {"batch": "rows"}.get(axis, axis)
        small = SpeedCase(sites=200 if cuda else 50, rows=self.rows)
        cost = []
        for size in sizes:
            case = replace(small, **{field: size})
            timing = self._time(case)
            cost.append(timing.seconds / case.rows)
            yield self._figure(axis, f"{axis} = {size}", case, timing, None)
        yield Timed(axis, f"exponent over {sizes[0]} … {sizes[-1]}", slope(sizes, cost), "of the time per row")
        if axis == "sites" and not self.quick:
            middle = [place for place, size in enumerate(sizes) if 250 <= size <= 4000]
            exponent = slope([sizes[place] for place in middle], [cost[place] for place in middle])
            yield Timed(axis, "exponent over 250 … 4000", exponent, "of the time per row")

    def _training(self) -> Iterator[Timed]:
        sites, width, rows, seconds = (50, 16, 500, 0.1) if self.quick else (784, 192, 20_000, 4.0)
        X = np.random.default_rng(0).integers(0, 2, (rows, sites), dtype=np.uint8)
        case = SpeedCase(sites=sites, width=width)
        for batch_size in (256, 2048, 8192) if self.device.type == "cuda" else (256, 2048):
            plain = self._naive_training(case, X, batch_size)
            for precision in ("tf32", "bfloat16") if self.device.type == "cuda" else ("float32",):
                run = Training(batch_size=batch_size, precision=precision, patience=10**6, learning_rate=2e-3)
                form = {"width": width, "depth": case.depth, "loss": NeurISE().loss, "chain__hide_noised": True}
                model = NeurISE.paper(**form, training=run)
                model.fit(X, max_seconds=seconds, device=self.device, seed=0, verbose=False)
                rate = batch_size * steps_a_second(model.history_)
                share = case.training_flops * rate / self.roof
                name = f"batches of {batch_size}, {precision}"
                yield Timed("training", name, rate, "examples/s", rate * plain, share)

    def _naive_training(self, case: SpeedCase, X: np.ndarray, batch_size: int) -> float:
        """Seconds that the naive loop takes for an example."""
        network, source = case.network(self.device), generator(0, self.device)
        asked, rows, steps = case.conditionals(network), torch.from_numpy(X).to(self.device), 2 if self.quick else 20
        timing = timed(lambda: naive.train(asked, network, rows, steps, batch_size, generator=source), self.device)
        return timing.seconds / (steps * batch_size)

    def _figure(self, section: str, name: str, case: SpeedCase, timing: Timing, plain: float | None) -> Timed:
        rate = case.rows / timing.seconds
        ratio = None if plain is None else plain / timing.seconds
        return Timed(section, name, rate, "rows/s", ratio, case.flops * rate / self.roof, timing.peak_bytes)

    def _time(self, case: SpeedCase, method: str | None = None, precision: str | None = None) -> Timing:
        conditionals, source = case.answering(self.device), generator(0, self.device)
        return timed(
            lambda: sample(
                conditionals, case.rows, generator=source, method=method, precision=precision or self.precision
            ),
            self.device,
        )

    def _naive(self, case: SpeedCase) -> float:
        """Seconds of the naive loop for all rows, all steps and all members of a case; pairwise terms are left out."""
        network, source = case.network(self.device), generator(0, self.device)
        conditionals, rows = case.conditionals(network), min(case.rows, 10_000)
        x = conditionals.noise.start(rows, generator=source)
        steps = min(NAIVE_STEPS, conditionals.noise.num_steps)
        timing = timed(lambda: naive.reverse(conditionals, network, x, generator=source, steps=steps), self.device)
        return case.members * timing.seconds * conditionals.noise.num_steps / steps * case.rows / rows
