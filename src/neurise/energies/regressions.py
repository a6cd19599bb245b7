r"""Sparse multinomial regressions of every site on the others, all at once.

The logits of site u are linear in the features of the sites that it sees,

.. math:: f_u(x) = b_u + \sum_{i\ \mathrm{seen}} A_{u,i}\, \phi(x_i),

and the mean of the negative log-likelihood plus :math:`\lambda \sum_{u,i} \lVert A_{u,i} \rVert` is minimised over all sites
in one matrix product per iteration (FISTA with restarts). The penalty removes whole blocks. The problem is convex, so what is
found is found for certain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from neurise.deadline import Work
from neurise.precision import product_in_two
from neurise.rows import Rows, are_counts, into_folds

STRENGTHS = (0.2, 0.1, 0.05, 0.02, 0.005)
r"""Penalties that are tried, the strongest first, in units of the noise :math:`\sqrt{\log(20\,q^2)/n}` of a block's gradient."""
UNTRIED = 5
"""Which candidate is fitted where there was no time to compare any: the pairs that a middling penalty keeps, without it."""
FOLDS = 5
FEW_ROWS = 2000
"""Below, λ is chosen by cross-fitting: the rows held back are too few to choose by."""
RIDGE = 1e-6
"""A small curvature for directions in which the likelihood has none: two sites that always agree."""
ITERATIONS = 200
FIRST_BEND, LESS_BEND = 0.1, 0.95
"""The curvature that a site's first step reckons with, as a share of the most there can be, and how it falls with every step."""
TINY = 1e-30
LOOK_EVERY = 20
TOLERANCE = 3e-4
"""The fit of a site ends when an iteration that is looked at moves none of its terms by more; each look waits for the device."""
FEWER = 0.8
"""The sites that are not done yet are set apart when they are so few of those at work: to copy them takes time as well."""
MOST_NUMBERS = 2**28
"""Rows beyond so many numbers are left out: these many tell enough about pairs."""


