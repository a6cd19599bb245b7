"""NeurISE diffusion: the paper's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from torch import Tensor

from neurise import checks, discovery, losses
from neurise.conditionals.base import Conditionals
from neurise.deadline import Work
from neurise.energies.frontier import adjacency
from neurise.fields import Field
from neurise.holdings.graphs import site_pairs
from neurise.modeling.calibration import calibrated
from neurise.modeling.model import Run
from neurise.modeling.round_robin import RoundRobinModel
from neurise.modeling.search_space import NOISE, SHARED, SearchSpace
from neurise.modeling.trained import Job
from neurise.networks.base import RowNetwork
from neurise.rows import Rows

WIDE, MANY_ROWS = 128, 2**14
"""Calibration is tried by default from so many sites on, where errors of many conditionals add up, and up to so many rows.

Without a GPU also of more rows, if they have labels: networks then see each of them a few times at most, and the means of
classes are the first that they get wrong.
"""
LOSS = "tempered_screening(0.75)"
MOST_COLUMNS = 2**13
"""Sites times states up to which it is: the corrections that are compared are matrices of so many rows."""


@dataclass(kw_only=True, eq=False, repr=False)
class NeurISE(RoundRobinModel):
    """Discrete diffusion by single-site conditionals, learnt with losses of the Neural Interaction Screening family.

    Args:
        keep_prob: ε, the probability that a step keeps its site. 0 is hard noise: an autoregressive model with an exact
            likelihood. Above 0, a diffusion.
        cycles: how often the noise goes round all sites.
        loss: "tempered_screening(gamma)", "screening" (the paper's), "weighted_screening(alpha)" or "cross_entropy".
        network: "site_mlp" (one for all steps), "local_mlp" (one per step), or another file of ``neurise.networks``. None
            chooses by the data: "site_mlp" for narrow data; with many sites several kinds race for a short while, and a
            committee may mix them. ``summary()`` says what was chosen and why.
        width, depth: size of the network, by default one that suits the data.
        members: how many networks learn side by side and answer together, by the geometric mean of their conditionals; by
            default the more the fewer rows there are.
        graph: pairs of sites (m, 2) that are known to depend on each other directly, the couplers of an annealer say, or a
            networkx graph whose nodes are sites (numbers from 0, or names of columns). The energy has these pairs and no
            others, and "sparse" is the network: it chooses the parents of a site among the sites that the graph lets it
            depend on. The data's own conditionals, which sweeps draw from (``corrector``), look at neighbours alone. With
            network="site_mlp" only the pairwise terms of these do, beside which its perceptron sees all sites: it needs
            ``corrector__clean``, and gets ``architecture__pairwise``.
        calibrate: in the end, correct the conditionals so that the means and correlations of what the model generates are
            those of the data, to within their noise. Hard noise only; True implies ``architecture__pairwise`` with
            "site_mlp". None: for 128 sites or more and at most 16,384 rows, or rows with labels on a CPU, where rows held back
            agree. With labels it goes class by class.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``; by default a number that
            suits the data.
        order: the sites in the order in which they are noised; they are generated in the opposite order.
        alphabet: all symbols, where the sample may lack some.
        training: the training loop, a group (:class:`neurise.Training`).
        architecture: the network beyond its size, a group (:class:`neurise.Architecture`).
        chain: the noise beyond its level, a group (:class:`neurise.Chain`).
        corrector: sweeps, a group (:class:`neurise.Corrector`).

    The parameters of a group are reached as ``set_params(training__batch_size=512)``.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.NeurISE(width=8, members=1, steps=20).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape, model.log_prob(X).shape
    ((4, 3), (100,))
    """

    search_space: ClassVar[SearchSpace] = {**SHARED, **NOISE}
    for_sparse: ClassVar[Mapping[str, Any]] = {"graph": None}
    for_networks: ClassVar[Mapping[str, Any]] = {
        **RoundRobinModel.for_networks,
        "loss": LOSS,
        "calibrate": None,
    }

    loss: str = LOSS
    graph: Any = None
    calibrate: bool | None = None
    calibration_: str | None = field(init=False, default=None)
    """What was done to match the moments, and why; None where nothing was tried."""

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's own form: one network with one output layer, the screening loss, and erased sites in view.

        ``changes`` are parameters as ``set_params`` takes them.
        """
        form = {
            "loss": "screening",
            "members": 1,
            "architecture__heads": "shared",
            "architecture__residual": False,
            "architecture__pairwise": False,
            "chain__hide_noised": False,
        }
        groups = {name: value for name, value in changes.items() if name in cls.groups}
        leaves = {name: value for name, value in changes.items() if name not in cls.groups}
        return cls().set_params(**groups).set_params(**{**form, **leaves})

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used, or that needs pairwise terms where there are none."""
        if not isinstance(self.loss, str):
            raise ValueError(f"loss must be a name, got {self.loss!r}")
        self.loss_, self.neighbours_ = losses.resolve(self.loss), None
        super().check()
        self.calibration_ = None
        forced = self.calibrate is not None and checks.flag("calibrate", self.calibrate)
        is_wide = self.schema_.space.sites >= WIDE
        self.calibrates_ = forced or (self.calibrate is None and is_wide and self._suits_calibration())
        if self._has_gaps and (forced or self.graph is not None):
            raise ValueError(
                f"{'calibrate=True' if forced else 'graph'} needs complete rows, and {self.schema_.gaps:,} values "
                "are missing; leave it out"
            )
        asked = ["calibrate"] * forced + ["graph"] * (self.graph is not None)
        if asked and self.architecture.pairwise is None and list(self.sizes_) == ["site_mlp"]:
            self.chosen_ = self.chosen_._replace(pairwise=True)
        if self.graph is not None:
            pairs = site_pairs(self.graph, self.schema_.space.sites, getattr(self.schema_.alphabet, "names", None))
            self.neighbours_ = adjacency(pairs, self.schema_.order)
            make = discovery.found("neurise.networks", next(iter(self.sizes_)))
            if not self.corrector.clean and not (issubclass(make, RowNetwork) and make.takes_graph):
                raise ValueError(
                    f"graph is for network='sparse', and for the conditionals of the data itself, which sweeps draw from: "
                    f"set network='sparse', or with network={next(iter(self.sizes_))!r} teach them by corrector__clean "
                    "above 0, 0.25 say"
                )
        if forced and self.mixes_orders_:
            raise ValueError(
                f"calibrate=True corrects the moments of one chain, and architecture__orders={self.architecture.orders!r} "
                "mixes several; set architecture__orders=1 or calibrate=False"
            )
        if asked and (self.is_of_rows or (asked == ["calibrate"] and len(self.sizes_) > 1)):
            return
        if asked and not (self._is_hard and self.chosen_.pairwise and list(self.sizes_) == ["site_mlp"]):
            raise ValueError(
                f"{' and '.join(asked)} needs the pairwise terms of an autoregressive model: keep_prob=0, "
                f"chain__hide_noised=True, network='site_mlp' and architecture__pairwise=True, got keep_prob="
                f"{self.keep_prob}, chain__hide_noised={self.chain.hide_noised}, network={self.network!r}, "
                f"architecture__pairwise={self.architecture.pairwise}"
            )

    def _suits_calibration(self) -> bool:
        """Whether to try to calibrate wide data: rows that are hardly learnt, and one chain that draws each site once."""
        space = self.schema_.space
        is_learnt = self.schema_.count > MANY_ROWS and (self.schema_.labels is None or self.device_.type == "cuda")
        if is_learnt or space.sites * space.states > MOST_COLUMNS or self._has_gaps:
            return False
        has_terms = list(self.sizes_) != ["site_mlp"] or self.chosen_.pairwise
        return self._is_hard and has_terms and self.cycles == 1 and self.chain.steps is None and not self.mixes_orders_

    def _calibrated(self, learnt: Conditionals, jobs: Sequence[Job], rows: Rows, run: Run, work: Work) -> Conditionals:
        always, constant = self.calibrate is not None, self.schema_.constant
        own = work.part(1.0, what="calibration", unit="sites", total=2 * self.schema_.space.sites)
        found = calibrated(learnt, jobs, rows, constant, always=always, seed=run.seed, work=own)
        if own.shown is not None:
            own.shown.progress.close()
        self.calibration_ = found.report
        return found.conditionals

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "calibration": self.calibration_}

    def _described(self) -> Any:
        own = {} if self.calibration_ is None else {"calibration": self.calibration_}
        return {**super()._described(), **own}

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        super()._restore(tensors, learnt)
        described = Field(learnt, "learnt")
        self.calibration_ = described["calibration"].text() if "calibration" in described else None
