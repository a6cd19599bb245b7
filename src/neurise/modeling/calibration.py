r"""Calibrate what was learnt, as far as rows that were held back agree.

How far moments may be trusted is one number, the spread τ of :mod:`neurise.conditionals._matching`. Candidates are matched to
the moments of one part of the rows, all in one run of the chain, and looked at by the other part: what do they add to its
exact log-likelihood, and how far are the moments of what they draw from its moments? Each row that is looked at is scored
by members of the committee that did not learn from it. Then the chosen spread is matched to the moments of all rows.

Rows that have labels are asked for, and judged, class by class: so are their moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from neurise.conditionals.base import Conditionals
from neurise.conditionals.class_matched import Matched
from neurise.conditionals.committee import Committee
from neurise.conditionals.moment_matched import SPREAD, corrected, match_each
from neurise.deadline import Work
from neurise.energies.regressions import Sample, sample_of
from neurise.rows import Rows

SPREADS = (0.0, 0.04, 0.08, 0.16, 0.32, 0.64)
"""What is compared; 0 leaves everything as it is."""
MENDED = 0.9
"""The squared error of the moments, beyond what chance explains, must fall to this share."""
ALLOWED = 5e-3
"""Share of the negative log-likelihood that better moments may cost, beyond what cannot be told from nothing."""
FOLDS = 2
"""Folds that are held back of a committee's rows."""
HELD = 2**11
"""Rows held back that are looked at, at most."""
CHOOSING = 2 / 3
"""Share of a limited time in which the spread must be chosen: twice as long as the final run takes."""
CHANCE = 0.02
"""By such a share the noise of many moments together may be more than is expected of it."""
BLOCK = 2**10
"""Columns of a matrix of moments that are computed at once."""
MANY_ROWS = 2**14
"""So many rows with labels are matched, at most: an even selection of more."""
OF_MANY = (0.0, 0.16, 0.64)
"""What is compared where there are more: their moments have little noise, and errors of any size show."""
DRAWS_OF_MANY = 2**10, 2**12
"""How many rows are then drawn for each of these, and for the one that is taken: it must be done soon beside the training."""


class Calibrated(NamedTuple):
    """Conditionals, and what was done to them."""

    conditionals: Conditionals
    report: str


class Held(NamedTuple):
    """Rows that were held back, as features, with the log-laws (n, sites, states) of members that did not learn from them."""

    sample: Sample
    x: Tensor  # (n, sites)
    laws: Tensor
    y: Tensor | None = None  # (n,)


@torch.no_grad()
def calibrated(
    learnt: Conditionals, jobs: Sequence[Any], rows: Rows, constant: Tensor, *, always: bool, seed: int, work: Work
) -> Calibrated:
    """Match the moments of the rows by the spread that held-back rows choose; leave all as it is where none helps.

    With ``always`` the moments are matched in any case.
    """
    spread, report = (SPREAD, f"spread {SPREAD:g}, no complete rows were held back to choose it by")
    is_judged = jobs[0].held is not None and jobs[0].held.missing is None  # a row with gaps has no exact likelihood
    if not is_judged and not always:
        return Calibrated(learnt, "none: no complete rows were held back to choose it by")
    options: dict[str, Any] = {"generator": Generator(learnt.device).manual_seed(seed)}
    spreads: tuple[float, ...] = SPREADS
    first = last = chosen = None
    if rows.y is not None:
        options["classes"] = jobs[0].objective.frame.classes
        if len(rows) > MANY_ROWS:
            spreads, (first, last) = OF_MANY, DRAWS_OF_MANY
    if is_judged:
        choosing = work.part(CHOOSING)
        own, held = _parted(learnt, jobs, choosing)
        own = _selected(own)
        data = sample_of(own, learnt.noise.space.states, learnt.device)
        tried = match_each(
            learnt, own, data, constant, list(spreads), shared=True, work=choosing, draws=first, **options
        )
        if tried[0].by_class is None:  # too few are drawn for every class: what was not judged is not taken
            options.pop("classes", None)
        if choosing.left():
            gains = held_gains(held, tried)
            pairs = learnt.looked_at()
            # Without pairs that are looked at, all count.
            pairs = pairs | pairs.T if bool(pairs.any()) else torch.ones_like(pairs)
            errors = [moment_error(one, held, pairs) for one in tried]
            nll = -mean_and_error(_log_prob(held.laws, held.x), held.sample)[0]
            best = choose(gains, held.sample, errors, allowed=ALLOWED * nll, always=always)
            spread, chosen = spreads[best], tried[best]
            report = _report(spreads[best], gains[best], held.sample, (errors[0], errors[best]))
        else:
            spread, report = (SPREAD if always else 0.0), f"{_name(SPREAD if always else 0.0)}, no time to choose"
    if not spread:
        return Calibrated(learnt, report)
    rows = _selected(replace(rows, fold=None))
    data = sample_of(rows, learnt.noise.space.states, learnt.device)
    found = match_each(learnt, rows, data, constant, [spread], draws=last, work=work, **options)[0]
    if not work.left():
        if chosen is not None and chosen.by_class is not None:
            found = chosen
            report += "; by the rows that were not held back, for lack of time"
        elif not always:
            return Calibrated(learnt, "none: no time")
        else:
            report += "; cut short by the time"
    return Calibrated(corrected(learnt, found.fit, found.by_class), report)


