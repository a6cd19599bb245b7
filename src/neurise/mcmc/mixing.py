"""Whether Markov chains have mixed: autocorrelation, effective sample size, agreement of independent groups."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

WINDOW = 5
"""Autocorrelations are summed up to this many times the sum itself (Sokal's window)."""
MAX_R_HAT = 1.05
"""Groups that agree stay below it."""
MAX_SITE_R_HAT = 1.1
"""The worst of all sites: the largest of many, and thus noisier."""
MIN_ACCEPTANCE = 0.1
MIN_ROUND_TRIPS = 10
"""Journeys from hot to cold and back, a group."""


@dataclass(frozen=True)
class Diagnostics:
    """What a run of parallel tempering tells about itself."""

    rows: int  # kept, of all groups together
    effective_rows: float  # independent rows that are worth as much
    groups: int
    sweeps: int  # of each chain, after what was discarded
    discarded: int
    every: int  # sweeps between two rows
    betas: tuple[float, ...]
    swap_acceptance: tuple[float, ...]  # of each pair of neighbouring temperatures
    round_trips: int  # of all chains
    energy_time: float  # integrated autocorrelation time of the energy, in sweeps
    overlap_time: float  # and of the overlap of two groups, often the slowest
    r_hat: float  # of the energy
    site_r_hat: float  # of the site that the groups agree least on

    @property
    def problems(self) -> list[str]:
        """Why the chains are not well mixed; nothing where they are."""
        found = []
        if self.r_hat > MAX_R_HAT:
            found.append(f"the groups' energies differ: R-hat is {self.r_hat:.3f}, above {MAX_R_HAT}")
        if self.site_r_hat > MAX_SITE_R_HAT:
            found.append(f"the groups' sites differ: the worst R-hat is {self.site_r_hat:.3f}, above {MAX_SITE_R_HAT}")
        if min(self.swap_acceptance) < MIN_ACCEPTANCE:
            found.append(f"two temperatures swap with probability {min(self.swap_acceptance):.3f} only")
        if self.round_trips < MIN_ROUND_TRIPS * self.groups:
            found.append(f"{self.round_trips} round trips in {self.groups} groups are too few")
        return found

    @property
    def mixed(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def __str__(self) -> str:
        lines = [
            f"parallel tempering: {self.groups} groups of {len(self.betas)} temperatures, {self.sweeps:,} sweeps after "
            f"{self.discarded:,} discarded, a row every {self.every}",
            f"  swaps accepted {min(self.swap_acceptance):.2f} to {max(self.swap_acceptance):.2f}, "
            f"{self.round_trips:,} round trips, R-hat {self.r_hat:.3f} (worst site {self.site_r_hat:.3f})",
            f"  autocorrelation time {self.energy_time:.1f} sweeps (energy), {self.overlap_time:.1f} (overlap): "
            f"{self.rows:,} rows are worth about {self.effective_rows:,.0f} independent ones",
        ]
        verdict = "well mixed" if self.mixed else "NOT WELL MIXED: " + "; ".join(self.problems)
        return "\n".join([*lines, f"  {verdict}"])

    def to_dict(self) -> dict[str, Any]:
        """Give everything, with the verdict, in JSON's types."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {**plain, "mixed": self.mixed, "problems": self.problems}


def autocorrelation_time(series: Any) -> float:
    r"""Integrated autocorrelation time :math:`\tau = 1 + 2\sum_{k \ge 1} \rho(k)` of chains of one law, (chains, times).

    The sum stops at the first k ≥ 5 τ(k). Chains are centred by the mean of all: where they disagree, τ is large.
    """
    values = np.asarray(series, dtype=np.float64)
    values = values - values.mean()
    times = values.shape[1]
    transform = np.fft.rfft(values, 2 * times, axis=1)  # twice as long: a product of the ends would wrap around
    covariance = np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :times].mean(0) / (times - np.arange(times))
    if covariance[0] <= 0:
        return 1.0
    sums = 2 * np.cumsum(covariance / covariance[0]) - 1
    enough = np.arange(times) >= WINDOW * sums
    return max(1.0, float(sums[enough.argmax() if enough.any() else -1]))


def r_hat(series: Any) -> np.ndarray:
    r"""Gelman and Rubin's :math:`\hat R = \sqrt{(n-1)/n + B/W}` of chains cut in halves, (chains, times, …) → (…).

    B is the variance of the halves' means and W the mean of their variances: 1 where all agree.
    """
    values = np.asarray(series, dtype=np.float64)
    half = values.shape[1] // 2
    parts = np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])
    within, between = parts.var(axis=1, ddof=1).mean(0), parts.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((within == 0) & (between == 0), 1 / half, between / within)  # what never changes agrees
    return np.asarray(np.sqrt((half - 1) / half + ratio))


def diagnose(
    log_weight: Any,
    overlap: Any,
    rows: Any,
    *,
    every: int,
    discarded: int,
    betas: Any,
    acceptance: Any,
    round_trips: int,
) -> Diagnostics:
    """Judge a run by the coldest chains' log-weights (groups, sweeps), overlaps, and rows (groups, rows, sites)."""
    energy, shared, tokens = np.asarray(log_weight), np.asarray(overlap), np.asarray(rows)
    groups, kept, _ = tokens.shape
    between_rows = max(autocorrelation_time(series[:, every - 1 :: every]) for series in (energy, shared))
    by_state = [r_hat(tokens == token).max() for token in range(1, int(tokens.max()) + 1)]
    return Diagnostics(
        rows=groups * kept,
        effective_rows=groups * kept / between_rows,
        groups=groups,
        sweeps=energy.shape[1],
        discarded=discarded,
        every=every,
        betas=tuple(np.asarray(betas).tolist()),
        swap_acceptance=tuple(np.asarray(acceptance).tolist()),
        round_trips=round_trips,
        energy_time=autocorrelation_time(energy),
        overlap_time=autocorrelation_time(shared),
        r_hat=float(r_hat(energy)),
        site_r_hat=float(max(by_state, default=math.nan)),
    )
