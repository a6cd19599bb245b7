"""GGM: the round-robin chain, reversed by classifiers that tell kept tokens from redrawn ones (Varma et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from neurise import checks
from neurise.modeling.groups import Chain
from neurise.modeling.round_robin import RoundRobinModel

REVERSALS = ("bayes", "heat_bath")


@dataclass(frozen=True)
class KeptOrRedrawn:
    r"""Learn whether step t redrew the token a that is seen at site u after it, one output per token, by binary cross-entropy.

    With :math:`\Pi(\phi) = \varepsilon` the probability to keep and :math:`\Pi(a) = (1-\varepsilon)/p` that of each fresh token,

    .. math::
        y_a = P(\text{redrawn} \mid X_{t+1,u} = a, x_{-u}) = \frac{\Pi(a)}{\Pi(a) + \Pi(\phi)\,\mu_t(a \mid x_{-u})}
        \quad\Longleftrightarrow\quad \mu_t(a \mid x_{-u}) = \frac{\Pi(a)}{\Pi(\phi)}\Big(\frac{1}{y_a} - 1\Big).

    The network gives :math:`f_a = \log p\,\mu_t(a \mid x_{-u})`, so the classifier's logit is
    :math:`\ell_a = \log\frac{1-\varepsilon}{\varepsilon} - f_a`, and the conditional is softmax f.
    """

    keep_prob: float

    def __call__(self, logits: Tensor, x_u: Tensor, allowed: Tensor | None = None) -> Tensor:
        r"""Return the binary cross-entropy, averaged over all that the step may do to :math:`x_u = X_{t,u}`:

        .. math:: \varepsilon\,\log(1 + e^{\ell_{x_u}}) + \sum_a \frac{1-\varepsilon}{p} \log(1 + e^{-\ell_a})

        The same in the mean as to draw what it does, without the noise of that draw.
        """
        keep = self.keep_prob
        logit = math.log((1 - keep) / keep) - logits
        kept = functional.softplus(logit.gather(-1, x_u.long()[..., None]).squeeze(-1))
        redrawn = functional.softplus(-logit)
        if allowed is None:
            return keep * kept + (1 - keep) * redrawn.mean(-1)
        return keep * kept + (1 - keep) * (redrawn * allowed).sum(-1) / allowed.sum(
            -1
        )  # p is the size of the site's own


@dataclass(kw_only=True, eq=False, repr=False)
class GGM(RoundRobinModel):
    """Glauber generative model: one classifier per token predicts whether the noise redrew it.

    The chain and the network are those of :class:`NeurISE`; only what the network learns differs. Soft noise is needed: at
    ε = 0 every token is redrawn, and there is nothing to tell apart.

    Args:
        keep_prob: ε, the probability that a step keeps its site, above 0.
        cycles: how often the noise goes round all sites.
        reverse: "bayes" draws a site given its present token too, "heat_bath" (the original) from the conditional alone.
            Both reverse the chain exactly when the conditionals are exact.
        network, width, depth, members, steps, order, alphabet, training, architecture, chain, corrector: as
            :class:`NeurISE` has them.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.GGM(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    keep_prob: float = 0.5
    cycles: int = 4
    reverse: str = "bayes"

    chain: Chain = Chain(hide_noised=False)

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used."""
        super().check()
        if self.chain.kind != "round_robin":
            raise ValueError(
                f"chain__kind must be 'round_robin' for GGM, got {self.chain.kind!r}: its classifiers tell tokens that were "
                "kept from tokens that were redrawn; NeurISE takes other noise"
            )
        self.noise_options_ = {"heat_bath": checks.one_of("reverse", self.reverse, REVERSALS) == "heat_bath"}
        keep = checks.share("keep_prob", self.keep_prob)
        if keep == 0:
            raise ValueError(
                "keep_prob must be above 0 for GGM: at 0 every token is redrawn, so that no classifier can tell kept from "
                "redrawn, and the conditional would be a division by zero; NeurISE takes keep_prob=0"
            )
        self.loss_ = KeptOrRedrawn(keep)