@dataclass(frozen=True)
class Sample:
    """Rows as the regressions see them. Two states are one number, x − ½, and one outcome, the log-odds of token 1."""

    features: Tensor  # (n, sites · O), centred over the alphabet
    target: Tensor  # (n, sites, O)
    weight: Tensor  # (n,), sums to 1
    count: Tensor  # (n,): how many observations each row stands for
    place: Tensor  # (n,): which of the rows they are, on the CPU
    there: Tensor | None = None  # (n, sites): 0 where the target is missing, else 1; None where nothing is

    @property
    def outcomes(self) -> int:
        """O: how many logits a site has, which is also how many features."""
        return self.target.shape[-1]

    @property
    def noise(self) -> float:
        """1/N, with N the number of independent rows of equal weight whose moments are as noisy as these."""
        return float((self.weight.double().pow(2) / self.count.double()).sum())

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Weights as blocks: sites that are fitted, outcomes, sites that are looked at, features."""
        return self.target.shape[1], self.outcomes, self.features.shape[1] // self.outcomes, self.outcomes

    def part(self, share: Tensor) -> Sample:
        """Keep a share of every row, (n,) of 0 … 1, and nothing of those whose share is 0."""
        chosen = torch.nonzero(share).flatten()
        weight, count = ((share * whole)[chosen] for whole in (self.weight, self.count))
        place = self.place[chosen.cpu()]
        there = None if self.there is None else self.there[chosen]
        return Sample(self.features[chosen], self.target[chosen], weight / weight.sum(), count, place, there)


@dataclass(frozen=True)
class Fit:
    """Weights (fitted sites · O, sites · O) and biases (fitted sites · O)."""

    weight: Tensor
    bias: Tensor

    def logits(self, sample: Sample) -> Tensor:
        """What the sites that are fitted have for each row, (n, sites, O)."""
        return (_times(sample.features, self.weight.T, sample) + self.bias).view(sample.target.shape)

    def score(self, sample: Sample) -> float:
        """Mean negative log-likelihood of a row, over all sites."""
        logits = self.logits(sample)
        if sample.outcomes == 1:
            values = functional.softplus(logits) - logits * sample.target
        else:
            values = torch.logsumexp(logits, dim=-1, keepdim=True) - (logits * sample.target).sum(-1, keepdim=True)
        return float(sample.weight.double() @ values.sum((1, 2)).double())


def sample_of(rows: Rows, states: int, device: torch.device) -> Sample:
    """Write rows of tokens as features and targets, on a device. A missing value has the mean features of its site."""
    most = max(1, MOST_NUMBERS // (rows.x.shape[1] * states))
    # Evenly over all; float32 would not tell rows beyond 2^24 apart.
    place = torch.linspace(0, len(rows) - 1, min(len(rows), most), dtype=torch.float64).round().long()
    x = rows.x.cpu()[place].to(device)
    weight = count = torch.ones(len(x), dtype=torch.float64)
    if rows.weights is not None:
        weight = rows.weights.cpu()[place].double()
        count = weight if are_counts(weight) else count
    count = count.float().to(device)
    weight = (weight / weight.sum()).float().to(device)
    if states == 2:
        features, target = x.float()[..., None] - 0.5, x.float()[..., None]
    else:
        target = functional.one_hot(x.long(), states).float()
        features = target - 1 / states
    if rows.missing is None:
        return Sample(features.flatten(1), target, weight, count, place)
    gone = rows.missing.cpu()[place].to(device)[..., None]
    mass = weight[:, None, None] * ~gone
    mean = (mass * features).sum(0) / mass.sum(0).clamp(min=1e-30)
    return Sample(
        torch.where(gone, mean, features).flatten(1), target, weight, count, place, (~gone).float().squeeze(-1)
    )


def marginals(sample: Sample) -> Fit:
    """Begin with the marginals alone."""
    rate = (sample.weight[:, None, None] * sample.target).sum(0).clamp(1e-4, 1 - 1e-4)
    bias = torch.logit(rate) if sample.outcomes == 1 else rate.log() - rate.log().mean(-1, keepdim=True)
    sites, outcomes, seen, inner = sample.shape
    return Fit(bias.new_zeros(sites * outcomes, seen * inner), bias.flatten())


def most_bend(sample: Sample) -> float:
    """The most curvature that the loss of any site can have."""
    return (0.25 if sample.outcomes == 1 else 0.5) * _largest(sample) + RIDGE


def _largest(sample: Sample, rounds: int = 30) -> float:
    """Largest eigenvalue of the second moments of the features and the constant 1, by the power method, and a tenth more."""
    # Of a start that is the same for all sites, a symmetric law could hide the largest for ever.
    vector = torch.randn(sample.features.shape[1], generator=torch.Generator().manual_seed(0)).to(sample.features)
    constant, size = torch.ones((), device=vector.device, dtype=vector.dtype), 1.0
    for _ in range(rounds):
        seen = sample.weight * (sample.features @ vector + constant)
        vector, constant = sample.features.T @ seen, seen.sum()
        norm = torch.sqrt(vector.pow(2).sum() + constant**2)
        size, vector, constant = float(norm), vector / norm, constant / norm
    return 1.1 * size


def best_candidate(sample: Sample, mask: Tensor, held: Sample | None, seed: int, work: Work | None = None) -> int:
    """Return which candidate of :func:`path` says most about rows that it was not fitted on.

    Where the time ends before all are compared, it is the best of those that every round of the comparison has reached.
    """
    work = work or Work()
    if held is None:
        generator = torch.Generator().manual_seed(seed)
        scores = cross_fitted(sample, mask, rounds_for(sample), generator, work)
    else:
        scores = [candidate.score(held) for candidate in path(sample, mask, work=work)]
    return scores.index(min(scores)) if scores else UNTRIED


def rounds_for(sample: Sample) -> int:
    """How many folds are held back in turn to compare the candidates."""
    return FOLDS if float(sample.count.sum()) < FEW_ROWS else 1


def fitted_parts(
    sample: Sample, mask: Tensor, candidate: int, parts: Sequence[Tensor | None], work: Work | None = None
) -> list[Fit]:
    """Fit one candidate to each of the parts of the rows, given as booleans (None: all rows).

    Each may take as long as any other; one whose time ends is kept as it is then.
    """
    found, work = list[Fit](), work or Work()
    for number, part in enumerate(parts):
        own = sample if part is None else sample.part(part[sample.place].to(sample.weight))
        found.append(next(path(own, mask, only=candidate, work=work.part(1 / (len(parts) - number)))))
    return found


def cross_fitted(
    sample: Sample, mask: Tensor, rounds: int, generator: torch.Generator, work: Work | None = None
) -> list[float]:
    """Score the candidates on a part of the rows by what was fitted on the others, for some of the parts.

    Only rounds that reach every candidate count, unless there is none such: then those that the first has reached.
    """
    scores, work = list[float](), work or Work()
    for share in itertools.islice(_folds(sample.count, generator), rounds):
        held = sample.part(share)
        own = [candidate.score(held) for candidate in path(sample.part(1 - share), mask, work=work)]
        if len(own) < len(scores):
            break
        scores = [sum(both) for both in zip(scores, own, strict=True)] if scores else own
        if len(own) < 2 * len(STRENGTHS):
            break
    return scores


def _folds(count: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
    """Put every observation into one fold, and yield what each fold has of every row, (n,) of 0 … 1."""
    if bool((count == 1).all()):
        folds = min(FOLDS, len(count))
        fold = torch.randperm(len(count), generator=generator).to(count.device) % folds
        yield from ((fold == k).to(count) for k in range(folds))
        return
    for taken in into_folds(count.cpu(), FOLDS, generator=generator):
        if bool(taken.any()) and bool((taken < count.cpu()).any()):
            yield taken.to(count) / count


def path(sample: Sample, mask: Tensor, only: int | None = None, work: Work | None = None) -> Iterator[Fit]:
    """Yield the fit of every penalty, and after each the one of the pairs it kept without penalty; or one of these alone.

    Where the time ends, no further fit is yielded; one that is asked for alone is then yielded as it is.
    """
    shape, unit = sample.shape, noise_unit(sample)
    most, current, work = most_bend(sample), marginals(sample), work or Work()
    for number, strength in enumerate(STRENGTHS):
        current = descend(sample, current, mask, penalty=strength * unit, most=most, work=work)
        is_over = not work.left(done=1)
        if only is not None and (is_over or only == 2 * number):
            yield current
            return
        if is_over:
            return
        if only is None:
            yield current
        elif only != 2 * number + 1:
            continue
        kept = current.weight.view(shape).pow(2).sum((1, 3), keepdim=True) > 0
        freed = descend(
            sample, current, mask * kept.expand(shape).reshape(mask.shape), penalty=0.0, most=most, work=work
        )
        is_over = not work.left(done=1)
        if only is not None or not is_over:
            yield freed


def noise_unit(sample: Sample) -> float:
    r"""Return how large the gradient of a block of pure noise may be among those of all pairs, :math:`\sqrt{\log(20\,q^2)/n}`."""
    each = 0.25 if sample.outcomes == 1 else 1 - 1 / sample.outcomes
    return each * math.sqrt(math.log(20 * sample.shape[0] ** 2) * float((sample.weight.pow(2) / sample.count).sum()))


def descend(sample: Sample, start: Fit, mask: Tensor, *, penalty: float, most: float, work: Work | None = None) -> Fit:
    """Minimise by accelerated proximal gradient steps, until no term moves any more, at most ``ITERATIONS`` of them.

    Where the time ends, what is found is as near as the steps have come: each of them leads down.

    ``mask`` is 1 where a weight may be and 0 elsewhere, and ``most`` is a bound on the curvature, :func:`most_bend`.
    The regressions of the sites are problems of their own: those that have come to an end are left out of the products.
    """
    found = Fit(start.weight.clone(), start.bias.clone())
    places = torch.arange(sample.shape[0], device=mask.device)  # of the sites at work
    way, work = Descent(sample, start, mask, penalty, most), work or Work()
    for iteration in range(1, ITERATIONS + 1):
        moved = way.step()
        is_over = not work.left()
        if iteration % LOOK_EVERY and iteration < ITERATIONS and not is_over:
            continue
        lines = _lines(places, sample.outcomes)
        found.weight[lines], found.bias[lines] = way.here.weight, way.here.bias
        busy = torch.nonzero(moved >= TOLERANCE).flatten()
        if is_over or not len(busy):
            break
        if len(busy) < FEWER * len(places):
            places = places[busy]
            way.keep(busy)
    return found


class Descent:
    """Regressions on their way, each with a momentum, which is lost when it leads uphill, and a step length of its own.

    A step length, 1 / ``bend``, grows until a step meets more curvature than it reckoned with, which undoes the step. (The bound
    that holds everywhere, ``most``, is far too careful where a site is almost certain: p (1 − p) is small there.)
    """

    def __init__(self, sample: Sample, start: Fit, mask: Tensor, penalty: float, most: float) -> None:
        self.sample, self.mask, self.penalty, self.most = sample, mask, penalty, most
        self.bend = torch.full((sample.shape[0],), most * FIRST_BEND, device=mask.device)  # (sites,)
        self.momentum = torch.ones_like(self.bend)
        self.here = self.ahead = Fit(start.weight * mask, start.bias)
        self.here_logits = self.logits = self.here.logits(sample)

    def step(self) -> Tensor:
        """Make a step, and return how far the terms of each site moved at most, (sites,); infinity where it is undone."""
        sample, ahead, here, bend = self.sample, self.ahead, self.here, self.bend
        law = torch.sigmoid(self.logits) if sample.outcomes == 1 else torch.softmax(self.logits, dim=-1)
        error = (sample.weight[:, None, None] * (law - sample.target)).flatten(1)  # (n, sites · O)
        slope = (_times(sample.features.T, error, sample).T + RIDGE * ahead.weight) * self.mask
        length = self._each(1 / bend)
        weight = _shrunk(ahead.weight - length[:, None] * slope, sample.shape, self.penalty / bend)
        there = Fit(weight, ahead.bias - length * error.sum(0))
        logits = there.logits(sample)

        made, bias_made = there.weight - ahead.weight, there.bias - ahead.bias
        squared = self._sums(made**2)
        met = 2 * sample.weight @ _bregman(law, logits - self.logits) + RIDGE * squared
        sure = (met <= bend * (squared + self._sums(bias_made**2))) | (bend >= self.most)

        moved, bias_moved = there.weight - here.weight, there.bias - here.bias
        uphill = self._sums(-made * moved) > 0
        grown = torch.where(uphill, 1.0, (1 + torch.sqrt(1 + 4 * self.momentum**2)) / 2)
        share = torch.where(uphill, 0.0, (self.momentum - 1) / grown)
        wide, line = self._each(share), self._each(sure)
        further = Fit(there.weight + wide[:, None] * moved, there.bias + wide * bias_moved)
        self.ahead, self.here = _where(line, further, ahead), _where(line, there, here)
        far = logits + share[:, None] * (logits - self.here_logits)
        self.logits = torch.where(sure[:, None], far, self.logits)
        self.here_logits = torch.where(sure[:, None], logits, self.here_logits)
        self.momentum = torch.where(sure, grown, self.momentum)
        self.bend = torch.where(sure, bend * LESS_BEND, bend * 2).clamp(max=self.most)
        return torch.where(sure, moved.view(len(bend), -1).abs().amax(1), torch.inf)

    def keep(self, places: Tensor) -> None:
        """Go on with some of the sites alone."""
        lines = _lines(places, self.sample.outcomes)
        self.sample, self.mask = replace(self.sample, target=self.sample.target[:, places]), self.mask[lines]
        self.bend, self.momentum = self.bend[places], self.momentum[places]
        self.here, self.ahead = (Fit(fit.weight[lines], fit.bias[lines]) for fit in (self.here, self.ahead))
        self.logits, self.here_logits = self.logits[:, places], self.here_logits[:, places]

    def _sums(self, values: Tensor) -> Tensor:
        """Sum over all that belongs to a site, (sites,)."""
        return values.reshape(len(self.bend), -1).sum(1)

    def _each(self, of_sites: Tensor) -> Tensor:
        """Repeat what a site has for each of its outcomes, (sites · O)."""
        return of_sites.repeat_interleave(self.sample.outcomes)


def _lines(places: Tensor, outcomes: int) -> Tensor:
    """Where the outcomes of some sites stand among those of all."""
    return (places[:, None] * outcomes + torch.arange(outcomes, device=places.device)).flatten()


def _times(features: Tensor, factor: Tensor, sample: Sample) -> Tensor:
    """Multiply features by other numbers, on a GPU in two parts where the features are ±½."""
    return product_in_two(features, factor) if features.is_cuda and sample.outcomes == 1 else features @ factor


def _bregman(law: Tensor, change: Tensor) -> Tensor:
    r"""How far the loss rises above its tangent when logits change by d: :math:`\log \sum_a p_a e^{d_a} - \sum_a p_a d_a`."""
    return torch.log1p((law * torch.expm1(change)).sum(-1)) - (law * change).sum(-1)


def _where(chosen: Tensor, one: Fit, other: Fit) -> Fit:
    return Fit(torch.where(chosen[:, None], one.weight, other.weight), torch.where(chosen, one.bias, other.bias))


def _shrunk(weight: Tensor, shape: tuple[int, ...], by: Tensor) -> Tensor:
    """Shorten the blocks of every site by its length (sites,), to nothing where they are shorter."""
    blocks = weight.view(shape)
    length = blocks.pow(2).sum((1, 3), keepdim=True).sqrt()
    # Nothing is exactly 0: it says which pairs are kept. What has no length stays as it is.
    return (blocks * (1 - by[:, None, None, None] / length.clamp(min=TINY)).clamp(min=0)).view_as(weight)