def _selected(rows: Rows) -> Rows:
    """Return rows with labels as they are, or so many of them, evenly over all; and all rows without."""
    if rows.y is None or len(rows) <= MANY_ROWS:
        return rows
    return rows.take(torch.linspace(0, len(rows) - 1, MANY_ROWS, dtype=torch.float64).round().long())


def _parted(learnt: Conditionals, jobs: Sequence[Any], work: Work) -> tuple[Rows, Held]:
    """Return rows to match, and others, which are scored by members that did not learn from them."""
    own, held = jobs[0].rows, jobs[0].held
    if held.fold is not None:
        folds = min(FOLDS, jobs[0].objective.network.size)
        own, held = own.take(own.fold >= folds), held.of_folds_below(folds)
    places = torch.linspace(0, len(held) - 1, min(len(held), HELD), dtype=torch.float64).round().long()
    held = held.take(places).to(learnt.device)
    sample = sample_of(held, learnt.noise.space.states, learnt.device)
    held = held.take(sample.place.to(learnt.device))
    laws = torch.zeros(*held.x.shape, learnt.noise.space.states, device=learnt.device)
    for fold in [None] if held.fold is None else held.fold.unique().tolist():
        here = torch.arange(len(held), device=learnt.device)
        judge = learnt
        if fold is not None:
            here, judge = here[held.fold == fold], _without(learnt, jobs, int(fold))
        for block in judge.blocks(len(here), cached=True):
            part = held.take(here[block])
            laws[here[block]] = judge.log_conditionals(part.x, part.y).to(laws)
            work.left()
    return replace(own, fold=None), Held(sample, held.x.long(), laws, None if held.y is None else held.y.long())


def _without(learnt: Conditionals, jobs: Sequence[Any], fold: int) -> Conditionals:
    """Return the members that did not learn from a fold: one of every job, with what their kind has to say."""
    if not isinstance(learnt, Committee):
        return learnt
    numbers = [number for job in jobs for number in range(job.objective.network.size)]
    chosen = [(m, w) for m, w, number in zip(learnt, learnt.weights, numbers, strict=True) if number == fold and w > 0]
    total = sum(weight for _, weight in chosen)
    return Committee([member for member, _ in chosen], [weight / total for _, weight in chosen])


def held_gains(held: Held, found: Sequence[Matched]) -> Tensor:
    r"""Return what each correction adds to the log-likelihood of each row, :math:`\log p_\tau(x) - \log p(x)`, (found, n)."""
    states, gains = held.laws.shape[-1], list[Tensor]()
    before = _log_prob(held.laws, held.x)
    for one in found:
        change = one.fit.logits(held.sample)  # (n, sites, O)
        if one.by_class is not None and held.y is not None:
            change = change + one.by_class.of_all_sites(held.sample.features, held.y)
        if change.shape[-1] < states:
            change = torch.cat([torch.zeros_like(change), change], dim=-1)
        gains.append(_log_prob(torch.log_softmax(held.laws + change, dim=-1), held.x) - before)
    return torch.stack(gains)


def _log_prob(laws: Tensor, x: Tensor) -> Tensor:
    """Return the log-likelihood of each row, (n,) float64."""
    return laws.gather(-1, x[..., None]).squeeze(-1).double().sum(1)


