"""Fidelity of a model with a law that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from neurise import povm as measurement
from neurise.estimate import Estimate
from neurise.metrics._rows import matrix_of

BEYOND = 6.0
"""Standard errors above 1 at which a fidelity says that one of the two laws does not sum to 1."""


@runtime_checkable
class HasLogProb(Protocol):
    """A model with an exact likelihood."""

    def log_prob(self, X: Any) -> Any:
        """Return log Q of each row, (n,), in nats."""
        ...


class Fidelities(NamedTuple):
    """Fidelities of a model: 1 is perfect."""

    classical: Estimate
    quantum: Estimate | None  # of the state, by the dual frame; None without outcomes


def fidelity(
    model: HasLogProb | Any,
    rows: Any,
    log_p: Callable[[np.ndarray], Any] | Any,
    *,
    drawn_from: str = "data",
    outcomes: Any = None,
    povm: str | measurement.Povm = "tetrahedral",
    max_error: float = measurement.USEFUL,
    other: Any = None,
    seed: int = 0,
) -> Fidelities:
    r"""Classical fidelity of the model's law Q with the true law P; and that of the quantum state. Dimensionless.

    .. math:: F = \sum_x \sqrt{P(x) Q(x)} = \mathbb{E}_{x \sim P} \sqrt{Q(x)/P(x)} = \mathbb{E}_{x \sim Q} \sqrt{P(x)/Q(x)}

    ``model`` has a ``log_prob``, or is an array of log Q at the rows; ``log_p`` is a function of rows or an array, and must be
    normalised, as the ``log_weight`` of GHZ data is. ``rows`` are exact samples of P that the model was not trained on (its
    training rows are likelier than others under Q, and the mean would be too large), or with ``drawn_from="model"`` samples of
    Q. The error is the standard error over the rows, at most :math:`\sqrt{(1-F^2)/n}`; the floor is 1.

    ``outcomes``, samples of the model as measurement outcomes 0 … 3 (n, qubits), give the fidelity of the state with a GHZ
    state as well (:func:`neurise.povm.ghz_fidelity`), which is refused where its standard error would exceed
    ``max_error``. Its floor is the same of as many real outcomes ``other``; without them, the 1 of a pure state.

    >>> import neurise, numpy as np
    >>> float(neurise.metrics.fidelity(np.log([0.5, 0.5]), [[0], [1]], np.log([0.5, 0.5])).classical)
    1.0
    """
    matrix = matrix_of(rows, "rows")
    if drawn_from not in ("data", "model"):
        raise ValueError(f"drawn_from must be 'data' or 'model', got {drawn_from!r}")
    if other is not None and outcomes is None:
        raise ValueError("other is the floor of the fidelity of the state: give outcomes as well")
    true = _log_law(log_p, matrix, "log_p")
    learnt = _log_law(model.log_prob if isinstance(model, HasLogProb) else model, matrix, "the model's log_prob")
    pair = (true, learnt) if drawn_from == "data" else (learnt, true)
    found = measurement.overlap(*pair)
    value, error = (float(part) for part in found)
    if value > 1 + BEYOND * error + measurement.ROUNDING:
        raise ValueError(
            f"the fidelity would be {value:.4g} ± {error:.1g}, above 1: log_p or log_prob is not normalised, "
            f"the rows were not drawn from the {drawn_from}, or the model was trained on them"
        )
    measurement.warn_above_one(found)
    return Fidelities(
        Estimate(value, error=error, floor=1.0),
        None if outcomes is None else _quantum(outcomes, povm, max_error, other, seed),
    )


def _log_law(law: Any, rows: np.ndarray, what: str) -> np.ndarray:
    """Logarithms of probabilities at the rows, from a function or as they are given."""
    given = law(rows) if callable(law) else law
    values = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given, dtype=float)
    if values.shape != (len(rows),):
        raise ValueError(
            f"{what} has the shape {values.shape}, and there are {len(rows)} rows: one value per row is needed"
        )
    return values


def _quantum(outcomes: Any, povm: str | measurement.Povm, max_error: float, other: Any, seed: int) -> Estimate:
    """Fidelity of the state behind outcomes, with that of real outcomes as its floor."""
    drawn = matrix_of(outcomes, "outcomes")
    value, error = (float(part) for part in measurement.ghz_fidelity(drawn, povm, max_error=max_error))
    floor = 1.0
    if other is not None:
        real = np.random.default_rng(seed).permutation(matrix_of(other, "other"))[: len(drawn)]
        if real.shape[1] != drawn.shape[1]:
            raise ValueError(f"outcomes has {drawn.shape[1]} sites, and other has {real.shape[1]}")
        floor = float(measurement.ghz_fidelity(real, povm, max_error=max_error).value)
    return Estimate(value, error=error, floor=floor)
