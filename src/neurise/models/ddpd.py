"""DDPD: discrete diffusion with planned denoising (Liu et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Generator, Tensor

from neurise import checks
from neurise.modeling.joint import JointModel
from neurise.modeling.model import Request
from neurise.models._ddpd.chains import POWER, AdaptiveChain, PlannedChain, TogetherChain
from neurise.models._ddpd.network import PlannedMLP
from neurise.models._ddpd.objective import PlannedDenoiser, PlannedObjective
from neurise.noise.uniform import Uniform
from neurise.sampling import one_site
from neurise.training.objective import Objective

if TYPE_CHECKING:
    from neurise.modeling.trajectory import Chains

CHAINS: dict[str, type[PlannedChain]] = {"planned": PlannedChain, "adaptive": AdaptiveChain}
SAMPLERS = (*CHAINS, "parallel")


@dataclass(kw_only=True, eq=False, repr=False)
class DDPD(JointModel):
    r"""Uniform noise, and two networks: a planner that says which sites are noise, and a denoiser that replaces them.

    A share m of the sites is redrawn uniformly. The planner says with which probability :math:`\zeta_i` site i is one of them,
    and the denoiser what it was if it is, :math:`\mu_i`. While m falls from 1 to 0, site i moves to the token a at the rate

    .. math:: R_i(a) = \zeta_i\,\mu_i(a) \quad \text{per } -d \log m,

    so that the planner chooses where, and the denoiser what. For perfect networks these are the rates of :class:`DFM` with the
    uniform source. Each of the two networks has the given width and depth: at equal width there are twice as many parameters
    as in another method, and ``neurise.comparison.match_width`` finds the width at which there are as many.

    With perfect networks the law of the samples of "planned" and "parallel" comes near the data like 1 / ``sampling_steps``.
    That of "adaptive" need not: every step of it changes a site, whether the rates ask for it or not, and from a row of few
    sites a planner cannot tell how much of it is noise.

    ``elbo`` bounds the likelihood of "planned" and "parallel" with infinitely many steps. It is never tight, not even for
    perfect networks: do not rank models by it.

    Args:
        sampler: "planned" moves at most one site per step, which the planner chooses; it should have at least half as many
            steps again as there are sites, and further ones correct what was drawn before. "parallel" moves all sites at
            once. By default it is "planned" where there are so many steps, and else "parallel". "adaptive" is the published
            sampler: one site moves in every step, and the planner says how much noise is left. The last step of each
            denoises all that is still noise.
        sampling_steps: how many steps a sample takes, each with one evaluation of both networks.
        width, depth: size of each of the two networks.
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.DDPD(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    changeable: ClassVar[tuple[str, ...]] = ("sampler", "sampling_steps")

    sampler: str | None = None
    sampling_steps: int = 256

    def _build(self) -> Objective:
        self._num_steps()
        one = self._denoiser(Uniform(self.schema_.space), PlannedMLP)
        return PlannedObjective(PlannedDenoiser(one.network, one.noise, one.constant, one.width))

    def _num_steps(self) -> int:
        """Check how to sample, and return the number of steps."""
        if self.sampler is not None:
            checks.one_of("sampler", self.sampler, SAMPLERS)
        return checks.count("sampling_steps", self.sampling_steps, checks.MOST_STEPS)

    def _chain(self) -> TogetherChain:
        return TogetherChain(self._learnt.denoiser, self._num_steps(), self._learnt)

    def _one_site_chain(self) -> PlannedChain | None:
        """Return the chain that moves one site per step, if that is how to sample."""
        num_steps, varying = self._num_steps(), int(self._learnt.denoiser.varies.sum())
        sampler = self.sampler or ("planned" if num_steps >= POWER * varying else "parallel")
        return CHAINS[sampler](self._learnt, num_steps, varying) if sampler in CHAINS else None

    def _draw(self, request: Request) -> Tensor:
        chain = self._one_site_chain()
        if chain is None:
            return super()._draw(request)
        self.check_clamp(request)
        return one_site.sample(chain, request.n, request.y, generator=request.generator)

    def _chains(self, request: Request) -> Chains:
        from neurise.modeling.trajectory import Chains

        chain = self._one_site_chain()
        if chain is None:
            return super()._chains(request)
        self.check_clamp(request)
        start = chain.start(request.n, generator=request.generator)
        moves = one_site.moves(chain, start, request.y, generator=request.generator)
        return Chains(start, chain.num_steps, chain.num_steps, chain.space.states, moves, joint=True)

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Push the start through the reverse chain; only its own start will do."""
        chain = self._one_site_chain()
        if isinstance(chain, AdaptiveChain):
            raise NotImplementedError(
                "the law of sampler='adaptive' is not known: what a step does depends on how much noise the planner saw "
                "in all steps before; sampler='planned' and sampler='parallel' have a law"
            )
        if chain is None or start is not None or sweeps is not None:
            return super().chain_law(label, start, sweeps)
        return one_site.law(chain, label)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        return self._learnt.bound(x, y, generator=generator)

    @property
    def _learnt(self) -> PlannedObjective:
        objective: PlannedObjective = self.objective_  # type: ignore[assignment]
        return objective
