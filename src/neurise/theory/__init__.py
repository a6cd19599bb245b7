r"""The paper's theory as code, on spaces small enough to enumerate: nothing here is estimated from samples.

- :mod:`neurise.theory.curves`: how fast the noise forgets, :math:`\delta_t`.
- :mod:`neurise.theory.bounds`: the theorem and its corollary, term by term, and a sharper form of them.
- :mod:`neurise.theory.starts`: empirical laws from which the reverse chain may start.
- :mod:`neurise.theory.kernels`: several reverse kernels with the same marginals, and how local each is.
- :mod:`neurise.theory.estimators`: how much error each loss makes of N rows.
- :mod:`neurise.theory.likelihood_limit`: how near N rows lead to a law whose family is known.
- :mod:`neurise.theory.learning`: all of it for models learnt from more and more rows.

>>> import neurise
>>> neurise.theory.delta_ceiling(neurise.Space(2, 2), keep_prob=0.5, cycles=1).tolist()
[1.0, 1.0, 0.75]
"""

from __future__ import annotations

from neurise.theory.bounds import Terms, step_errors, terms
from neurise.theory.curves import delta_ceiling, delta_curve, noised_laws
from neurise.theory.kernels import Bayes, Degenerate, HeatBath, Mixture, ReverseKernel, compare
from neurise.theory.learning import learning_curve
from neurise.theory.likelihood_limit import LikelihoodLimit, likelihood_limit, pairs_family
from neurise.theory.starts import empirical, empirical_starts

__all__ = [
    "Bayes",
    "Degenerate",
    "HeatBath",
    "LikelihoodLimit",
    "Mixture",
    "ReverseKernel",
    "Terms",
    "compare",
    "delta_ceiling",
    "delta_curve",
    "empirical",
    "empirical_starts",
    "learning_curve",
    "likelihood_limit",
    "noised_laws",
    "pairs_family",
    "step_errors",
    "terms",
]
