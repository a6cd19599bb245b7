"""What models that predict all sites at once share: the network, the noise, and sites that never vary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from neurise import checks, devices
from neurise.modeling.model import Request
from neurise.modeling.search_space import SHARED, SearchSpace
from neurise.modeling.trained import TrainedModel
from neurise.networks.joint_mlp import JointMLP
from neurise.noise.absorbing import Absorbing
from neurise.noise.uniform import Uniform
from neurise.rows import Batch
from neurise.sampling import parallel
from neurise.space import Space
from neurise.training.objective import Prediction

if TYPE_CHECKING:
    from neurise.modeling.trajectory import Chains

Noise = Uniform | Absorbing


@dataclass(frozen=True)
class Denoiser:
    """A :class:`JointMLP` and the noise that it learns to undo.

    A site that holds one symbol in all of the data is never noised: it is shown as it is, and left out of every loss.
    """

    network: nn.Module  # a JointMLP: (t, x, y) → (n, sites, states)
    noise: Noise
    constant: Tensor  # (sites,): the only token of a site, or −1
    width: int

    @property
    def space(self) -> Space:
        """Return the space of the data."""
        return self.noise.space

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.constant.device

    @property
    def varies(self) -> Tensor:
        """Which sites there is something to learn about, (sites,) booleans."""
        return self.constant < 0

    @property
    def bytes_per_row(self) -> int:
        """Memory of a one-hot, of a few hidden layers, and of a few float64 numbers per site and token."""
        return 48 * self.space.sites * self.noise.tokens + 16 * self.width

    def corrupt(self, x_0: Tensor, keep: Tensor, *, generator: Generator) -> Tensor:
        """Noise each row (n, sites) to its own level (n,), except at constant sites."""
        return self._fixed(self.noise.corrupt(x_0, keep, generator=generator))

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states of pure noise, except at constant sites."""
        return self._fixed(self.noise.start(n, generator=generator))

    def start_law(self) -> Tensor:
        """Law of each site at the start, (sites, tokens) float64."""
        return torch.where(self.varies[:, None], self.noise.start_law().to(self.device), self._certain())

    def settled(self, log_law: Tensor) -> Tensor:
        """Put certainty in the place of the law of constant sites, (n, sites, tokens)."""
        return torch.where(self.varies[:, None], log_law, self._certain().log().to(log_law.dtype))

    def total(self, divergence: Tensor) -> Tensor:
        """Sum what every site has, (sites,), or what each of them has, () or (1,), over the sites that vary."""
        own = divergence.shape[-1:] == self.varies.shape and self.space.sizes is not None
        return torch.where(self.varies, divergence, 0.0).sum() if own else divergence * self.varies.sum()

    def _fixed(self, x: Tensor) -> Tensor:
        return torch.where(self.varies, x, self.constant.to(x.dtype))

    def _certain(self) -> Tensor:
        tokens = torch.arange(self.noise.tokens, device=self.device)
        return (self.constant[:, None] == tokens).double()


@dataclass(frozen=True)
class JointObjective(ABC):
    """An objective about a :class:`Denoiser`; a method writes ``draw``, ``losses`` and ``scores``."""

    noisings: ClassVar[int] = 32

    denoiser: Denoiser

    @property
    def network(self) -> nn.Module:
        """Return the network."""
        return self.denoiser.network

    @property
    def bytes_per_example(self) -> int:
        """Forward and backward together."""
        return 3 * self.denoiser.bytes_per_row

    @abstractmethod
    def draw(self, batch: Batch, *, generator: Generator) -> Any:
        """Noise each row to a time of its own."""

    @abstractmethod
    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the training loss of each example, summed over the sites that vary."""

    @abstractmethod
    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return what the validation compares."""


@dataclass(frozen=True)
class JointChain(ABC):
    """A reverse chain driven by a :class:`Denoiser`; a method writes ``log_step``."""

    denoiser: Denoiser
    num_steps: int

    @property
    def space(self) -> Space:
        """Return the space of the data."""
        return self.denoiser.space

    @property
    def tokens(self) -> int:
        """How many tokens a site may hold on the way."""
        return self.denoiser.noise.tokens

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.denoiser.device

    @property
    def bytes_per_row(self) -> int:
        """Roughly how much memory one row takes in one step."""
        return self.denoiser.bytes_per_row

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states of pure noise."""
        return self.denoiser.start(n, generator=generator)

    def start_law(self) -> Tensor:
        """Law of each site at the start."""
        return self.denoiser.start_law()

    @abstractmethod
    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the law of each site after a step, (n, sites, tokens)."""


@dataclass(kw_only=True, eq=False, repr=False)
class JointModel(TrainedModel):
    """A model whose reverse chain changes all sites at once. It writes ``_build`` and ``_chain``."""

    search_space: ClassVar[SearchSpace] = SHARED
    score_units: ClassVar[str] = "nats per row"

    width: int = 256
    depth: int = 2

    @abstractmethod
    def _chain(self) -> parallel.ParallelChain:
        """Return the reverse chain of the learnt network."""

    def _denoiser(self, noise: Noise, kind: Callable[..., nn.Module] = JointMLP) -> Denoiser:
        """Check the parameters and make the untrained network, of a kind of :class:`JointMLP`, for the fitted schema."""
        schema = self.schema_
        width, depth = checks.positive_whole("width", self.width), checks.count("depth", self.depth, checks.MOST_LAYERS)
        devices.require_room(
            JointMLP.least_numbers(schema.space, 1, width, depth),
            schema.space.sites,
            self.device_,
            width=width,
            depth=depth,
            batch_size=self.chosen().batch_size,
        )
        network = kind(schema.space, width=width, depth=depth, classes=schema.classes)
        return Denoiser(network, noise, schema.constant.to(self.device_), width)

    def _draw(self, request: Request) -> Tensor:
        self.check_clamp(request)
        return parallel.sample(self._chain(), request.n, request.y, generator=request.generator)

    def check_clamp(self, request: Request) -> None:
        """Raise NotImplementedError for what a chain that moves all sites cannot do."""
        if request.clamp is not None:
            raise NotImplementedError(
                f"{type(self).__name__} cannot hold sites fixed while it samples; NeurISE and GGM can (clamp=)"
            )
        self._refuse(sweeps=request.sweeps, start=request.start)

    def _chains(self, request: Request) -> Chains:
        from neurise.modeling.trajectory import Chains
        from neurise.sampling.stepwise import joint_moves

        self.check_clamp(request)
        chain = self._chain()
        start, steps = chain.start(request.n, generator=request.generator), chain.num_steps
        moves = joint_moves(chain, start, request.y, generator=request.generator)
        return Chains(start, steps, steps, chain.tokens, moves, joint=True)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Push the start through the reverse chain; only its own start will do."""
        self._refuse(sweeps=sweeps)
        if start is not None:
            raise NotImplementedError(f"the chain of a {type(self).__name__} starts from its own noise")
        return parallel.law(self._chain(), label)
