"""Pearson's χ² divergence."""

from __future__ import annotations

import math
from typing import Any

from neurise.estimate import Estimate
from neurise.laws import as_law
from neurise.metrics._empirical import is_pmf, known_law, leave_one_out, observe


def chi2(samples_or_pmf: Any, pmf: Any, *, alphabet: Any = None) -> Estimate:
    r"""Pearson's divergence :math:`\sum_x \frac{(\hat\mu(x) - \mu(x))^2}{\mu(x)} \ge 0`, without units.

    The first argument is a law, (p^q,), or samples, (n, sites), which stand for their empirical law; ``alphabet`` gives the
    symbols in the order of the pmf's digits. Times n it is the statistic of Pearson's test. It is infinite where something
    that :math:`\mu` rules out has a share, and has no error then. Rare configurations weigh as much as likely ones.

    **Floor.** n draws from :math:`\mu` itself score :math:`(S - 1)/n` on average, exactly; S configurations are possible.
    Where S is far above n, a few draws on very rare configurations make up this mean, and most sets score below it. A law
    has the floor zero.

    **Bias.** Samples of a law :math:`\nu` score too high, by :math:`\sum_x \frac{\nu_x (1 - \nu_x)}{n \mu_x}` on average, which is
    the floor where :math:`\nu = \mu`. ``bias`` estimates this without bias, and ``corrected`` is the value without it, which may
    be negative.

    **Error.** The spread over new draws of the samples, by leaving out one at a time in closed form; never too narrow on
    average, and up to √2 too wide at the floor.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> neurise.metrics.chi2(data.pmf, data.pmf)
    0 ± 0 (floor 0)
    """
    law = known_law(pmf, "chi2")
    if is_pmf(samples_or_pmf):
        first = as_law(samples_or_pmf, len(law), "the first law").to(law.device)
        possible = law > 0
        if bool((first[~possible] > 0).any()):
            return Estimate(math.inf, error=0.0, floor=0.0)
        first, law = first[possible], law[possible]
        return Estimate(float(((first - law) ** 2 / law).sum()), error=0.0, floor=0.0)
    seen = observe(samples_or_pmf, law, alphabet=alphabet)
    law = law.to(seen.place.device)
    mu = law[seen.place]
    floor = (int((law > 0).sum()) - 1) / seen.size
    if bool((mu == 0).any()):
        return Estimate(math.inf, floor=floor)
    unseen = max(0.0, float(law.sum() - mu.sum()))  # each such cell adds (0 − μ)²/μ = μ
    value = unseen + float(((seen.share - mu) ** 2 / mu).sum())
    left = leave_one_out(seen.share, seen.size, lambda share: (share - mu) ** 2 / mu)
    if left is None:
        return Estimate(value, floor=floor)
    return Estimate(value, error=math.sqrt(left.variance), floor=floor, bias=left.bias)
