"""How a pairwise model is fitted: its parameters, its tables, and the choice between the likelihood and the training loop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from neurise import checks, losses
from neurise.batching import batches
from neurise.deadline import Work, noted_interrupts
from neurise.energies.learning import Declined
from neurise.modeling.model import Run
from neurise.modeling.trained import Job, TrainedModel
from neurise.models._pairwise.likelihood import maximise
from neurise.models._pairwise.tables import PairwiseObjective, PairwiseTables
from neurise.rows import Rows

ESTIMATORS = ("maximum_likelihood", "loss")


@dataclass(kw_only=True, eq=False, repr=False)
class FittedEnergy(TrainedModel):
    """Tables of a pairwise model, by maximum likelihood or by the training loop."""

    estimator: str | None = None
    loss: str = "cross_entropy"
    edges: Sequence[Sequence[int]] | None = None
    l1: float = 0.0
    l2: float | None = None
    sweeps: int | None = None

    energy_: str | None = field(init=False)
    """How the energy was learnt, in words."""

    def _build(self) -> PairwiseObjective:
        schema = self.schema_
        for name in ("l1", "l2"):
            if getattr(self, name) is not None:
                checks.not_negative(name, getattr(self, name))
        if self.estimator is not None:
            checks.one_of("estimator", self.estimator, ESTIMATORS)
        if self.estimator == "maximum_likelihood" and (asked := self._of_the_loss()):
            raise ValueError(
                f"estimator='maximum_likelihood' has no use for {asked}, of the training by a loss; leave one of the two out"
            )
        if self.sweeps is not None:
            checks.count("sweeps", self.sweeps, checks.MOST_STEPS)
        if not isinstance(self.loss, str):
            raise ValueError(f"loss must be a name, got {self.loss!r}")
        varies = np.flatnonzero(schema.constant.numpy() < 0)
        network = PairwiseTables(schema.space, self._pairs(varies), self.device_, classes=schema.classes)
        places = torch.from_numpy(varies).to(self.device_)
        return PairwiseObjective(network, losses.resolve(self.loss), places, float(self.l1), self._ridge())

    def _pairs(self, varies: np.ndarray) -> np.ndarray:
        """Return the pairs of places that interact, i < j, (pairs, 2); a site that never varies needs no coupling."""
        if self.edges is None:
            first, second = np.triu_indices(len(varies), 1)
            return np.stack([varies[first], varies[second]], axis=1)
        edges = checks.pairs("edges", self.edges, self.schema_.space.sites)
        pairs = np.unique(np.sort(np.argsort(self.schema_.order)[edges], axis=1), axis=0).astype(np.int64)
        return np.asarray(pairs[np.isin(pairs, varies).all(1)])

    def _ridge(self) -> float:
        """Return l2, or that of couplings which are a priori about 1."""
        if self.l2 is not None:
            return float(self.l2)
        return self.schema_.space.states**2 / (8 * max(1, self.schema_.count))

    def _of_the_loss(self) -> str:
        """Name the parameters that were given and matter to the training by a loss alone; nothing is the empty text."""
        given = {"loss": self.loss != "cross_entropy", "l1": bool(self.l1), "l2": self.l2 is not None}
        return ", ".join(f"{name}={getattr(self, name)!r}" for name, asked in given.items() if asked)

    def _likely(self, run: Run) -> bool:
        """Whether the likelihood is to be maximised if it can be."""
        if self.estimator is not None:
            return self.estimator == "maximum_likelihood"
        if self._of_the_loss():
            return False
        return run.max_steps is None and run.callback is None and run.checkpoint is None

    def jobs(self, rows: Rows, held: Rows | None, run: Run) -> list[Job]:
        """Return what the training loop has to do: nothing where the likelihood is maximised."""
        if "energy_" not in vars(self):
            if self._likely(run):
                return []
            self.energy_ = f"the loss {self.loss}"
        return super().jobs(rows, held, run)

    def begin_fit(self, device: Any) -> None:
        """Forget what was learnt before."""
        super().begin_fit(device)
        vars(self).pop("energy_", None)

    def _learn(self, rows: Rows, held: Rows | None, run: Run) -> None:
        if self._likely(run):
            varies = bool((self.schema_.constant < 0).any())
            refused = self._maximise(rows, held, run) if varies else "no site varies"
            if refused is None:
                return
            if varies and self.estimator is not None:
                raise NotImplementedError(
                    f"the likelihood cannot be maximised: {refused}; estimator=None learns by a loss"
                )
            self.energy_ = f"the loss {self.loss}, since {refused}"
        super()._learn(rows, held, run)

    def _maximise(self, rows: Rows, held: Rows | None, run: Run) -> str | None:
        """Maximise the likelihood, or say why not."""
        objective = self._build()
        objective.network.reset(torch.Generator())
        with noted_interrupts() as interrupts:
            seconds = math.inf if run.max_seconds is None else run.max_seconds
            work = Work(seconds, interrupts, None, run.verbose, run.began)
            found = maximise(
                objective.network,
                rows,
                held,
                np.flatnonzero(self.schema_.constant.numpy() < 0),
                classes=self.schema_.classes,
                known=self.edges is not None,
                device=self.device_,
                seed=run.seed,
                work=work,
            )
            if isinstance(found, Declined):
                return found.reason
            self.stopped_ = "interrupted" if interrupts.asked else "time" if not work.left() else "solved"
        objective.network.to(self.device_).requires_grad_(False)
        self.objective_ = objective
        own = " and ".join(dict.fromkeys(one.words for one in found))
        self.energy_ = own if len(found) == 1 else f"each class by itself: {own}"
        record = {"step": sum(one.found.rounds for one in found), "seconds": work.spent}
        loss = self._mean_nats(rows)
        self.history_[:] = [{**record, "loss": loss, **({} if held is None else {"validation": self._mean_nats(held)})}]
        return None

    def _mean_nats(self, rows: Rows) -> float:
        """Return the mean over rows and sites that vary of −log P(site | all others)."""
        answers = self._log_conditionals(rows.x, rows.y)
        terms = torch.cat([found.gather(-1, rows.x[part].long()[..., None]).sum((1, 2)) for part, found in answers])
        weights = torch.ones(len(rows)) if rows.weights is None else rows.weights
        varying = int((self.schema_.constant < 0).sum())
        return -float(weights.double() @ terms / weights.double().sum()) / max(1, varying)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "energy": self.energy_}

    def _described(self) -> Any:
        return {"energy": self.energy_}

    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        super()._restore(tensors, learnt)
        self.energy_ = learnt.get("energy") if isinstance(learnt, dict) else None

    def _log_conditionals(
        self, x: Tensor, y: Tensor | None, place: int | None = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Logarithm of the conditionals of all places, (n, sites, states) float64, or of one, batch by batch of the rows."""
        constant, space = self.schema_.constant[slice(None) if place is None else [place]], self.space_
        certain = (constant[:, None] == torch.arange(space.states)).double().log()  # (sites, states)
        weights = {name: weight.double() for name, weight in self._network.named_parameters()}
        for rows in batches(len(x), 64 * space.sites * space.states):
            labels = None if y is None else y[rows].to(self.device_)
            logits = functional_call(self._network, weights, (x[rows].to(self.device_), labels, place))
            yield rows, torch.where((constant >= 0)[:, None], certain, logits.log_softmax(-1).cpu())

    @property
    def _network(self) -> PairwiseTables:
        network: PairwiseTables = self.objective_.network  # type: ignore[assignment]
        return network
