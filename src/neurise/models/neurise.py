"""NeurISE diffusion: the paper's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from neurise import devices, losses
from neurise.models._matching import match
from neurise.models._pairwise_terms import adjacency
from neurise.models._round_robin import RoundRobinModel
from neurise.models._round_robin_objective import RoundRobinObjective
from neurise.models._search import NOISE, SHARED, SearchSpace
from neurise.models._trained import TrainedModel
from neurise.training.batches import Rows
from neurise.training.objective import Objective


@dataclass(frozen=True)
class ConditionalObjective(RoundRobinObjective):
    """Learn the conditional itself, by a loss that is minimal there."""

    loss: losses.Loss

    def loss_of(self, logits: Tensor, x_u: Tensor) -> Tensor:
        """Return the chosen loss."""
        return self.loss(logits, x_u)


@dataclass(kw_only=True, eq=False, repr=False)
class NeurISE(RoundRobinModel):
    """Discrete diffusion by single-site conditionals, learnt with losses of the Neural Interaction Screening family.

    Args:
        keep_prob: ε, the probability that a step keeps its site. 0 is hard noise: an autoregressive model with an exact
            likelihood. Above 0, a diffusion.
        cycles: how often the noise goes round all sites.
        width, depth: size of the network, by default one that suits the data; ``network`` is "site_mlp" (one for all steps) or
            "local_mlp" (one a step).
        heads: "shared" is one output layer for all sites, as in the paper, "site" one for each.
        residual: add what enters a hidden layer to what leaves it.
        skip: add the terms of a pairwise model to the logits, (sites · states)² numbers more. Under hard noise they are fitted
            before the network is trained, and kept; of an even number of members one half has them. On by default where there are
            several members.
        members: how many networks learn side by side and answer together, by the geometric mean of their conditionals; by default
            the more the fewer rows there are.
        clean: share of the examples that teach the conditionals of the data itself, at any site.
        sweeps: how often all sites of a sample are redrawn from these in the end; needs ``clean``.
        graph: pairs of sites (m, 2) that are known to depend on each other directly, the couplers of an annealer say. The
            pairwise terms of the data's own conditionals, which sweeps draw from, then look at no others. Needs ``clean``, implies
            ``skip``.
        calibrate: in the end, change the pairwise terms so that the means and correlations of what the model generates are those
            of the data. Hard noise only; implies ``skip``.
        unseen: the probability of each symbol that a constant site never showed; 0 makes it impossible.
        loss: "tempered_screening(gamma)", "screening" (the paper's), "weighted_screening(alpha)" or "cross_entropy".
        order: the sites in the order in which they are noised; they are generated in the opposite order.
        alphabet: all symbols, where the sample may lack some.
        hide_noised: hide sites that hard noise has erased from the network. Equal in law, and it makes the likelihood
            exact; False is the paper's form.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        batch_size, learning_rate, weight_decay, warmup, clip_norm, average_decay, patience, validation_fraction: the
            training loop's; warmup is a fraction of the run, patience a number of evaluations.
        precision: of the products of training on a GPU: "tf32", "float32" or "bfloat16". A CPU has float32 alone.
    """

    search_space: ClassVar[SearchSpace] = {**SHARED, **NOISE}

    loss: str = "tempered_screening(0.75)"
    hide_noised: bool = True
    graph: Any = None
    calibrate: bool = False

    def open_settings(self) -> dict[str, Any]:
        """Return the settings that suit the data; what is calibrated, or looks at a graph, are pairwise terms."""
        found = super().open_settings()
        return {**found, "skip": found["skip"] or bool(self.calibrate) or self.graph is not None}

    def parts(self) -> list[TrainedModel]:
        """Let the kinds of a committee be trained in parts; it is calibrated as a whole."""
        self._check_terms()
        found = super().parts()
        return [part.set_params(calibrate=False, graph=self.graph if part.chosen("skip") else None) for part in found]

    def complete(self, rows: Rows, seed: int) -> None:
        """Match what the model generates to the rows it has learnt from, if that is asked for."""
        if self.calibrate and self.stopped_ not in ("interrupted", "constant"):
            match(self.conditionals, rows, generator=devices.generator(seed, self.device_))

    def _neighbours(self) -> Tensor | None:
        return None if self.graph is None else adjacency(self.graph, self.schema_.order)

    def _check_terms(self) -> None:
        """Insist on what the settings of the pairwise terms need."""
        self._neighbours()  # which checks them
        hard = self.keep_prob == 0 and self.hide_noised and self.network == "site_mlp"
        asked = ["calibrate"] * bool(self.calibrate) + ["graph"] * (self.graph is not None)
        if asked and not (hard and self.chosen("skip")):
            raise ValueError(
                f"{' and '.join(asked)} needs the pairwise terms of an autoregressive model: keep_prob=0, "
                f"hide_noised=True, network='site_mlp' and skip=True, got keep_prob={self.keep_prob}, "
                f"hide_noised={self.hide_noised}, network={self.network!r}, skip={self.skip}"
            )
        if self.graph is not None and not self.clean:
            raise ValueError(
                "graph is for the conditionals of the data itself, which sweeps draw from: teach them with clean above 0, 0.25 say"
            )

    def _build(self) -> Objective:
        self._check_terms()
        conditionals = self._network_conditionals(hide_noised=bool(self.hide_noised))
        return ConditionalObjective(conditionals, losses.resolve(self.loss), clean=self.clean)
