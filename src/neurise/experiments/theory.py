"""The theorem, term by term, on a space that can be enumerated: nothing here is estimated from samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neurise.experiments._laws import MEMORISED, ROWS
from neurise.experiments.base import Cell, Experiment, Outcome, Scalar, Scale
from neurise.experiments.parts.figures import Column, Field, Figure, Table

if TYPE_CHECKING:
    from neurise.dataset import Dataset

KEEP_PROBS = (0.0, 0.3, 0.5, 0.7, 0.9)
CYCLES = (0, 1, 2, 3, 4)
KERNELS = ("Bayes", "heat bath", "½ Bayes + ½ heat bath", "½ Bayes + ½ degenerate", "degenerate")
STARTS = {"noised rows": "tv_noised_rows", "fresh noise": "tv_fresh_noise", "uniform draws": "tv_uniform_draws"}
DATA = ("edwards_anderson", "potts")


class Theory(Experiment):
    """How fast the noise forgets, how loose the bound is, what an empirical start does, and which kernels reverse the chain."""

    title = "The theorem, term by term"
    reproduces = (
        "Appendix, “Theory”: TV ≤ δ_T + Tη + γ, the corollary on empirical starts, and the choice of reverse kernels"
    )
    notes = (
        "Exact on 3×3 spins and on 2×2 sites of three states; ε = 0.5 and two cycles unless another is named.",
        "The model that learns is the paper's own form of NeurISE.",
    )
    labels = {"edwards_anderson": "Edwards–Anderson 3×3", "potts": "Potts 2×2, p = 3"}  # noqa: RUF012
    scales: Mapping[str, Scale] = {  # type: ignore[misc]
        "smoke": Scale(
            1, {"data": DATA[1:], "rows": (100, 1000)}, {"steps": 40, "width": 16}, "the Potts model alone, one seed"
        ),
        "laptop": Scale(
            3, {"data": DATA, "rows": (100, 1000, 10_000)}, {"steps": 600, "width": 64}, "three seeds, N up to 10⁴"
        ),
        "paper": Scale(10, {"data": DATA, "rows": (100, 1000, 10_000, 100_000)}, {"steps": 2000, "width": 128}),
    }
    figures = (
        Figure(
            "delta",
            "How far the noised data are from uniform",
            Field("cycles", "cycles of noise"),
            (Field("delta", "δ"),),
            "keep_prob",
            "data",
            where={"part": "delta"},
            log_x=False,
            log_y=False,
            caption="One line for each ε, the probability that a step keeps its site.",
        ),
        Figure(
            "bounds",
            "The bound and what lies below it",
            ROWS,
            (
                Field("bound", "the paper's, δ_T + Tη"),
                Field("sum_largest", "each step's own maximum"),
                Field("sharp", "sharper: mean errors"),
                Field("tv", "the truth"),
            ),
            None,
            "data",
            (MEMORISED,),
            where={"part": "terms"},
        ),
        Figure(
            "starts",
            "Where the reverse chain starts from",
            ROWS,
            (Field("tv", "uniform"), *(Field(name, start) for start, name in STARTS.items())),
            None,
            "data",
            where={"part": "terms"},
        ),
    )
    tables = (
        Table(
            "terms",
            "Terms of the bound",
            "rows",
            tuple(
                Column(Field(name, label))
                for name, label in (
                    ("tv", "TV"),
                    ("sharp", "sharper"),
                    ("bound", "paper's"),
                    ("mean_eta", "mean η"),
                    ("eta", "η"),
                )
            ),
            by="data",
            where={"part": "terms"},
        ),
        Table(
            "kernels",
            "Reverse kernels with the same marginals",
            "kernel",
            tuple(
                Column(Field(name, label), lower_is_better=None)
                for name, label in (
                    ("marginal_error", "marginals off"),
                    ("changed", "changed"),
                    ("reach", "reach"),
                    ("from_uniform_tv", "TV"),
                )
            ),
            by="data",
            where={"part": "kernels"},
            caption="Sites that a step changes on average, states in its reach, and the TV of the chain that starts from uniform.",
        ),
    )

    def parameters(self, scale: Scale, methods: Sequence[str]) -> Iterator[dict[str, Scalar]]:
        """Give the cells of all three parts; only what is learnt has settings and trials."""
        for data in scale.axes["data"]:
            for keep_prob in KEEP_PROBS:
                yield from ({"part": "delta", "data": data, "keep_prob": keep_prob, "cycles": c} for c in CYCLES)
            yield from ({"part": "kernels", "data": data, "kernel": k, "keep_prob": 0.5, "cycles": 2} for k in KERNELS)
        for cell in super().parameters(scale, methods):
            yield {"part": "terms", **cell, "keep_prob": 0.5, "cycles": 2}

    def trials(self, parameters: Mapping[str, Scalar], scale: Scale) -> int:
        """What is exact and learns nothing is computed once."""
        return scale.trials if parameters["part"] == "terms" else 1

    def run(self, cell: Cell, device: str | None) -> Outcome:
        """Compute one point of one part."""
        parts = {"delta": _delta, "kernels": _kernel, "terms": _terms}
        return Outcome(parts[str(cell.parameters["part"])](cell.parameters, cell.seed))


def _data(parameters: Mapping[str, Any]) -> Dataset:
    from neurise.datasets.edwards_anderson import edwards_anderson
    from neurise.datasets.potts import potts

    return edwards_anderson(side=3) if parameters["data"] == "edwards_anderson" else potts(side=2, states=3)


def _delta(parameters: Mapping[str, Any], seed: int) -> dict[str, float | None]:
    from neurise.theory.curves import delta_ceiling, delta_curve

    data, keep_prob, cycles = _data(parameters), parameters["keep_prob"], parameters["cycles"]
    last = cycles * data.space.sites  # a chain has at least one cycle; before the first step nothing is forgotten
    curve = delta_curve(data.pmf, data.space, keep_prob, max(1, cycles))
    ceiling = delta_ceiling(data.space, keep_prob, max(1, cycles))
    return {"delta": float(curve[last]), "ceiling": float(ceiling[last])}


def _kernel(parameters: Mapping[str, Any], seed: int) -> dict[str, float | None]:
    from neurise.noise.round_robin import RoundRobin
    from neurise.theory.kernels import KERNELS as MAKERS
    from neurise.theory.kernels import compare

    data, name = _data(parameters), parameters["kernel"]
    noise = RoundRobin(data.space, parameters["keep_prob"], parameters["cycles"])
    (found,) = compare(data.pmf, noise, {name: MAKERS[name]})
    return {
        "marginal_error": found.defect,
        "changed": found.hamming,
        "changed_elsewhere": found.elsewhere,
        "reach": found.reach,
        "from_uniform_tv": found.from_uniform,
    }


def _terms(parameters: Mapping[str, Any], seed: int) -> dict[str, float | None]:
    from neurise.noise.round_robin import RoundRobin
    from neurise.theory.learning import UNIFORM, learning_curve

    data = _data(parameters)
    noise = RoundRobin(data.space, parameters["keep_prob"], parameters["cycles"])
    settings = {"steps": parameters["steps"], "width": parameters["width"], "chain__hide_noised": False}
    (learnt,) = learning_curve(data.pmf, noise, [parameters["rows"]], [seed], **settings)
    first = learnt.starts[UNIFORM]
    return {
        "tv": first.paper.tv,
        "sharp": first.sharp,
        "sum_largest": first.mismatch + first.sum_largest,
        "bound": first.paper.bound,
        "eta": first.paper.eta,
        "mean_eta": first.mean_eta,
        "delta_T": first.paper.delta_T,
        "memorised_tv": learnt.memorised,
        **{name: learnt.starts[start].paper.tv for start, name in STARTS.items()},
    }
