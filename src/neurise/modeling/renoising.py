"""Reverse chains that noise a part of the sites again on their way, and so correct what they drew before."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from neurise.modeling.joint import JointChain


@dataclass(frozen=True)
class RenoisingChain(JointChain):
    r"""A step goes too far towards the data, and then each site is noised again with probability ρ.

    Let the step lead to where a share m of the sites is noise. It is taken to :math:`m' = (m - \rho)/(1 - \rho)`, and noise on a
    share ρ leads from there to :math:`m' + (1 - m')\rho = m`: the marginals of the chain, and with them what the network was
    trained for, stay as they were. With N steps :math:`\rho = m \min(r/N, 1)`, r being ``renoise``: on the whole way a site is
    noised again r times the mean of m, and the error of the chain still falls like 1/N. (A ρ that stays the same until the end
    would leave uniform noise an error like :math:`N^{-2/3}`: where little noise is left, it is unknown which of two sites is
    wrong, and both may be changed in one step.)

    With masks this is the remasking step of ReMDM, its probability scaled by m; with any noise it is a predictor and a
    corrector in one evaluation of the network.
    """

    renoise: float = field(default=0.0, kw_only=True)

    def again(self, noised: float) -> float:
        """Return ρ for a step to where the share ``noised`` of the sites is noise."""
        return noised * min(self.renoise / self.num_steps, 1.0)

    def too_far(self, noised: float) -> float:
        """Return m', the share of noise that the step itself leads to."""
        again = self.again(noised)
        return (noised - again) / (1 - again) if again else noised

    def renoised(self, log_law: Tensor, noised: float) -> Tensor:
        """Noise the sites of a law (n, sites, tokens) again, up to the share ``noised``."""
        again = self.again(noised)
        if not again:
            return log_law
        return torch.logaddexp(log_law + math.log1p(-again), self.start_law().log() + math.log(again))