def moment_error(found: Matched, held: Held, pairs: Tensor) -> float:
    r"""Return how far moments of what is drawn are from those of held-back rows, beyond what chance explains.

    It is :math:`\sum_{ij} (\langle g_i g_j\rangle_{\mathrm{drawn}} - \langle g_i g_j \rangle_{\mathrm{held}})^2` less the
    variances of both means, and never less than 0. g are the constant 1 and the features of all sites less their means in the
    held-back rows; ``pairs`` (sites, sites) says which of them count. On 2,000 sites most pairs have nothing to do with each
    other, and their noise would hide everything else. Where the moments of each class are matched, it is the mean over the
    classes of the rows held back, of which each has moments of its own.
    """
    sample, drawn = held.sample, found.features
    if found.by_class is None or held.y is None:
        error, expected = _squares(drawn, sample, pairs)
        return max(0.0, error - (1 + CHANCE) * expected)
    total, parts = 0.0, drawn.view(len(found.by_class.bias), -1, drawn.shape[1])
    for kind, part in enumerate(parts):
        here = (held.y == kind).to(sample.weight)
        share = float(sample.weight @ here)
        if share > 0:
            error, expected = _squares(part, sample.part(here), pairs)
            total += share * (error - (1 + CHANCE) * expected)
    return max(0.0, total)


def _squares(drawn: Tensor, sample: Sample, pairs: Tensor) -> tuple[float, float]:
    """Return the sum of the squared errors of moments, and what chance alone makes of it."""
    mean, noise = sample.weight @ sample.features, sample.noise + 1 / len(drawn)
    ours, theirs = (torch.cat([part.new_ones(len(part), 1), part - mean], dim=1) for part in (drawn, sample.features))
    counted = torch.ones(ours.shape[1], ours.shape[1], dtype=torch.bool, device=ours.device)
    each = sample.outcomes
    counted[1:, 1:] = pairs.to(ours.device).repeat_interleave(each, 0).repeat_interleave(each, 1)
    error = expected = 0.0
    for start in range(0, ours.shape[1], BLOCK):
        some = slice(start, start + BLOCK)
        held = theirs.T @ (sample.weight[:, None] * theirs[:, some])
        square = theirs.square().T @ (sample.weight[:, None] * theirs[:, some].square())
        gap = ours.T @ ours[:, some] / len(ours) - held
        error += float((gap.double().square() * counted[:, some]).sum())
        expected += float(((square - held.square()).double().clamp(min=0) * counted[:, some]).sum()) * noise
    return error, expected


def choose(gains: Tensor, sample: Sample, errors: Sequence[float], *, allowed: float, always: bool) -> int:
    """Return which of the spreads to take: 0 is none.

    Those whose likelihood is less than the best by no more than the standard error of the difference and what is ``allowed``,
    in nats per row, are good. Of these the one with the largest spread is taken that mends the moments; none is taken where
    none does so.
    """
    first = 1 if always else 0
    best = max(range(first, len(gains)), key=lambda number: mean_and_error(gains[number], sample)[0])
    found = first
    for number in range(first, len(gains)):
        mean, error = mean_and_error(gains[best] - gains[number], sample)
        if mean <= error + allowed and (always or errors[number] < MENDED * errors[0]):
            found = number
    return found


def mean_and_error(values: Tensor, sample: Sample) -> tuple[float, float]:
    """Return the weighted mean of numbers that rows have, and its standard error."""
    weight, count = sample.weight.double(), sample.count.double()
    mean = weight @ values
    return float(mean), float((weight.pow(2) / count * (values - mean).pow(2)).sum().sqrt())


def _name(spread: float) -> str:
    return f"spread {spread:g}" if spread else "none"


def _report(spread: float, gains: Tensor, sample: Sample, errors: tuple[float, float]) -> str:
    """Say what was chosen and why; the errors of the moments are those before and after."""
    before, after = errors
    if not spread:
        if not before:
            return "none: moments of held-back rows are as near as chance allows"
        return "none: better moments would cost held-back rows too much likelihood"
    mean, error = mean_and_error(gains, sample)
    told = f", squared error of moments × {after / before:.2f}" if before else ""
    return f"spread {spread:g}: held-back rows {mean:+.3g} ± {error:.2g} nats{told}"
